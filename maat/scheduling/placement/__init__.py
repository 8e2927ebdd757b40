"""Every placer that Maat has: one file and one line here for each."""

from maat.scheduling.placement.as_decided import AsDecided
from maat.scheduling.placement.packed import Packed
from maat.scheduling.placement.whole_node import WholeNode
from maat.scheduling.registry import Entry, Registry
from maat.scheduling.rounds import Placer

PLACERS: Registry[Placer] = Registry(
    "placer",
    Entry(
        "whole-node",
        "Whole nodes (Sia)",
        "Parts of a node stay on one node, larger allocations take whole nodes; evicts where GPUs are scattered.",
        WholeNode,
    ),
    Entry(
        "packed",
        "Packed",
        "As few nodes as possible, the tightest that fits; jobs may keep their GPUs (sticky) or are placed anew each round.",
        Packed,
    ),
    Entry("as-decided", "As decided", "The nodes that the policy chose (Pollux); packed where it chose none.", AsDecided),
)
