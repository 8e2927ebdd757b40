"""The figures by which schedules are compared, each defined once.

Times are in seconds unless the name says hours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.vocabulary import Adaptivity, FairnessRule

LARGEST_SMALL_JOB = 4  # GPUs requested; a job that asks for more is large


@dataclass(frozen=True)
class JobRecord:
    """The record of one job.

    Attributes:
        start: When it first held GPUs; None if it never did.
        gpu_seconds: GPU seconds held, by type.
        interruptions: Times that it lost its GPUs to a failed node.
        lost_gpu_seconds: GPU seconds held since its last checkpoint at those times.
        waited: Seconds without GPUs between submission and finish, before the first start and
            after every preemption; None while it has not finished.
        held_seconds: With GPUs.
        restarting_seconds, restarting_gpu_seconds: Of these, in starts and restarts.
    """

    name: str
    model: str
    submit: float
    start: float | None
    finish: float | None
    restarts: int
    gpu_count_requested: int
    gpu_seconds: Mapping[str, float] = field(default_factory=dict)
    interruptions: int = 0
    lost_gpu_seconds: float = 0.0
    adaptivity: Adaptivity = Adaptivity.ADAPTIVE
    waited: float | None = None
    held_seconds: float = 0.0
    restarting_seconds: float = 0.0
    restarting_gpu_seconds: float = 0.0

    @property
    def jct(self) -> float | None:
        """Return the job completion time, finish - submit; None until it finishes."""
        return None if self.finish is None else self.finish - self.submit

    @property
    def queueing_delay(self) -> float | None:
        """Return the time from submission to the first GPUs."""
        return None if self.start is None else self.start - self.submit

    @property
    def is_large(self) -> bool:
        """Return whether it asks for more than four GPUs, whatever it then got."""
        return self.gpu_count_requested > LARGEST_SMALL_JOB


@dataclass(frozen=True, slots=True)
class RoundUse:
    """How one round, or several equal ones, used the cluster.

    Attributes:
        held: Places in service that jobs were given.
        usable: Places in service.
        evicted: Jobs that lost their GPUs to fragmentation alone (`eviction.evicted_jobs`).
        rounds: How many rounds from `time` on were equal.
    """

    time: float
    active_jobs: int
    held: int
    usable: int
    evicted: int = 0
    rounds: int = 1


@dataclass(frozen=True)
class ScheduleMetrics:
    """Figures of one schedule. An empty schedule or group of jobs has zeros.

    - JCT: from a job's submission to its finish, over the jobs that finished; p99 is element
      int(0.99 n) of the sorted ones.
    - Makespan: from the first submission to the last finish.
    - GPU-hours per job: held by all jobs, checkpoints and profiling included, divided by the jobs.
    - Restarts per job: stops and starts that cost a checkpoint, the first start not counted.
    - Contention: jobs active (running or waiting) at a round, idle rounds included.
    - Queueing delay: from submission to the first GPUs (profiling and the wait for the round
      included), over the jobs that ever got any.
    - Waiting in all: without GPUs between submission and finish, before the first start and after
      every preemption, over the jobs that finished.
    - Utilisation (GPUs held): GPUs given to jobs over GPUs in service, a round counted whole, as
      decided; `utilisation_busy` over the rounds with jobs, `utilisation` over all rounds of the
      makespan, idle ones included.
    - Time in restarts: checkpoint, stop, start and restore, the first start included, of the time
      for which jobs held GPUs (`restart_time_share`), and of the GPU time that they held
      (`restart_gpu_share`).
    - Large jobs request more than four GPUs, the others are small.
    - Evictions: times that a job lost the GPUs it held, all of them in service, although it was
      granted GPUs: it was granted exactly what it held and moved, or it was placed nowhere.
    - Failures: nodes that failed. Interruptions: times that a job lost its GPUs to one. GPU-hours
      lost: what those jobs had held since their last checkpoint, pauses included.
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
    large_jobs: int = 0
    avg_jct_hours_large: float = 0.0
    avg_jct_hours_small: float = 0.0
    avg_queueing_hours_large: float = 0.0
    avg_queueing_hours_small: float = 0.0
    avg_waiting_hours: float = 0.0
    avg_waiting_hours_large: float = 0.0
    avg_waiting_hours_small: float = 0.0
    utilisation: float = 0.0
    utilisation_busy: float = 0.0
    restarts: int = 0
    evictions: int = 0
    failures: int = 0
    interruptions: int = 0
    lost_gpu_hours: float = 0.0
    restart_time_share: float = 0.0
    restart_gpu_share: float = 0.0


