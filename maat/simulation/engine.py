"""Plays a workload through under one policy and placer: the live round loop on a clock that jumps, and a record of what happened."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from maat.scheduling.belief import Fitter
from maat.scheduling.bootstrap import ProjectByConstant, Projection, project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError, TraceError
from maat.scheduling.events import Event, EventKind
from maat.scheduling.job import Adaptivity
from maat.scheduling.loop import RoundLoop
from maat.scheduling.metrics import JobRecord, RoundUse, ScheduleMetrics, schedule_metrics
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.reservations import Reservation, check_reservations
from maat.scheduling.rounds import Changes, ClusterState, Placer, Policy, RoundResult, StoredState
from maat.simulation.adaptive_job import SimulatedJob
from maat.simulation.adaptivity_shares import draw_adaptivity
from maat.simulation.conditions import Condition, SharedGpus, UnequalGpus
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.failures import Failures, Outages
from maat.simulation.fidelity import FIDELITIES, Fidelity, GpuTimeRule
from maat.simulation.interference import Interference
from maat.simulation.models import Model
from maat.simulation.tuned_jobs import TunedJobs, tuned
from maat.simulation.variability import Variability, draw_scores
from maat.simulation.workloads import TraceJob, Workload

Progress = Callable[["Position"], None]


class Cancelled(Exception):
    """Raised by a progress callback to stop a simulation between two rounds; what was done until then is kept."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a simulation is: after `round_number`, at `now` seconds, `finished` of `jobs` jobs have ended."""

    round_number: int
    now: float
    finished: int
    jobs: int


@dataclass(frozen=True)
class Scenario:
    """All that a run follows from: the same scenario gives the same result.

    `rigid_share`, `strong_scaling_share`: shares of the jobs, drawn by the seed, that keep the trace's batch size, and its GPU count too.
    `interference`: what jobs on one GPU lose; needed where the cluster lets several share one.
    `variability`: measurements from which the scores of the cluster's GPUs are drawn; None: the cluster's own scores, if any. `locality_penalties`:
    by model, instead of the model's own. `tuned`: jobs keep GPU counts and batch sizes that a well-informed owner chose, drawn by the seed, instead
    of the trace's.
    """

    workload: Workload
    models: Mapping[str, Model]
    cluster: Cluster
    policy: str = "sia"
    placer: str = "whole-node"
    policy_parameters: Mapping[str, object] = field(default_factory=dict)
    placer_parameters: Mapping[str, object] = field(default_factory=dict)
    fidelity: Fidelity = field(default_factory=lambda: FIDELITIES["paper"])
    round_seconds: float | None = None
    seed: int = 0
    max_rounds: int = 1_000_000
    failures: Failures = ()
    rigid_share: float = 0.0
    strong_scaling_share: float = 0.0
    reservations: tuple[Reservation, ...] = ()
    interference: Interference | None = None
    variability: Variability | None = None
    locality_penalties: Mapping[str, float] = field(default_factory=dict)
    tuned: TunedJobs | None = None

    @cached_property
    def tuned_jobs(self) -> Mapping[str, TraceJob]:
        """The jobs whose GPU count and batch size were tuned, by name, as they are submitted; they are rigid."""
        return {} if self.tuned is None else tuned(self.workload.jobs, self.true_models, self.cluster, self.tuned, seed=self.seed)

    @cached_property
    def true_models(self) -> Mapping[str, Model]:
        """The models as the fidelity has them be."""
        return {name: model.under(self.fidelity) for name, model in self.models.items()}


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
    """What happened: per job, per round, and what it cost to compute. Arrays by round have shape (rounds,)."""

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

    def _figures(self) -> dict[str, object]:
        """The metrics; completion times are None where no job completed: nothing is known of them."""
        figures: dict[str, object] = dict(vars(self.metrics))
        if self.metrics.unfinished == self.metrics.jobs:
            figures |= dict.fromkeys(name for name in figures if "jct" in name or name == "makespan_hours")
        return figures

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
            "policy_seconds_median": float(np.median(seconds)),
            "policy_seconds_p95": float(np.percentile(seconds, 95)),
            "cpu_seconds": time.process_time(),
            "wall_seconds": self.wall_seconds,
        }


def simulate(scenario: Scenario, *, on_progress: Progress | None = None, fitter: Fitter | None = None) -> SimulationResult:
    """Run a scenario to the end of its last job. Raises TraceError where a job of it could never run on this cluster.

    `fitter`: one that remembers, where many runs fit the same samples; it changes no result.
    """
    began = time.perf_counter()
    scenario = _with_scores(scenario)
    check_reservations(scenario.reservations, scenario.cluster, job_ids={job.name for job in scenario.workload.jobs})
    clock = JumpingClock()
    outages = Outages(scenario.cluster, scenario.failures, seed=scenario.seed)
    slowdowns = slowdowns_of(scenario)
    told = scenario.fidelity.told_to(scenario.policy)
    conditions = _conditions(scenario, slowdowns)
    executor = SimulatedExecutor(scenario.cluster, clock, told, fitter=fitter, outages=outages, conditions=conditions)
    _submit(scenario, executor)
    policy, placer = build_parts(scenario)
    recorder = Recorder(scenario, executor, on_progress)
    loop = RoundLoop(
        policy=policy,
        placer=placer,
        executor=executor,
        store=recorder,
        clock=clock,
        round_seconds=round_seconds_of(scenario, policy),
        reservations=scenario.reservations,
        interference=slowdowns,
        projection=projection_of(scenario),
        seed=scenario.seed,
    )
    complete = True
    try:
        loop.run(until=scenario.max_rounds * loop.round_seconds)
    except Cancelled:
        complete = False
    failed = len(outages.between(-1.0, clock.now()))
    return recorder.result(loop.round_seconds, time.perf_counter() - began, complete and not executor.jobs, failures=failed)


