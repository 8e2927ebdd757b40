"""Every placer that Maat has: one file and one line here for each."""

from maat.scheduling.protocols import Placer
from maat.scheduling.registry import Entry, Needs, Registry

# PAL section III-B: the queue is marked where the summed demand exceeds the cluster, and only the jobs before the mark are placed.
QUEUE_IS_MARKED = {"head_of_line": "block"}

PLACERS: Registry[Placer] = Registry(
    "placer",
    Entry(
        "whole-node",
        "Whole nodes (Sia)",
        "Parts of a node stay on one node, larger allocations take whole nodes; evicts where GPUs are scattered.",
        "maat.scheduling.placement.whole_node:WholeNode",
    ),
    Entry(
        "packed-sticky",
        "Packed, sticky",
        "As few nodes as possible, the tightest that fits; jobs keep their GPUs.",
        "maat.scheduling.placement.packed:PackedSticky",
    ),
    Entry(
        "packed",
        "Packed, placed again each round",
        "As few nodes as possible, the tightest that fits; everybody is placed again each round.",
        "maat.scheduling.placement.packed:Packed",
    ),
    Entry(
        "random-sticky",
        "Random, sticky",
        "Any free GPUs alike; jobs keep them. A yardstick, not a choice.",
        "maat.scheduling.placement.random:RandomSticky",
    ),
    Entry(
        "random",
        "Random, drawn again each round",
        "Any free GPUs alike, drawn again each round. A yardstick, not a choice.",
        "maat.scheduling.placement.random:Random",
    ),
    Entry(
        "pm-first",
        "PM-First",
        "The fastest GPUs to the jobs that suffer most from slow ones, wherever they are; placed again each round.",
        "maat.scheduling.placement.pm_first:PmFirst",
        needs=Needs.GPU_SCORES,
        of_policy=QUEUE_IS_MARKED,
    ),
    Entry(
        "pal",
        "PAL",
        "Weighs slow GPUs against spreading over nodes, job class by job class; placed again each round.",
        "maat.scheduling.placement.pal:Pal",
        needs=Needs.GPU_SCORES,
        of_policy=QUEUE_IS_MARKED,
    ),
    Entry(
        "shared",
        "Shared GPUs",
        "Jobs keep their GPUs; new ones get idle GPUs on few nodes, and beside them those of the partners that the policy chose.",
        "maat.scheduling.placement.shared:Shared",
    ),
    Entry(
        "together",
        "Pairs together",
        "Jobs that were paired share one set of GPUs, everybody else has GPUs alone: what a member holds, else few nodes.",
        "maat.scheduling.placement.together:Together",
    ),
    Entry(
        "most-free",
        "Most free (Pollux)",
        "Jobs keep their GPUs where their allocation is unchanged; others take GPUs from the node with most free, then the next.",
        "maat.scheduling.placement.most_free:MostFree",
    ),
    Entry(
        "lowest-numbered",
        "Lowest numbers first (Gavel)",
        "Largest jobs first; a job keeps its GPUs if it can, else it takes the free ones of the lowest numbers, whatever their nodes.",
        "maat.scheduling.placement.lowest_numbered:LowestNumbered",
    ),
    Entry(
        "as-decided",
        "As decided",
        "The nodes that the policy chose (Pollux); packed where it chose none.",
        "maat.scheduling.placement.as_decided:AsDecided",
    ),
)
