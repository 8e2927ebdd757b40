"""Gavel's placement: the largest jobs first, each on the GPUs that it held, else on the free ones of the lowest numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.rounds import Decision, Grant, Placement, PlacementResult, RoundInput


@dataclass(frozen=True)
class LowestNumbered:
    """Jobs may straddle nodes. Of jobs of one size, those that keep their GPUs are placed before the others.

    Who is granted nothing but the GPUs of one other job of its size goes where that one goes; nobody else shares a GPU.
    """

    name: str = "lowest-numbered"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        floor = _Floor(decision.grants, round_input)
        floor.keep_pinned()
        for size in sorted({grant.gpu_count for grant in decision.grants.values()}, reverse=True):
            floor.place(size)
        unplaced = {
            job_id: Reasons(
                ReasonCode.FRAGMENTED, {"gpu_type": grant.gpu_type, "gpu_count": grant.gpu_count}
            )
            for job_id, grant in decision.grants.items()
            if job_id not in floor.found
        }
        return PlacementResult(
            Placement.of(
                {job_id: floor.found[job_id] for job_id in decision.grants if job_id in floor.found}
            ),
            unplaced,
        )


class _Floor:
    """Free GPUs and who was found which, while a round is placed."""

    def __init__(self, grants: Mapping[JobId, Grant], round_input: RoundInput) -> None:
        self._grants, self._input = grants, round_input
        self._free = FreeGpus(round_input.cluster, places=1)
        self._host = {
            job_id: grant.share_with[0]
            for job_id, grant in grants.items()
            if _follows(grant, grants, round_input)
        }
        self.found: dict[JobId, Sequence[int]] = {}

    def keep_pinned(self) -> None:
        """Leave pinned jobs on their GPUs; two of them may have shared one."""
        for job_id in self._input.pinned:
            held = self._held(job_id)
            if (
                job_id in self._grants
                and held
                and self._input.cluster.gpu_available[list(held)].all()
            ):
                self._free.take(gpu for gpu in held if self._free.are_free([gpu]))
                self.found[job_id] = held

    def place(self, size: int) -> None:
        """Place the jobs of one size, and beside them who shares their GPUs."""
        grants = self._grants
        groups = [
            [job_id, *(other for other, host in self._host.items() if host == job_id)]
            for job_id, grant in grants.items()
            if grant.gpu_count == size and job_id not in self._host
        ]
        for group in groups:
            if group[0] not in self.found:
                kept = next(
                    (
                        held
                        for job_id in group
                        if (held := self._held(job_id)) and self._free.are_free(held)
                    ),
                    None,
                )
                if kept:
                    self._give(group, kept)
        for group in groups:
            gpus = self.found.get(group[0]) or self._lowest(grants[group[0]])
            if gpus is not None:
                self._give(group, gpus)

    def _give(self, group: Sequence[JobId], gpus: Sequence[int]) -> None:
        self._free.take(gpu for gpu in gpus if self._free.are_free([gpu]))
        self.found.update(dict.fromkeys(group, gpus))

    def _held(self, job_id: JobId) -> tuple[int, ...]:
        """What the job holds, if it is just what it was granted; else nothing."""
        held, grant = self._input.job_by_id[job_id].allocation, self._grants[job_id]
        return (
            held.gpus
            if held is not None
            and (held.gpu_type, held.gpu_count) == (grant.gpu_type, grant.gpu_count)
            else ()
        )

    def _lowest(self, grant: Grant) -> list[int] | None:
        """Free GPUs of the type, lowest number first; None where there are not enough."""
        free = self._free.of_type(grant.gpu_type)
        return free[: grant.gpu_count].tolist() if len(free) >= grant.gpu_count else None


def _follows(grant: Grant, grants: Mapping[JobId, Grant], round_input: RoundInput) -> bool:
    """Whether all of a grant is to be on one other's GPUs, of which there are as many, and a GPU has room for both."""
    host = grants.get(grant.share_with[0]) if len(grant.share_with) == 1 else None
    if host is None or host.share_with or round_input.cluster.jobs_per_gpu < 2:
        return False
    return (
        (host.gpu_type, host.gpu_count)
        == (grant.gpu_type, grant.gpu_count)
        == (grant.gpu_type, grant.shared_gpus)
    )
