"""Placement of pairs: two jobs that name each other share one set of GPUs.

Other jobs share no GPU. The policy chooses the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.job import JobId
from maat.scheduling.placeable import held_as_granted
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.outcome import outcome
from maat.scheduling.placement.packed import pack
from maat.scheduling.rounds import Decision, PlacementResult, RoundInput

Unit = tuple[JobId, ...]
"""The two jobs of a pair, or a job that shares with none."""


@dataclass(frozen=True)
class Together:
    """Place pairs and single jobs on GPUs of their own.

    A unit keeps the GPUs that a member holds, if they are what was granted and no other unit has
    them; else it is packed. A new pair meets on the GPUs of its first member that holds any. If
    a pair is dissolved, its first member keeps the GPUs.
    """

    keeps_pairs: ClassVar[bool] = True
    name: str = "together"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        free = FreeGpus(round_input.cluster, places=1)
        units = pairs_and_singles(decision, round_input)
        found: dict[Unit, Sequence[int]] = {}
        for unit in sorted(
            units, key=lambda unit: not any(job_id in round_input.pinned for job_id in unit)
        ):
            held = _kept(unit, free, decision, round_input)
            if held is not None:
                free.take(held)
                found[unit] = held
        for unit in units:
            if unit not in found:
                gpus = pack(free, decision.grants[unit[0]])
                if gpus is not None:
                    found[unit] = gpus
        by_job = {job_id: gpus for unit, gpus in found.items() for job_id in unit}
        return outcome(decision.grants, by_job)


def pairs_and_singles(decision: Decision, round_input: RoundInput) -> list[Unit]:
    """Return the pairs and the jobs that share with none, in order of the grants.

    A pair is two jobs that name each other and have grants of one type and count. There are none
    if GPUs of the cluster hold one job each.
    """
    units: list[Unit] = []
    seen: set[JobId] = set()
    for job_id, grant in decision.grants.items():
        if job_id in seen:
            continue
        partner = next(
            (
                other
                for other in grant.share_with
                if other not in seen and _agree(job_id, other, decision)
            ),
            None,
        )
        unit = (
            (job_id,)
            if partner is None or round_input.cluster.jobs_per_gpu < 2
            else (job_id, partner)
        )
        seen.update(unit)
        units.append(unit)
    return units


def _agree(one: JobId, other: JobId, decision: Decision) -> bool:
    mine, theirs = decision.grants[one], decision.grants.get(other)
    if theirs is None or one not in theirs.share_with:
        return False
    return (mine.gpu_type, mine.gpu_count) == (theirs.gpu_type, theirs.gpu_count)


def _kept(
    unit: Unit, free: FreeGpus, decision: Decision, round_input: RoundInput
) -> Sequence[int] | None:
    """Return the GPUs that a member holds, if free; pinned members come first."""
    grant = decision.grants[unit[0]]
    for job_id in sorted(unit, key=lambda job_id: job_id not in round_input.pinned):
        held = held_as_granted(round_input, job_id, grant)
        if held is not None and free.are_free(held):
            return held
    return None
