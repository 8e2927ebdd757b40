"""Placement of pairs: jobs that name each other share one set of GPUs; everybody else has GPUs alone. Chooses no pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.packed import pack
from maat.scheduling.rounds import Decision, Placement, PlacementResult, RoundInput

Unit = tuple[JobId, ...]


@dataclass(frozen=True)
class Together:
    """GPUs that a member holds, where they are what was granted and nobody else's; else as few nodes as possible, the tightest that fits.

    A pair that is formed joins on the GPUs of its first member that holds any; of one that is dissolved, the first keeps them.
    """

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
        unplaced: dict[JobId, Reasons] = {}
        for unit in units:
            if unit not in found:
                grant = decision.grants[unit[0]]
                gpus = pack(free, grant)
                if gpus is None:
                    told: dict[str, float | int | str | None] = {
                        "gpu_type": grant.gpu_type,
                        "gpu_count": grant.gpu_count,
                    }
                    unplaced |= {job_id: Reasons(ReasonCode.FRAGMENTED, told) for job_id in unit}
                else:
                    found[unit] = gpus
        by_job = {job_id: gpus for unit, gpus in found.items() for job_id in unit}
        return PlacementResult(
            Placement.of(
                {job_id: by_job[job_id] for job_id in decision.grants if job_id in by_job}
            ),
            unplaced,
        )


def pairs_and_singles(decision: Decision, round_input: RoundInput) -> list[Unit]:
    """Who shares GPUs, in order of the grants: two that name each other and have like grants, where a GPU may hold two jobs."""
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
    """What a member holds, pinned ones first, if the unit may have it."""
    grant = decision.grants[unit[0]]
    for job_id in sorted(unit, key=lambda job_id: job_id not in round_input.pinned):
        held = round_input.job_by_id[job_id].allocation
        if (
            held is not None
            and (held.gpu_type, held.gpu_count) == (grant.gpu_type, grant.gpu_count)
            and free.are_free(held.gpus)
        ):
            return held.gpus
    return None
