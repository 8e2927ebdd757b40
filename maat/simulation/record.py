"""What happened in a run: the simulator's round store, and the result that it comes to. Decides nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from maat.scheduling.events import Event, EventKind
from maat.scheduling.metrics import JobRecord, RoundUse, ScheduleMetrics, schedule_metrics
from maat.scheduling.rounds import Changes, ClusterState, RoundResult, StoredState
from maat.simulation.adaptive_job import SimulatedJob
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import GpuTimeRule
from maat.simulation.scenario import Scenario, notes_on

Progress = Callable[["Position"], None]
MOST_NAMED = 10  # jobs that a summary names


@dataclass(frozen=True, slots=True)
class Position:
    """How far a simulation is: after `round_number`, at `now` seconds, `finished` of `jobs` jobs have ended."""

    round_number: int
    now: float
    finished: int
    jobs: int


class Cancelled(Exception):
    """Raised by a progress callback to stop a simulation between two rounds; what was done until then is kept."""


@dataclass(frozen=True)
class AllocationSpan:
    """A stretch of one job on one allocation: from `start` until the next span of the job. No GPUs: preempted."""

    job: str
    start: float
    gpu_type: str | None
    gpu_count: int
    node_count: int
    total_batch_size: int | None


@dataclass(frozen=True)
class SimulationResult:
    """What happened: per job, per round, and what it cost to compute. Arrays by round have shape (rounds,).

    `unfinished_because`: of every job that waits in the end, by name, what keeps it from GPUs.
    """

    scenario: Scenario
    records: tuple[JobRecord, ...]
    metrics: ScheduleMetrics
    round_times: tuple[float, ...]
    contention: tuple[int, ...]
    gpus_by_type: Mapping[str, tuple[int, ...]]
    policy_seconds: tuple[float, ...]
    spans: tuple[AllocationSpan, ...]
    end_time: float
    wall_seconds: float
    complete: bool
    unfinished_because: Mapping[str, str] = field(default_factory=dict)

    def _figures(self) -> dict[str, object]:
        """The metrics; times are None where no job of the kind completed, or ever started: nothing is known of them."""
        figures: dict[str, object] = dict(vars(self.metrics))
        if self.metrics.unfinished == self.metrics.jobs:
            figures |= dict.fromkeys(("median_jct_hours", "p99_jct_hours", "makespan_hours"))
        for kind, records in {"": self.records, "_large": self._of_size(large=True), "_small": self._of_size(large=False)}.items():
            if all(record.jct is None for record in records):
                figures[f"avg_jct_hours{kind}"] = None
            if all(record.queueing_delay is None for record in records):
                figures[f"avg_queueing_hours{kind}"] = None
        return figures

    def _of_size(self, *, large: bool) -> list[JobRecord]:
        return [record for record in self.records if record.is_large == large]

    def summary(self) -> dict[str, object]:
        """The figures of `maat simulate --json`, not rounded."""
        seconds = np.array(self.policy_seconds) if self.policy_seconds else np.zeros(1)
        scenario = self.scenario
        return {
            "policy": scenario.policy,
            "placer": scenario.placer,
            "fidelity": scenario.fidelity.name,
            "trace": scenario.workload.name,
            "cluster": scenario.cluster.describe(),
            "jobs_per_gpu": scenario.cluster.jobs_per_gpu,
            "interference": None if scenario.interference is None else scenario.interference.name,
            "seed": scenario.seed,
            "rounds": len(self.round_times),
            "complete": self.complete,
            **self._figures(),
            "unfinished_because": dict(list(self.unfinished_because.items())[:MOST_NAMED]),
            "notes": list(notes_on(scenario)),
            "policy_seconds_median": float(np.median(seconds)),
            "policy_seconds_p95": float(np.percentile(seconds, 95)),
            "cpu_seconds": time.process_time(),
            "wall_seconds": self.wall_seconds,
        }


class Recorder:
    """The simulator's RoundStore: keeps in memory what the figures need, and where the loop stands."""

    def __init__(self, scenario: Scenario, executor: SimulatedExecutor, on_progress: Progress | None) -> None:
        self._scenario, self._executor, self._on_progress = scenario, executor, on_progress
        self._stored = StoredState()
        self._times: list[float] = []
        self._contention: list[int] = []
        self._use: list[RoundUse] = []
        self._held: list[list[int]] = []
        self._policy_seconds: list[float] = []
        self._spans: list[AllocationSpan] = []
        self._whole_round_gpus = 0
        self._last: RoundResult | None = None

    def load(self) -> StoredState:
        return self._stored

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        if result.round_number != self._stored.next_round_number:
            return False
        self._last = result
        self._stored = StoredState(result.round_number + 1, result.decision.state, result.placement.state)
        cluster = observed.cluster
        held = np.bincount(cluster.gpu_type_of[result.placement.placement.gpus], minlength=len(cluster.gpu_types))
        self._times.append(observed.now)
        self._contention.append(len(observed.jobs))
        self._use.append(RoundUse(observed.now, len(observed.jobs), int(held.sum()), int(cluster.capacity.sum()), len(result.evicted)))
        self._held.append(held.tolist())
        self._whole_round_gpus += int(held.sum())
        if observed.jobs:
            self._policy_seconds.append(result.seconds.total)
        for event in observed.events:
            if event.data.get("cause") == EventKind.NODE_FAILED.value:
                self._spans.append(AllocationSpan(event.job_id, event.time, None, 0, 0, None))
        for change in result.changes.items:
            if change.after != change.before:
                self._spans.append(_span(change.job_id, observed, change.after.gpus if change.after else (), change.grant))
        return True

    def unapplied(self) -> Sequence[Changes]:
        return ()

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        if self._on_progress is not None:
            jobs = len(self._scenario.workload.jobs)
            self._on_progress(Position(changes.round_number, changes.time, len(self._executor.finished), jobs))

    def result(self, round_seconds: float, wall_seconds: float, complete: bool, *, failures: int) -> SimulationResult:
        every = {**self._executor.jobs, **self._executor.finished}
        jobs = [every[job.name] for job in self._scenario.workload.jobs if job.name in every]
        records = tuple(_record(job) for job in jobs)
        names = self._scenario.cluster.type_names
        return SimulationResult(
            scenario=self._scenario,
            records=records,
            metrics=schedule_metrics(
                records, gpu_hours=self._gpu_hours(jobs, round_seconds), contention=self._contention, rounds=self._use, failures=failures
            ),
            round_times=tuple(self._times),
            contention=tuple(self._contention),
            gpus_by_type={name: tuple(row[t] for row in self._held) for t, name in enumerate(names)},
            policy_seconds=tuple(self._policy_seconds),
            spans=tuple(self._spans),
            end_time=self._times[-1] if self._times else 0.0,
            wall_seconds=wall_seconds,
            complete=complete,
            unfinished_because=self._waiting(),
        )

    def _waiting(self) -> dict[str, str]:
        """Of every job that was left without GPUs, why."""
        if self._last is None:
            return {}
        left = (
            job.id
            for job in self._last.round_input.jobs
            if job.id in self._executor.jobs and self._executor.jobs[job.id].allocation is None
        )
        return {job_id: reasons.sentence for job_id in left if (reasons := self._last.reasons.get(job_id)) is not None}

    def _gpu_hours(self, jobs: Sequence[SimulatedJob], round_seconds: float) -> float:
        if self._scenario.fidelity.gpu_time is GpuTimeRule.WHOLE_ROUNDS:
            return self._whole_round_gpus * round_seconds / 3600
        return sum(sum(job.gpu_seconds.values()) + sum(job.profiling_gpu_seconds.values()) for job in jobs) / 3600


def _span(job_id: str, observed: ClusterState, gpus: tuple[int, ...], grant: object) -> AllocationSpan:
    cluster = observed.cluster
    if not gpus:
        return AllocationSpan(job_id, observed.now, None, 0, 0, None)
    at = list(gpus)
    batch = getattr(grant, "batch", None)
    kind = cluster.type_names[int(cluster.gpu_type_of[at[0]])]
    return AllocationSpan(
        job_id, observed.now, kind, len(at), len(set(cluster.gpu_node[at].tolist())), None if batch is None else batch.total_batch_size
    )


def _record(job: SimulatedJob) -> JobRecord:
    spec = job.spec
    return JobRecord(
        name=spec.name,
        model=spec.model,
        submit=spec.submitted_at,
        start=job.started_at,
        finish=job.finished_at,
        restarts=job.restarts,
        gpu_count_requested=spec.requested_gpus,
        gpu_seconds={
            t: job.gpu_seconds.get(t, 0.0) + job.profiling_gpu_seconds.get(t, 0.0) for t in {**job.gpu_seconds, **job.profiling_gpu_seconds}
        },
        interruptions=job.interruptions,
        lost_gpu_seconds=job.lost_gpu_seconds,
        adaptivity=spec.adaptivity,
    )
