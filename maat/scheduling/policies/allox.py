"""AlloX: waiting jobs matched to free GPUs for the least total completion time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.parameters import knob
from maat.scheduling.policies.ordering import Walker
from maat.scheduling.policies.requests import Requests, requests
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.matching import Matching, least_total_completion
from maat.scheduling.solving.report import SolveReport, SolveStatus


@dataclass(frozen=True)
class AlloX:
    """Match waiting jobs to free GPUs and positions on them; those in front start.

    A job that is the k-th from the last on its GPU costs k times its time there (section 3.1).
    Running jobs stay. AlloX has jobs of one GPU; here one of n GPUs counts as n times its time: the
    same GPU-seconds. It is matched only to types that have n GPUs free.
    """

    considered_share: float = knob(
        1.0,
        "Share of the waiting jobs that are matched, first come first; at least one for each free "
        "GPU. Less is fairer to those that came first.",
        source="AlloX section 3.3, alpha",
        minimum=0.0,
        maximum=1.0,
    )
    default_round_seconds: ClassVar[float] = 60.0
    name: str = "allox"

    def allocate(self, round_input: RoundInput) -> Decision:
        started = time.process_time()
        wanted = requests(round_input)
        walker = Walker(round_input, wanted, "running jobs, and jobs that end sooner there,")
        jobs = round_input.jobs
        waiting = [
            row for row, job in enumerate(jobs) if job.allocation is None or not walker.offer(row)
        ]
        rows = self._considered(waiting, walker, round_input)
        seconds = _gpu_seconds(wanted, walker, rows)
        matching = least_total_completion(seconds, _free_gpus(walker, round_input))
        for place in np.argsort(_on_matched(seconds, matching), kind="stable").tolist():
            if matching.kind[place] >= 0:
                walker.offer_on(rows[place], int(matching.kind[place]))
        for row in waiting:
            walker.refuse_unless_granted(row)
        report = _report(matching, time.process_time() - started)
        return Decision(walker.grants, report, walker.reasons, state=round_input.state)

    def _considered(self, waiting: list[int], walker: Walker, given: RoundInput) -> list[int]:
        """Return the waiting jobs that are matched, in order of submission."""
        order = sorted(waiting, key=lambda row: (given.jobs[row].spec.submitted_at, row))
        free = int(_free_gpus(walker, given).sum())
        return order[: max(math.ceil(self.considered_share * len(order)), free)]


def _free_gpus(walker: Walker, round_input: RoundInput) -> IntArray:
    """Return the places on GPUs of each type beside what is granted, shape (T,)."""
    cluster = round_input.cluster
    free = cluster.usable_gpus * cluster.jobs_per_gpu
    for grant in walker.grants.values():
        free[cluster.type_index[grant.gpu_type]] -= grant.gpu_count
    return np.maximum(free, 0)


def _gpu_seconds(wanted: Requests, walker: Walker, rows: list[int]) -> FloatArray:
    """Return GPU-seconds to the end by type, shape (J, T); infinite without room now."""
    types = range(len(wanted.round_input.cluster.type_names))
    seconds = np.full((len(rows), len(types)), np.inf)
    for place, row in enumerate(rows):
        for t in types:
            if wanted.goodput[row, t] > 0 and walker.has_room(row, t):
                alone = wanted.jobs[row].remaining_work / wanted.goodput[row, t]
                seconds[place, t] = alone * wanted.gpu_count(row, t)
    return seconds


def _on_matched(seconds: FloatArray, matching: Matching) -> FloatArray:
    """Return the GPU-seconds of each job on its own type, shape (J,); infinite without one."""
    own: FloatArray = np.where(
        matching.kind < 0,
        np.inf,
        np.take_along_axis(seconds, np.maximum(matching.kind, 0)[:, None], axis=1)[:, 0],
    )
    return own


def _report(matching: Matching, seconds: float) -> SolveReport:
    if not (matching.kind >= 0).any():
        return SolveReport()
    return SolveReport(
        SolveStatus.OPTIMAL,
        method="matching",
        objective=-matching.total,
        bound=-matching.total,
        seconds=seconds,
    )
