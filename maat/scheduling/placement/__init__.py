"""Every placer that Maat has: one file and one line here for each."""

from maat.scheduling.placement.most_free import MostFree
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
    Entry(
        "most-free",
        "Most free (Pollux)",
        "Jobs keep their GPUs where their allocation is unchanged; others take GPUs from the node with most free, then the next.",
        MostFree,
    ),
)
