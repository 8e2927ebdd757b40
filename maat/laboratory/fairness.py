"""Finish-time fairness of a simulated schedule (Sia section 5.5).

Compares each job with itself, alone on an equal share of each GPU type.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from maat.models.truth import Shape
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, TypeBelief
from maat.scheduling.configuration import Configuration, ConfigurationTable, sia_configurations
from maat.scheduling.goodput import BatchLimits, best_plans
from maat.scheduling.isolation import (
    fair_shares,
    is_allowed,
    of_type,
    seconds_alone,
    seconds_at_share,
    seconds_on_request,
)
from maat.scheduling.job import Allocation, JobSpec
from maat.scheduling.matrix import NO_LOSS
from maat.scheduling.metrics import finish_time_fairness
from maat.simulation.executor import epoch_ends
from maat.simulation.profiling import PROFILED_BATCH_SIZES, profile_shape
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.simulated_job import SimulatedJob
from maat.simulation.world import World
from maat.vocabulary import Adaptivity, FairnessRule
from maat.workloads.workloads import TraceJob


@dataclass(frozen=True)
class Fairness:
    """rho by job name; above 1: worse off than alone on an equal share.

    Jobs that did not finish are left out.
    """

    rho: Mapping[str, float]
    rule: FairnessRule = FairnessRule.MEAN_OF_RATIOS

    @property
    def mean(self) -> float:
        return sum(self.rho.values()) / max(len(self.rho), 1)

    @property
    def median(self) -> float:
        return float(np.median(list(self.rho.values()))) if self.rho else 0.0

    @property
    def worst(self) -> float:
        """The largest rho of any finished job."""
        return max(self.rho.values(), default=0.0)

    @property
    def unfair_fraction(self) -> float:
        """Share of jobs with rho > 1, in 0-1."""
        return sum(rho > 1 for rho in self.rho.values()) / max(len(self.rho), 1)


def fairness(
    result: SimulationResult,
    *,
    rule: FairnessRule = FairnessRule.MEAN_OF_RATIOS,
    alone: IsolatedRuns | None = None,
) -> Fairness:
    """Return rho of every finished job, by a rule of `finish_time_fairness`.

    By default rho = sum_g N_g / N (JCT / JCT_g) (Sia eq. 6). JCT_g is the JCT of the job alone,
    with N / n_avg GPUs of type g to grow into (at most all of them), where n_avg is the mean number
    of active jobs over the rounds of its life; with N_g / n_avg under the rule `share-of-type`. It
    starts on the fewest GPUs, at most doubles each round and pays for its restarts, as under Sia;
    this holds for every policy, so that all are measured by one yardstick. Between whole shares
    JCT_g is interpolated; a share below one GPU takes proportionally longer. Every job is compared
    with itself as an adaptive job, even if the scenario bound it. Latency-bound inference, whose
    value is not a completion time, is left out.

    `alone`: isolated runs to share between rules and policies; of the same models, cluster and
    fidelity.
    """
    scenario = result.scenario
    alone = IsolatedRuns(scenario) if alone is None else alone
    by_name = {job.name: job for job in scenario.workload.jobs}
    gpus = {
        name: int(n)
        for name, n in zip(scenario.cluster.type_names, scenario.cluster.usable_gpus, strict=True)
    }
    rho = {}
    for record in result.measured:
        if (
            record.jct is not None
            and record.finish is not None
            and by_name[record.name].promised_seconds is None
        ):
            contention = contention_of_life(result, record.submit, record.finish)
            isolated = alone.by_type(by_name[record.name], fair_shares(gpus, contention, rule))
            rho[record.name] = finish_time_fairness(record.jct, isolated, gpus, rule=rule)
    return Fairness(rho, rule)


def fairness_by_rule(
    result: SimulationResult, *, alone: Scenario | None = None
) -> Mapping[FairnessRule, Fairness]:
    """Compute finish-time fairness by every rule, from isolated runs that the rules share.

    `alone`: the scenario whose models, cluster and conditions isolated runs have; None: its own.
    """
    isolated = IsolatedRuns(result.scenario if alone is None else alone)
    return {rule: fairness(result, rule=rule, alone=isolated) for rule in FairnessRule}


def static_fairness(result: SimulationResult, *, alone: IsolatedRuns | None = None) -> Fairness:
    """Return rho of every finished job by the published Shockwave simulator.

    rho = JCT / (seconds alone on the GPUs that the job asked for x max(1, jobs of the workload /
    GPUs)): one contention factor for all jobs and all times, and a share of the time, not of the
    GPUs. Alone means from submission, without a restart to pay. On several types, their mean
    weighted by GPUs as in Sia eq. 6.
    """
    scenario = result.scenario
    alone = IsolatedRuns(scenario) if alone is None else alone
    by_name = {job.name: job for job in World.of(scenario).jobs}
    gpus = {
        name: int(n)
        for name, n in zip(scenario.cluster.type_names, scenario.cluster.usable_gpus, strict=True)
    }
    contention = max(len(by_name) / max(sum(gpus.values()), 1), 1.0)
    rho = {}
    for record in result.measured:
        if record.jct is not None:
            shared = {
                t: seconds * contention
                for t, seconds in alone.on_request(by_name[record.name]).items()
            }
            if shared:  # empty if no type holds the request; elastic policies may run it
                rho[record.name] = finish_time_fairness(record.jct, shared, gpus)
    return Fairness(rho)


def contention_of_life(result: SimulationResult, submit: float, finish: float) -> float:
    """Return the mean number of active jobs from submission to finish; at least 1."""
    first, end = bisect_left(result.round_times, submit), bisect_right(result.round_times, finish)
    lived = result.contention[first:end]
    return max(sum(lived) / len(lived), 1.0) if lived else 1.0


class IsolatedRuns:
    """JCTs of lone jobs on whole configurations, each computed once."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._world = scenario, World.of(scenario)
        self._table = sia_configurations(scenario.cluster)
        self._beliefs: dict[tuple[str, str], TypeBelief] = {}
        self._seconds: dict[tuple[object, ...], float] = {}
        self._requested: dict[tuple[object, ...], float] = {}

    def by_type(self, job: TraceJob, shares: Mapping[str, float]) -> Mapping[str, float]:
        """Return the JCT in seconds alone on `shares` of GPUs, by type.

        Has every type on which the job can run. A job that sets its own batch sizes runs on the
        GPUs that it asks for, and on a smaller share proportionally longer.
        """
        if job.regimes:
            return {
                t: seconds_on_request(seconds, job.gpu_count, shares[t])
                for t, seconds in self.on_request(job).items()
            }
        spec = self._world.true_models[job.model].job_spec(job, self._scenario.conditions.fidelity)
        found = {}
        for kind in self._scenario.cluster.type_names:
            replica = spec.replica_gpus(kind)
            usable = [
                c
                for c in _measured(self._table, spec, kind)
                if is_allowed(
                    c.gpu_count, least=job.min_gpus, most=job.max_gpus, replica_gpus=replica
                )
            ]
            if spec.may_use(kind) and usable:
                found[kind] = seconds_at_share(partial(self._run, job, spec), usable, shares[kind])
        return found

    def on_request(self, job: TraceJob) -> Mapping[str, float]:
        """Return the seconds alone on the requested GPUs, by type, without restarts.

        Nodes are filled one after the other. Has every type with enough GPUs.
        """
        scenario, cluster = self._scenario, self._scenario.cluster
        adaptivity = Adaptivity.RIGID if job.name in self._world.tuned_jobs else Adaptivity.ADAPTIVE
        spec = self._world.true_models[job.model].job_spec(
            job, scenario.conditions.fidelity, adaptivity=adaptivity
        )
        found = {}
        for kind, usable, per_node in zip(
            cluster.type_names,
            cluster.usable_gpus.tolist(),
            cluster.gpus_per_node.tolist(),
            strict=True,
        ):
            if (
                spec.may_use(kind)
                and job.gpu_count <= usable
                and job.gpu_count % spec.replica_gpus(kind) == 0
            ):
                found[kind] = self._on_request(job, spec, kind, per_node)
        return found

    def _on_request(self, job: TraceJob, spec: JobSpec, kind: str, per_node: int) -> float:
        whole, rest = divmod(job.gpu_count, per_node)
        shape = (per_node,) * whole + ((rest,) if rest else ())
        key = (
            job.model,
            job.work_scale,
            job.gpu_count,
            job.batch_size,
            job.max_batch_size,
            job.regimes,
            kind,
        )
        if key not in self._requested:
            lone = self._lone(job, spec, restart_seconds=0.0)
            known = TypeBelief((), np.ones(7)) if job.regimes else self._oracle(lone, kind)
            lone.agent.belief = Belief() if job.regimes else Belief({kind: known})
            lone.hold(
                Allocation(kind, tuple(range(job.gpu_count))), shape, None, restarts=True, now=0.0
            )
            while lone.finished_at is None:
                lone.advance(
                    0.0, math.inf, fitter=lambda _: known.parameters, whole_second_epochs=False
                )
            self._requested[key] = lone.finished_at
        return self._requested[key]

    def _lone(self, job: TraceJob, spec: JobSpec, *, restart_seconds: float) -> SimulatedJob:
        truth = self._world.true_models[job.model].truth
        ends = epoch_ends(truth, job.work_scale, job.regimes)
        most = (
            truth.max_batch_size
            if job.max_batch_size is None
            else min(job.max_batch_size, truth.max_batch_size)
        )
        return SimulatedJob(spec, truth, restart_seconds, ends, most, regimes=job.regimes)

    def _run(self, job: TraceJob, spec: JobSpec, usable: Sequence[Configuration]) -> float:
        key = (
            job.model,
            job.workload_kind,
            job.work_scale,
            job.max_batch_size,
            usable[0],
            usable[-1],
        )
        if key not in self._seconds:
            self._seconds[key] = self._alone(job, spec, usable)
        return self._seconds[key]

    def _alone(self, job: TraceJob, spec: JobSpec, usable: Sequence[Configuration]) -> float:
        """Seconds from submission to the end, from the smallest configuration upwards."""
        model = self._world.true_models[job.model]
        lone = self._lone(job, spec, restart_seconds=model.restart_seconds)
        kind = usable[0].gpu_type
        known = self._oracle(lone, kind)
        lone.agent.belief = Belief({kind: known})
        return seconds_alone(
            _TrueJob(lone, known),
            usable,
            young_move_freely=self._scenario.conditions.fidelity.young_move_freely,
        )

    def _oracle(self, job: SimulatedJob, kind: str) -> TypeBelief:
        """A complete belief about a type, fitted once.

        A lone run is a yardstick, not an exploration.
        """
        if (job.spec.model, kind) not in self._beliefs:
            shapes = [
                _shape(c)
                for c in _measured(self._table, job.spec, kind)
                if c.gpu_count % job.spec.replica_gpus(kind) == 0
            ]
            samples = tuple(
                s for shape in shapes for s in profile_shape(job, kind, shape, PROFILED_BATCH_SIZES)
            )
            self._beliefs[job.spec.model, kind] = TypeBelief(
                samples,
                self._scenario.conditions.fidelity.fitter()(samples),
            )
        return self._beliefs[job.spec.model, kind]


