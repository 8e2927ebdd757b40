"""The record of a run: the simulator's round store, and the result it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from maat.scheduling.events import Event, EventKind
from maat.scheduling.eviction import evicted_jobs, moved_by_placer
from maat.scheduling.explain import NEVER_RUNS, Reasons
from maat.scheduling.metrics import (
    JobRecord,
    RoundUse,
    ScheduleMetrics,
    rounds_of_makespan,
    schedule_metrics,
)
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Change, Changes, ClusterState, PolicyState, StoredState
from maat.scheduling.standing import RoundsAhead
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.failures import Outages
from maat.simulation.fidelity import GpuTimeRule
from maat.simulation.notes import (
    PlacerMoves,
    notes_on,
    notes_on_clock,
    notes_on_moves,
    notes_on_never,
)
from maat.simulation.scenario import Scenario
from maat.simulation.series import RunSeries, run_series
from maat.simulation.simulated_job import SimulatedJob
from maat.vocabulary import JobState

Progress = Callable[["Position"], None]
MOST_NAMED = 10  # jobs that a summary names

# Percentiles of the CPU seconds of rounds, by the end of a figure's name (Sia figure 9).
POLICY_QUANTILES: Mapping[str, float] = {"median": 50, "p25": 25, "p75": 75, "p95": 95}
PLACEMENT_QUANTILES: Mapping[str, float] = {"median": 50, "p95": 95}


@dataclass(frozen=True, slots=True)
class Position:
    """The progress of a simulation: `finished` of `jobs` jobs after a round."""

    round_number: int
    now: float
    finished: int
    jobs: int


class Cancelled(Exception):
    """Raised by a progress callback to stop a simulation between two rounds.

    What was recorded until then is kept.
    """


@dataclass(frozen=True)
class AllocationSpan:
    """The time of one job on one allocation, from `start` to the job's next span.

    Without GPUs: preempted.
    """

    job: str
    start: float
    gpu_type: str | None
    gpu_count: int
    node_count: int
    total_batch_size: int | None


@dataclass(frozen=True)
class SimulationResult:
    """The result of a run: per job, per round, and its cost.

    `round_times`, `contention` and `gpus_by_type` have one value per round, except that a series of
    skipped idle rounds has only its first and last; `rounds` counts all. `policy_seconds`,
    `placement_seconds`: CPU seconds of policy and placer in each round that had jobs and was not
    skipped. `cpu_seconds`,
    `wall_seconds`: of the simulation in this process, without imports, reading and earlier runs.
    `unfinished_because`: by name, why a job has no GPUs at the end; `cannot_run`: of them, those
    that never run however long they wait. `rounds_out_of_time`: rounds in
    which a time limit ended a solver's search, so that another machine may get another result.
    `restarts_by_placer`: restarts of jobs that the policy left as they were and the placer moved.
    `metrics` are of the `measured` jobs: all, or a window of them.
    `stopped`: the run was stopped early, and the records are of the jobs that had arrived by then.
    `series`: what jobs and cluster did over time.
    """

    scenario: Scenario
    records: tuple[JobRecord, ...]
    metrics: ScheduleMetrics
    rounds: int
    round_times: tuple[float, ...]
    contention: tuple[int, ...]
    gpus_by_type: Mapping[str, tuple[int, ...]]
    policy_seconds: tuple[float, ...]
    placement_seconds: tuple[float, ...]
    spans: tuple[AllocationSpan, ...]
    end_time: float
    cpu_seconds: float
    wall_seconds: float
    complete: bool
    series: RunSeries
    unfinished_because: Mapping[str, str] = field(default_factory=dict)
    cannot_run: frozenset[str] = frozenset()
    rounds_out_of_time: int = 0
    restarts_by_placer: int = 0
    stopped: bool = False

    def figures(self) -> dict[str, float | int | None]:
        """Return the metrics, and the CPU seconds of rounds (`timings`), by name.

        Times without any job or round to measure are None.
        """
        figures: dict[str, float | int | None] = {**vars(self.metrics), **self.timings()}
        if self.metrics.unfinished == self.metrics.jobs:
            figures |= dict.fromkeys(("median_jct_hours", "p99_jct_hours", "makespan_hours"))
        for kind, records in {
            "": self.measured,
            "_large": self._of_size(large=True),
            "_small": self._of_size(large=False),
        }.items():
            if all(record.jct is None for record in records):
                figures[f"avg_jct_hours{kind}"] = figures[f"avg_waiting_hours{kind}"] = None
            if all(record.queueing_delay is None for record in records):
                figures[f"avg_queueing_hours{kind}"] = None
        return figures

    def timings(self) -> dict[str, float | None]:
        """Return quantiles of the CPU seconds of policy and placer per round.

        They are of this machine and this run of it: no two runs of a scenario have equal ones.
        """
        return {
            f"{part}_seconds_{name}": float(np.percentile(seconds, share)) if seconds else None
            for part, seconds, shares in (
                ("policy", self.policy_seconds, POLICY_QUANTILES),
                ("placement", self.placement_seconds, PLACEMENT_QUANTILES),
            )
            for name, share in shares.items()
        }

    def _of_size(self, *, large: bool) -> list[JobRecord]:
        return [record for record in self.measured if record.is_large == large]

    @cached_property
    def measured(self) -> Sequence[JobRecord]:
        """The records of the jobs that the figures are of."""
        return measured_of(self.scenario, self.records)

    def _notes(self) -> list[str]:
        notes = list(
            notes_on_never(
                self.scenario.policy,
                self.scenario.placer,
                count=len(self.cannot_run),
                jobs=self.metrics.jobs,
                because=self._why_not(),
            )
        )
        if self.stopped:
            arrived = f"{len(self.records)} of {len(self.scenario.workload)} jobs"
            notes.append(
                f"The run was stopped at hour {self.end_time / 3600:.1f}: "
                f"its figures are of the {arrived} that had arrived by then."
            )
        moves = PlacerMoves(
            self.scenario.policy,
            self.scenario.placer,
            self.restarts_by_placer,
            self.metrics.restarts,
            self.metrics.jobs,
        )
        out_of_time = notes_on_clock([self.rounds_out_of_time])
        return [*notes, *notes_on(self.scenario), *out_of_time, *notes_on_moves([moves])]

    def _why_not(self) -> list[str]:
        """Return why jobs can never run, each sentence once."""
        because = self.unfinished_because.items()
        return list(dict.fromkeys(why for name, why in because if name in self.cannot_run))

    def summary(self) -> dict[str, object]:
        """Return the figures of `maat simulate --json`, not rounded."""
        scenario = self.scenario
        return {
            "policy": scenario.policy,
            "placer": scenario.placer,
            "fidelity": scenario.conditions.fidelity.name,
            "trace": scenario.workload.name,
            "cluster": scenario.cluster.describe(),
            "jobs_per_gpu": scenario.cluster.jobs_per_gpu,
            "interference": None
            if scenario.conditions.interference is None
            else scenario.conditions.interference.name,
            "seed": scenario.seed,
            "rounds": self.rounds,
            "complete": self.complete,
            "stopped": self.stopped,
            **self.figures(),
            "cannot_run": len(self.cannot_run),
            "unfinished_because": dict(list(self.unfinished_because.items())[:MOST_NAMED]),
            "rounds_out_of_time": self.rounds_out_of_time,
            "restarts_by_placer": self.restarts_by_placer,
            "notes": self._notes(),
            "cpu_seconds": self.cpu_seconds,
            "wall_seconds": self.wall_seconds,
        }


class Recorder:
    """The simulator's RoundStore: keeps what the figures need, in memory."""

    def __init__(
        self,
        scenario: Scenario,
        executor: SimulatedExecutor,
        on_progress: Progress | None,
        *,
        placer_state: PolicyState = PolicyState(),
    ) -> None:
        """`placer_state`: the placer's state before the first round."""
        self._scenario, self._executor, self._on_progress = scenario, executor, on_progress
        self._stored = StoredState(placer_state=placer_state)
        self._use: list[RoundUse] = []
        self._held_by_type: list[list[int]] = []
        self._policy_seconds: list[float] = []
        self._placement_seconds: list[float] = []
        self._spans: list[AllocationSpan] = []
        self._whole_round_gpus = 0
        self._out_of_time = 0
        self._moved: tuple[str, ...] = ()
        self._restarts_by_placer = 0
        self._last: RoundResult | None = None

    def load(self) -> StoredState:
        return self._stored

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        if result.round_number != self._stored.next_round_number:
            return False
        self._last = result
        self._out_of_time += result.decision.report.out_of_time
        self._moved = moved_by_placer(result)
        self._stored = StoredState(
            result.round_number + 1, result.decision.state, result.placement.state
        )
        cluster = observed.cluster
        held = np.bincount(
            cluster.gpu_type_of[result.placement.placement.gpus], minlength=len(cluster.gpu_types)
        )
        self._use.append(
            RoundUse(
                observed.now,
                len(observed.jobs),
                int(held.sum()),
                int(cluster.capacity.sum()),
                len(evicted_jobs(result)),
            )
        )
        self._held_by_type.append(held.tolist())
        self._whole_round_gpus += int(held.sum())
        if observed.jobs:
            self._policy_seconds.append(result.seconds.policy)
            self._placement_seconds.append(result.seconds.place)
        for event in observed.events:
            if event.data.get("cause") == EventKind.NODE_FAILED.value:
                self._spans.append(AllocationSpan(event.job_id, event.time, None, 0, 0, None))
        for change in result.changes.items:
            if change.after != change.before:
                self._spans.append(_span(change, observed))
        return True

    def unapplied(self) -> Sequence[Changes]:
        return ()

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        self._restarts_by_placer += sum(
            event.state is JobState.RESTARTING and event.job_id in self._moved for event in events
        )
        self._tell(changes.round_number, changes.time)

    def passed_over(self, ahead: RoundsAhead, count: int) -> None:
        """Record `count` rounds ahead as repetitions of the last round that ran.

        Of idle rounds, the first and the last stand for all.
        """
        self._stored = replace(
            self._stored, next_round_number=self._stored.next_round_number + count
        )
        last = replace(self._use[-1], evicted=0)
        if last.active_jobs:
            alike = [replace(last, time=ahead.time(index)) for index in range(count)]
        else:
            alike = [replace(last, time=ahead.time(0), rounds=count - 1)] if count > 1 else []
            alike.append(replace(last, time=ahead.time(count - 1)))
        self._use += alike
        self._held_by_type += [self._held_by_type[-1]] * len(alike)
        self._whole_round_gpus += last.held * count
        self._tell(self._stored.next_round_number - 1, ahead.time(count - 1))

    def _tell(self, round_number: int, now: float) -> None:
        if self._on_progress is not None:
            self._on_progress(
                Position(
                    round_number,
                    now,
                    len(self._executor.finished),
                    len(self._scenario.workload.jobs),
                )
            )

    def result(
        self,
        round_seconds: float,
        *,
        stopped: bool,
        outages: Outages,
        cpu_seconds: float,
        wall_seconds: float,
    ) -> SimulationResult:
        every = {**self._executor.jobs, **self._executor.finished}
        jobs = [every[job.name] for job in self._scenario.workload.jobs if job.name in every]
        records = tuple(_record(job) for job in jobs)
        names = self._scenario.cluster.type_names
        waiting = self._waiting()
        measured = measured_of(self._scenario, records)
        end_time = self._use[-1].time if self._use else 0.0
        return SimulationResult(
            scenario=self._scenario,
            records=records,
            metrics=schedule_metrics(
                measured,
                gpu_hours=self._gpu_hours(jobs, round_seconds)
                if len(measured) == len(records)
                else _gpu_hours_of(measured),
                rounds=self._use
                if len(measured) == len(records)
                else rounds_of_makespan(self._use, measured),
                failures=len(outages.between(-1.0, self._executor.now)),
            ),
            rounds=sum(use.rounds for use in self._use),
            round_times=tuple(use.time for use in self._use),
            contention=tuple(use.active_jobs for use in self._use),
            gpus_by_type={
                name: tuple(row[t] for row in self._held_by_type) for t, name in enumerate(names)
            },
            policy_seconds=tuple(self._policy_seconds),
            placement_seconds=tuple(self._placement_seconds),
            spans=tuple(self._spans),
            end_time=end_time,
            cpu_seconds=cpu_seconds,
            wall_seconds=wall_seconds,
            complete=not stopped and not self._executor.jobs,
            series=run_series(
                {job.spec.id: job for job in jobs},
                self._scenario.cluster,
                outages,
                end_time=max(end_time, self._executor.now),
            ),
            unfinished_because={name: why.sentence for name, why in waiting.items()},
            cannot_run=frozenset(n for n, why in waiting.items() if why.primary in NEVER_RUNS),
            stopped=stopped,
            rounds_out_of_time=self._out_of_time,
            restarts_by_placer=self._restarts_by_placer,
        )

    def _waiting(self) -> dict[str, Reasons]:
        """Return by name why a job has no GPUs."""
        if self._last is None:
            return {}
        left = (
            job.id
            for job in self._last.round_input.jobs
            if job.id in self._executor.jobs and self._executor.jobs[job.id].allocation is None
        )
        return {
            job_id: reasons
            for job_id in left
            if (reasons := self._last.reasons.get(job_id)) is not None
        }

    def _gpu_hours(self, jobs: Sequence[SimulatedJob], round_seconds: float) -> float:
        if self._scenario.conditions.fidelity.gpu_time is GpuTimeRule.WHOLE_ROUNDS:
            return self._whole_round_gpus * round_seconds / 3600
        seconds = sum(
            sum(job.ledger.gpu_seconds.values()) + sum(job.ledger.profiling_gpu_seconds.values())
            for job in jobs
        )
        return seconds / 3600


