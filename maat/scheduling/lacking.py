"""What a policy or placer needs of a cluster and the cluster lacks, and what it makes no use of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from maat.scheduling.gpu_places import shares_gpus
from maat.scheduling.parts import Parts
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.scheduling.protocols import Policy
from maat.scheduling.registry import Needs, Registry


def what_is_lacking(
    parts: Parts, *, jobs_per_gpu: int, has_scores: bool, policy_is_own: bool = False
) -> Iterator[str]:
    """Yield a sentence with its remedy for each need that is not met.

    A parameter has a need if it is set, and not to nothing: left out, it has its effect where it
    can. `has_scores`: whether the GPUs of a type differ in speed, as far as the placer will know.
    `policy_is_own`: it is in no registry, and says nothing of its needs. Raises
    UnknownNameError or ParameterError.
    """
    for what, needs in _needs(parts, policy_is_own=policy_is_own):
        if needs is Needs.SHARED_GPUS and jobs_per_gpu == 1:
            yield (
                f"{what} lets jobs share GPUs; here a GPU holds one job, so none "
                "share: give jobs_per_gpu 2, and what the jobs of a pair lose (interference)."
            )
        if needs is Needs.GPU_SCORES and not has_scores:
            yield (
                f"{what} weighs how slow GPUs are; "
                "here all of a type are alike (no variability given)."
            )


def what_has_no_effect(
    parts: Parts, *, jobs_per_gpu: int, has_interference: bool, own_policy: Policy | None = None
) -> Iterator[str]:
    """Yield a sentence with its remedy if no GPUs are shared, or not as the policy chose.

    `own_policy`: one that is in no registry, in place of the one of `parts`. Raises
    UnknownNameError or ParameterError.
    """
    policy = own_policy or POLICIES.build(parts.policy, parts.policy_parameters)
    placer = PLACERS.build(parts.placer, parts.placer_parameters)
    if jobs_per_gpu > 1 and not shares_gpus(policy):
        yield (
            f"jobs_per_gpu {jobs_per_gpu} and interference have no effect under {parts.policy}, "
            "which gives every job GPUs of its own: jobs share GPUs under "
            f"{_sharing_policies()}."
        )
    elif jobs_per_gpu > 1 and not getattr(placer, "keeps_pairs", False):
        yield (
            f"The placer {parts.placer} puts jobs on any GPU with a free place, also on one of a "
            f"job that {parts.policy} did not choose: the placer "
            f"{'shared' if own_policy else suiting_placer(parts.policy)} keeps to its choice."
        )
    elif jobs_per_gpu == 1 and has_interference:
        yield (
            "interference has no effect where a GPU holds one job: "
            f"give jobs_per_gpu 2 under {_sharing_policies()}."
        )


def _sharing_policies() -> str:
    """Return the policies under which jobs share GPUs, in words."""
    names = []
    for entry in POLICIES:
        knobs = [knob for knob, needs in entry.knob_needs.items() if needs is Needs.SHARED_GPUS]
        if entry.needs is Needs.SHARED_GPUS:
            names.append(entry.name)
        elif knobs:
            names.append(f"{entry.name} ({', '.join(knobs)})")
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _needs(parts: Parts, *, policy_is_own: bool) -> Iterator[tuple[str, Needs]]:
    """Yield what has a need, in words, and the need."""
    if not policy_is_own:
        yield from _needs_of("policy", POLICIES, parts.policy, parts.policy_parameters)
    yield from _needs_of("placer", PLACERS, parts.placer, parts.placer_parameters)


def _needs_of(
    kind: str, registry: Registry[Any], name: str, parameters: Mapping[str, object]
) -> Iterator[tuple[str, Needs]]:
    entry = registry.entry(name)
    if entry.needs is not None:
        yield f"The {kind} {name}", entry.needs
    for knob, needs in entry.knob_needs.items():
        if knob in parameters and getattr(registry.build(name, parameters), knob):
            yield f"{knob} of {name}", needs