def _measured(table: ConfigurationTable, spec: JobSpec, gpu_type: str) -> Iterator[Configuration]:
    """Yield the configurations of a type on which the job's step times are known."""
    most = spec.most_gpus_by_type.get(gpu_type)
    return (c for c in of_type(table, gpu_type) if most is None or c.gpu_count <= most)


class _TrueJob:
    """A lone job that runs by its truth, and whose agent has a complete belief."""

    def __init__(self, job: SimulatedJob, belief: TypeBelief) -> None:
        self._job, self._belief = job, belief
        self._offered: FloatArray | None = None
        self._noise = math.nan

    @property
    def finished_at(self) -> float | None:
        return self._job.finished_at

    @property
    def is_restarting(self) -> bool:
        return self._job.ledger.restart_left > 0

    @property
    def restarts(self) -> int:
        return self._job.ledger.restarts

    @property
    def restart_seconds(self) -> float:
        return self._job.spec.restart_seconds

    def move(self, to: Configuration, now: float) -> None:
        held = Allocation(to.gpu_type, tuple(range(to.gpu_count)))
        self._job.hold(held, _shape(to), None, restarts=True, now=now)

    def advance(self, now: float, until: float) -> None:
        self._job.advance(
            now, until, fitter=lambda _: self._belief.parameters, whole_second_epochs=False
        )

    def goodput(self, usable: Sequence[Configuration]) -> FloatArray:
        noise = _noise(self._job)
        if self._offered is None or noise != self._noise:  # only the noise changes in training
            self._noise, self._offered = noise, _goodput(self._job, usable)
        return self._offered

    def steady_seconds(self) -> float:
        return 0.0


