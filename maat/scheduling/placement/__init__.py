"""Every placer that Maat has: one file and one line here for each."""

from maat.scheduling.placement.as_decided import AsDecided
from maat.scheduling.placement.lowest_numbered import LowestNumbered
from maat.scheduling.placement.most_free import MostFree
from maat.scheduling.placement.packed import Packed, PackedSticky
from maat.scheduling.placement.pal import Pal
from maat.scheduling.placement.pm_first import PmFirst
from maat.scheduling.placement.random import Random, RandomSticky
from maat.scheduling.placement.shared import Shared
from maat.scheduling.placement.together import Together
from maat.scheduling.placement.whole_node import WholeNode
from maat.scheduling.registry import Entry, Needs, Registry
from maat.scheduling.rounds import Placer

PLACERS: Registry[Placer] = Registry(
    "placer",
    Entry(
        "whole-node",
        "Whole nodes (Sia)",
        "Parts of a node stay on one node, larger allocations take whole nodes; evicts where GPUs are scattered.",
        WholeNode,
    ),
    Entry("packed-sticky", "Packed, sticky", "As few nodes as possible, the tightest that fits; jobs keep their GPUs.", PackedSticky),
    Entry(
        "packed",
        "Packed, anew each round",
        "As few nodes as possible, the tightest that fits; everybody is placed anew each round.",
        Packed,
    ),
    Entry("random-sticky", "Random, sticky", "Any free GPUs alike; jobs keep them. A yardstick, not a choice.", RandomSticky),
    Entry("random", "Random, anew each round", "Any free GPUs alike, drawn anew each round. A yardstick, not a choice.", Random),
    Entry(
        "pm-first",
        "PM-First",
        "The fastest GPUs to the jobs that suffer most from slow ones, wherever they are; anew each round.",
        PmFirst,
        needs=Needs.GPU_SCORES,
    ),
    Entry(
        "pal", "PAL", "Weighs slow GPUs against spreading over nodes, job class by job class; anew each round.", Pal, needs=Needs.GPU_SCORES
    ),
    Entry(
        "shared",
        "Shared GPUs",
        "Jobs keep their GPUs; new ones get idle GPUs on few nodes, and beside them those of the partners that the policy chose.",
        Shared,
    ),
    Entry(
        "together",
        "Pairs together",
        "Jobs that were paired share one set of GPUs, everybody else has GPUs alone: what a member holds, else few nodes.",
        Together,
    ),
    Entry(
        "most-free",
        "Most free (Pollux)",
        "Jobs keep their GPUs where their allocation is unchanged; others take GPUs from the node with most free, then the next.",
        MostFree,
    ),
    Entry(
        "lowest-numbered",
        "Lowest numbers first (Gavel)",
        "Largest jobs first; a job keeps its GPUs if it can, else it takes the free ones of the lowest numbers, whatever their nodes.",
        LowestNumbered,
    ),
    Entry("as-decided", "As decided", "The nodes that the policy chose (Pollux); packed where it chose none.", AsDecided),
)
