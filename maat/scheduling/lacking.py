"""What a policy or placer needs of a cluster to have its effect, and the cluster lacks."""

from __future__ import annotations

from collections.abc import Iterator

from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.registry import Needs


def what_is_lacking(
    policy: str, placer: str, *, jobs_per_gpu: int, has_scores: bool
) -> Iterator[str]:
    """Yield a sentence with its remedy for each need that is not met.

    `has_scores`: whether the GPUs of a type differ in speed, as far as the placer will know. Raises
    UnknownNameError.
    """
    named = (("policy", POLICIES.entry(policy)), ("placer", PLACERS.entry(placer)))
    for kind, entry in named:
        if entry.needs is Needs.SHARED_GPUS and jobs_per_gpu == 1:
            yield (
                f"The {kind} {entry.name} lets jobs share GPUs; here a GPU holds one job, so none "
                "share: give jobs_per_gpu 2, and what the jobs of a pair lose (interference)."
            )
        if entry.needs is Needs.GPU_SCORES and not has_scores:
            yield (
                f"The {kind} {entry.name} weighs how slow GPUs are; "
                "here all of a type are alike (no variability given)."
            )