def build_parts(scenario: Scenario) -> tuple[Policy, Placer]:
    """The policy and placer of a scenario, with its fidelity's parameters where the scenario sets none of its own."""
    preset = scenario.fidelity.policy_parameters.get(scenario.policy, {})
    policy = POLICIES.build(scenario.policy, {**preset, **scenario.policy_parameters})
    preset = scenario.fidelity.placer_parameters.get(scenario.placer, {})
    return policy, PLACERS.build(scenario.placer, {**preset, **scenario.placer_parameters})


def round_seconds_of(scenario: Scenario, policy: Policy) -> float:
    """Between rounds: as the scenario says, else its fidelity, else the policy."""
    said = (scenario.round_seconds, scenario.fidelity.round_seconds)
    return next((seconds for seconds in said if seconds is not None), policy.round_seconds)


def projection_of(scenario: Scenario) -> Projection:
    """How a type that a job never ran on is estimated under this fidelity."""
    if not scenario.fidelity.project_by_constant:
        return project_by_profile
    return ProjectByConstant({name: model.reference_throughput for name, model in scenario.true_models.items()})


def slowdowns_of(scenario: Scenario) -> Mapping[tuple[str, str, int], float]:
    """(victim model, partner model, GPU count) -> slowdown for what may meet on a GPU; nothing where no GPU is shared.

    Raises InterferenceError where GPUs are shared and it is not known what that costs.
    """
    if scenario.cluster.jobs_per_gpu == 1:
        return {}
    if scenario.interference is None:
        raise InterferenceError(
            "is missing where several jobs may share a GPU",
            field="interference",
            remedy="Give a table of measured pairs, 'synthetic', or a constant such as 1.25.",
        )
    most = max([scenario.fidelity.most_gpus_per_job, *(job.gpu_count for job in scenario.workload.jobs)])
    return scenario.interference.between(scenario.workload.models, range(1, most + 1))


def _conditions(scenario: Scenario, slowdowns: Mapping[tuple[str, str, int], float]) -> tuple[Condition, ...]:
    apart = any(_penalty(scenario, name) > 1 for name in scenario.workload.models)
    unequal = (UnequalGpus(scenario.cluster),) if scenario.cluster.scores or apart else ()
    return (*unequal, SharedGpus(slowdowns)) if slowdowns else unequal


def _with_scores(scenario: Scenario) -> Scenario:
    if scenario.variability is None:
        return scenario
    rules = scenario.fidelity.variability
    needed = {rules.classes[name] for name in scenario.workload.models if name in rules.classes}
    scores = draw_scores(scenario.variability, scenario.cluster, rules, needed=needed, seed=scenario.seed)
    return replace(scenario, cluster=replace(scenario.cluster, scores=scores))


def _penalty(scenario: Scenario, model: str) -> float:
    return scenario.locality_penalties.get(model, scenario.models[model].locality_penalty)


def _submit(scenario: Scenario, executor: SimulatedExecutor) -> None:
    cluster, told = scenario.cluster, scenario.fidelity.told_to(scenario.policy)
    adaptivity = draw_adaptivity(
        scenario.workload.jobs,
        scenario.true_models,
        rigid_share=scenario.rigid_share,
        strong_scaling_share=scenario.strong_scaling_share,
        seed=scenario.seed,
    )
    adaptivity = {**adaptivity, **dict.fromkeys(scenario.tuned_jobs, Adaptivity.RIGID)}
    for row, job in enumerate((scenario.tuned_jobs.get(job.name, job) for job in scenario.workload.jobs), start=2):
        model = scenario.true_models[job.model]
        spec = model.job_spec(job, told, adaptivity=adaptivity[job.name])
        spec = replace(spec, locality_penalty=_penalty(scenario, job.model))
        usable = [t for t in cluster.type_names if spec.may_use(t)]
        if not usable:
            raise TraceError(
                f"cannot run on any GPU type of this cluster ({', '.join(cluster.type_names)})",
                field="application",
                value=job.model,
                remedy=f"Measured are: {', '.join(model.memory)}.",
                source=scenario.workload.name,
                row=row,
            )
        if spec.is_rigid and all(spec.requested_gpus % spec.replica_gpus(t) for t in usable):
            raise TraceError(
                "is no whole number of replicas of this rigid job",
                field="num_replicas",
                value=spec.requested_gpus,
                remedy=f"One replica takes {', '.join(f'{spec.replica_gpus(t)} GPUs of {t}' for t in usable)}.",
                source=scenario.workload.name,
                row=row,
            )
        executor.submit(spec, model.truth, restart_seconds=model.restart_seconds, work_scale=job.work_scale, regimes=job.regimes)


class JumpingClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep_until(self, time: float) -> None:
        self._now = max(self._now, time)


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

    def load(self) -> StoredState:
        return self._stored

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        if result.round_number != self._stored.next_round_number:
            return False
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
        )

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
