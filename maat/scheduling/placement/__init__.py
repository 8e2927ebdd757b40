"""The registry of placers: one file and one line here for each."""

from maat.scheduling.protocols import Placer
from maat.scheduling.registry import Entry, Needs, Registry

# PAL section III-B: the queue is marked where the summed demand exceeds the cluster, and only the
# jobs before the mark are placed.
QUEUE_IS_MARKED = {"head_of_line": "block"}

PLACERS: Registry[Placer] = Registry(
    "placer",
    Entry(
        "whole-node",
        "Whole nodes (Sia)",
        "Small allocations stay on one node, larger ones take whole nodes; jobs are moved where "
        "free GPUs are scattered.",
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
        "Packed, every round",
        "As few nodes as possible, the tightest that fits; all jobs are placed again each round.",
        "maat.scheduling.placement.packed:Packed",
    ),
    Entry(
        "random-sticky",
        "Random, sticky",
        "Free GPUs drawn at random; jobs keep them. A baseline for comparison.",
        "maat.scheduling.placement.random:RandomSticky",
    ),
    Entry(
        "random",
        "Random, every round",
        "Free GPUs drawn at random for all jobs each round. A baseline for comparison.",
        "maat.scheduling.placement.random:Random",
    ),
    Entry(
        "pm-first",
        "PM-First",
        "The jobs that slow GPUs hurt most get the fastest GPUs on any node; all jobs are placed "
        "again each round.",
        "maat.scheduling.placement.pm_first:PmFirst",
        needs=Needs.GPU_SCORES,
        of_policy=QUEUE_IS_MARKED,
    ),
    Entry(
        "pal",
        "PAL",
        "Weighs slow GPUs against spreading over nodes, by job class; all jobs are placed again "
        "each round.",
        "maat.scheduling.placement.pal:Pal",
        needs=Needs.GPU_SCORES,
        of_policy=QUEUE_IS_MARKED,
    ),
    Entry(
        "shared",
        "Shared GPUs",
        "Jobs keep their GPUs; new jobs get idle GPUs on few nodes, and GPUs of the partners that "
        "the policy chose.",
        "maat.scheduling.placement.shared:Shared",
    ),
    Entry(
        "together",
        "Pairs together",
        "The two jobs of a pair share one set of GPUs, other jobs share none; jobs keep their "
        "GPUs, new ones get few nodes.",
        "maat.scheduling.placement.together:Together",
    ),
    Entry(
        "most-free",
        "Most free (Pollux)",
        "Jobs keep their GPUs while their allocation is unchanged; others take GPUs from the node "
        "with most free GPUs, then from the next.",
        "maat.scheduling.placement.most_free:MostFree",
    ),
    Entry(
        "lowest-numbered",
        "Lowest numbers first (Gavel)",
        "Largest jobs first; a job keeps its GPUs if they are free, else takes the free GPUs of "
        "the lowest numbers on any nodes.",
        "maat.scheduling.placement.lowest_numbered:LowestNumbered",
    ),
    Entry(
        "as-decided",
        "As decided",
        "The nodes that the policy chose (Pollux); packed where it chose none.",
        "maat.scheduling.placement.as_decided:AsDecided",
    ),
)


def weighs_locality(placer: str) -> bool:
    """Return whether a placer weighs what a step across nodes costs a job, if there is one."""
    return PLACERS.has(placer) and getattr(PLACERS.entry(placer).cls, "weighs_locality", False)
