"""What a policy or placer needs of a cluster to have its effect, and the cluster lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from maat.scheduling.parts import Parts
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
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
