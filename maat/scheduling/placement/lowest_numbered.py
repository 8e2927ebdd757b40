"""Gavel's placement: largest jobs first, on the free GPUs of the lowest numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from maat.scheduling.job import JobId
from maat.scheduling.placeable import held_as_granted
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.outcome import outcome
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput


@dataclass(frozen=True)
class LowestNumbered:
    """Place jobs by size, largest first, on the free GPUs of the lowest numbers.

    Nodes do not matter. Jobs that keep their GPUs come before others of their size. A job granted
    only shared GPUs of one partner of equal size is placed on that partner's GPUs. No other job
    shares a GPU.
    """

    keeps_pairs: ClassVar[bool] = True
    name: str = "lowest-numbered"

    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult:
        placing = _Placing(decision.grants, round_input)
        placing.keep_pinned()
        for size in sorted({grant.gpu_count for grant in decision.grants.values()}, reverse=True):
            placing.place(size)
        return outcome(decision.grants, placing.found)


class _Placing:
    """The free GPUs, and the GPUs found by job, while a round is placed."""

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
        """Leave pinned jobs on their GPUs; two of them may share one."""
        for job_id in self._input.pinned:
            held = self._gpus_held_by(job_id) if job_id in self._grants else None
            if held is not None:
                self._free.take(gpu for gpu in held if self._free.are_free([gpu]))
                self.found[job_id] = held

    def place(self, size: int) -> None:
        """Place the jobs of one size, and with each the jobs that share its GPUs."""
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
                        if (held := self._gpus_held_by(job_id)) and self._free.are_free(held)
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

    def _gpus_held_by(self, job_id: JobId) -> tuple[int, ...] | None:
        """Return what the job holds, if it is what it was granted and usable."""
        return held_as_granted(self._input, job_id, self._grants[job_id])

    def _lowest(self, grant: Grant) -> list[int] | None:
        """Return the lowest free GPUs of the type; None if there are too few."""
        free = self._free.of_type(grant.gpu_type)
        return free[: grant.gpu_count].tolist() if len(free) >= grant.gpu_count else None


def _follows(grant: Grant, grants: Mapping[JobId, Grant], round_input: RoundInput) -> bool:
    """Return whether a grant takes all GPUs of one partner with an equal grant.

    False if GPUs of the cluster hold one job each.
    """
    host = grants.get(grant.share_with[0]) if len(grant.share_with) == 1 else None
    if host is None or host.share_with or round_input.cluster.jobs_per_gpu < 2:
        return False
    return (
        (host.gpu_type, host.gpu_count)
        == (grant.gpu_type, grant.gpu_count)
        == (grant.gpu_type, grant.shared_gpus)
    )
