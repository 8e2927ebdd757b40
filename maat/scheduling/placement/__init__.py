"""Every placer that Maat has: one file and one line here for each."""

from maat.scheduling.placement.lowest_numbered import LowestNumbered
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
        "lowest-numbered",
        "Lowest numbers first (Gavel)",
        "Largest jobs first; a job keeps its GPUs if it can, else it takes the free ones of the lowest numbers, whatever their nodes.",
        LowestNumbered,
    ),
)
