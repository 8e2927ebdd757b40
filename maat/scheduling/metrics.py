"""The figures by which schedules are compared, each defined once. Times in seconds unless the name says hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from maat.scheduling.arrays import FloatArray


@dataclass(frozen=True)
class JobRecord:
    """How one job fared. `gpu_seconds` by type. `start`: when it first held GPUs; None where it never did."""

    name: str
    model: str
    submit: float
    start: float | None
    finish: float | None
    restarts: int
    gpu_count_requested: int
    gpu_seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def jct(self) -> float | None:
        """Job completion time: finish - submit. None while it has not finished."""
        return None if self.finish is None else self.finish - self.submit

    @property
    def queueing_delay(self) -> float | None:
        """From submission to the first GPUs."""
        return None if self.start is None else self.start - self.submit


@dataclass(frozen=True)
class ScheduleMetrics:
    """Figures of one schedule. Empty schedules have zeros.

    JCT: from a job's submission to its finish, over the jobs that finished; p99 is element int(0.99 n) of the sorted ones.
    Makespan: from the first submission to the last finish. GPU-hours per job: held by all jobs, checkpoints and profiling included,
    divided by the jobs. Restarts per job: stops and starts that cost a checkpoint, the first start not counted. Queueing: from submission
    to the first GPUs. Contention: jobs active (running or waiting) at a round, idle rounds included.
    """

    jobs: int
    unfinished: int
    avg_jct_hours: float
    median_jct_hours: float
    p99_jct_hours: float
    makespan_hours: float
    gpu_hours_per_job: float
    restarts_per_job: float
    avg_queueing_hours: float
    contention_mean: float
    contention_max: int


def schedule_metrics(records: Sequence[JobRecord], *, gpu_hours: float, contention: Sequence[int]) -> ScheduleMetrics:
    """All metrics at once. `gpu_hours`: held by all jobs together. `contention`: active jobs at each round, idle rounds included."""
    jct = np.array([r.jct for r in records if r.jct is not None]) / 3600
    waits = np.array([r.queueing_delay for r in records if r.queueing_delay is not None]) / 3600
    finishes = [r.finish for r in records if r.finish is not None]
    many = max(len(records), 1)
    return ScheduleMetrics(
        jobs=len(records),
        unfinished=len(records) - len(finishes),
        avg_jct_hours=_mean(jct),
        median_jct_hours=float(np.median(jct)) if len(jct) else 0.0,
        p99_jct_hours=percentile_99(jct),
        makespan_hours=(max(finishes) - min(r.submit for r in records)) / 3600 if finishes else 0.0,
        gpu_hours_per_job=gpu_hours / many,
        restarts_per_job=sum(r.restarts for r in records) / many,
        avg_queueing_hours=_mean(waits),
        contention_mean=_mean(np.array(contention, dtype=np.float64)),
        contention_max=max(contention, default=0),
    )


def percentile_99(values: FloatArray) -> float:
    """Element int(0.99 n) of the sorted values, as the published scripts take it: of 160 the second largest. 0 of none."""
    return float(np.sort(values)[int(0.99 * len(values))]) if len(values) else 0.0


def finish_time_fairness(jct: float, isolated: Mapping[str, float], gpus: Mapping[str, int]) -> float:
    """rho = sum_g N_g / N (JCT / JCT_g): the mean of the ratios by type, weighted by the type's GPUs (Sia eq. 6).

    `isolated`: the job's JCT alone on its fair share of type g; types on which it cannot run are left out and the weights of the
    others scaled up. Above 1: worse than an equal share would have been. NaN where it can run on none.
    """
    weight = sum(gpus[g] for g in isolated)
    return sum(gpus[g] / weight * (jct / isolated[g]) for g in isolated) if weight else float("nan")


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0