def measured_of(scenario: Scenario, records: Sequence[JobRecord]) -> Sequence[JobRecord]:
    """Return the records of the jobs that the figures are of."""
    window = scenario.conditions.measured_jobs
    if window is None:
        return records
    names = {job.name for job in window.of(scenario.workload.jobs)}
    return [record for record in records if record.name in names]


def _gpu_hours_of(records: Sequence[JobRecord]) -> float:
    return sum(sum(record.gpu_seconds.values()) for record in records) / 3600


def _span(change: Change, observed: ClusterState) -> AllocationSpan:
    """The span that a change of allocation begins."""
    job_id, now, cluster = change.job_id, observed.now, observed.cluster
    if change.after is None:
        return AllocationSpan(job_id, now, None, 0, 0, None)
    at = list(change.after.gpus)
    plan = None if change.grant is None else change.grant.batch
    return AllocationSpan(
        job_id,
        now,
        cluster.type_names[int(cluster.gpu_type_of[at[0]])],
        len(at),
        len(set(cluster.gpu_node[at].tolist())),
        None if plan is None else plan.total_batch_size,
    )


def _record(job: SimulatedJob) -> JobRecord:
    spec, ledger = job.spec, job.ledger
    return JobRecord(
        name=spec.name,
        model=spec.model,
        submit=spec.submitted_at,
        start=ledger.started_at,
        finish=ledger.finished_at,
        restarts=ledger.restarts,
        gpu_count_requested=spec.requested_gpus,
        gpu_seconds=ledger.total_gpu_seconds,
        interruptions=ledger.interruptions,
        lost_gpu_seconds=ledger.lost_gpu_seconds,
        adaptivity=spec.adaptivity,
        waited=None if ledger.finished_at is None else ledger.waited_seconds,
        held_seconds=ledger.held_seconds,
        restarting_seconds=ledger.restarting_seconds,
        restarting_gpu_seconds=ledger.restarting_gpu_seconds,
    )