def schedule_metrics(
    records: Sequence[JobRecord],
    *,
    gpu_hours: float,
    rounds: Sequence[RoundUse],
    failures: int = 0,
) -> ScheduleMetrics:
    """Return all metrics.

    Args:
        gpu_hours: Held by all jobs together.
        rounds: How every round used the cluster, idle rounds included.
        failures: Nodes that failed.
    """
    jct = _jct_hours(records)
    large, small = [r for r in records if r.is_large], [r for r in records if not r.is_large]
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
        avg_queueing_hours=_mean(_queueing_hours(records)),
        contention_mean=sum(r.active_jobs * r.rounds for r in rounds)
        / max(sum(r.rounds for r in rounds), 1),
        contention_max=max((r.active_jobs for r in rounds), default=0),
        large_jobs=len(large),
        avg_jct_hours_large=_mean(_jct_hours(large)),
        avg_jct_hours_small=_mean(_jct_hours(small)),
        avg_queueing_hours_large=_mean(_queueing_hours(large)),
        avg_queueing_hours_small=_mean(_queueing_hours(small)),
        avg_waiting_hours=_mean(_waiting_hours(records)),
        avg_waiting_hours_large=_mean(_waiting_hours(large)),
        avg_waiting_hours_small=_mean(_waiting_hours(small)),
        utilisation=_share_held(rounds_of_makespan(rounds, records)),
        utilisation_busy=_share_held([r for r in rounds if r.active_jobs]),
        restarts=sum(r.restarts for r in records),
        evictions=sum(r.evicted for r in rounds),
        failures=failures,
        interruptions=sum(r.interruptions for r in records),
        lost_gpu_hours=sum(r.lost_gpu_seconds for r in records) / 3600,
        restart_time_share=_share(
            sum(r.restarting_seconds for r in records), of=sum(r.held_seconds for r in records)
        ),
        restart_gpu_share=_share(
            sum(r.restarting_gpu_seconds for r in records),
            of=sum(sum(r.gpu_seconds.values()) for r in records),
        ),
    )


def _jct_hours(records: Sequence[JobRecord]) -> FloatArray:
    return np.array([r.jct for r in records if r.jct is not None]) / 3600


def _queueing_hours(records: Sequence[JobRecord]) -> FloatArray:
    return np.array([r.queueing_delay for r in records if r.queueing_delay is not None]) / 3600


def _waiting_hours(records: Sequence[JobRecord]) -> FloatArray:
    return np.array([r.waited for r in records if r.waited is not None]) / 3600


def rounds_of_makespan(rounds: Sequence[RoundUse], records: Sequence[JobRecord]) -> list[RoundUse]:
    """Return the rounds from the first submission on, before the last finish.

    All later rounds count if a job did not finish.
    """
    first = min((r.submit for r in records), default=0.0)
    last = max((float("inf") if r.finish is None else r.finish for r in records), default=0.0)
    return [r for r in rounds if first <= r.time < last]


def _share_held(rounds: Sequence[RoundUse]) -> float:
    return sum(r.held * r.rounds for r in rounds) / max(sum(r.usable * r.rounds for r in rounds), 1)


def percentile_99(values: FloatArray) -> float:
    """Return element int(0.99 n) of the sorted values, as the published scripts do.

    Of 160 values that is the second largest. 0 if there are none.
    """
    return float(np.sort(values)[int(0.99 * len(values))]) if len(values) else 0.0


def finish_time_fairness(
    jct: float,
    isolated: Mapping[str, float],
    gpus: Mapping[str, int],
    *,
    rule: FairnessRule = FairnessRule.MEAN_OF_RATIOS,
) -> float:
    """Return rho = sum_g N_g / N (JCT / JCT_g) (Sia eq. 6).

    This is the mean of the ratios by type, weighted by the type's GPUs. Under RATIO_TO_MEAN it is
    rho = JCT / (sum_g N_g / N JCT_g), as in the published script. Above 1 an equal share would
    have been better. NaN if the job can run on no type.

    `isolated`: the job's JCT alone on its fair share of type g. Types on which it cannot run are
    left out, and the weights of the others are scaled up.
    """
    weight = sum(gpus[g] for g in isolated)
    if not weight:
        return float("nan")
    if rule is FairnessRule.RATIO_TO_MEAN:
        return jct / sum(gpus[g] / weight * isolated[g] for g in isolated)
    return sum(gpus[g] / weight * (jct / isolated[g]) for g in isolated)


def _share(part: float, *, of: float) -> float:
    return part / of if of else 0.0


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0