def _goodput(lone: SimulatedJob, usable: Sequence[Configuration]) -> FloatArray:
    """The goodput of the job in each configuration, as it is now, shape (C,)."""
    spec, kind, many = lone.spec, usable[0].gpu_type, len(usable)
    memory = spec.memory[kind]
    limits = (
        spec.initial_batch_size,
        lone.agent.max_batch_size,
        memory.smallest_per_gpu,
        memory.largest_per_gpu,
        math.inf if spec.rounds_batch_up else lone.agent.max_batch_size,
    )
    return best_plans(
        np.repeat(lone.agent.belief.by_type[kind].parameters[None, :], many, axis=0),
        noise_scale=np.full(many, _noise(lone)),
        initial_batch_size=np.full(
            many, float(spec.initial_batch_size if spec.learns else lone.agent.max_batch_size)
        ),
        limits=BatchLimits(*(np.full(many, float(x)) for x in limits)),
        node_count=np.array([float(c.node_count) for c in usable]),
        replica_count=np.array([float(c.gpu_count // spec.replica_gpus(kind)) for c in usable]),
    ).goodput


def _noise(lone: SimulatedJob) -> float:
    return (
        lone.agent.belief.noise_scale(lone.spec.initial_batch_size) if lone.spec.learns else NO_LOSS
    )


def _shape(c: Configuration) -> Shape:
    return (c.gpu_count // c.node_count,) * c.node_count
