"""A setup: trace source, cluster, policy and conditions, which give a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from maat.laboratory.runnable_jobs import with_runnable_jobs
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.errors import ParameterError
from maat.scheduling.policies import suiting_placer
from maat.scheduling.protocols import Policy
from maat.scheduling.quotas import check_quotas
from maat.scheduling.reservations import check_reservations
from maat.simulation.adaptivity_shares import check_shares
from maat.simulation.conditions import Conditions, check_racks
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.usable_types import check_gpu_types, check_models
from maat.simulation.world_models import Model
from maat.workloads.generators import generate, size_at
from maat.workloads.workloads import Workload

OWN_PLACER = "packed-sticky"
"""Places the jobs of a policy that no registry has, unless another is named."""


class TraceSource(Protocol):
    """A source of workloads.

    `copies`: factor on the number of jobs; `seed`: of all random draws.
    """

    def workload(self, *, seed: int, copies: int, jobs_per_hour: float | None) -> Workload: ...


@dataclass(frozen=True)
class GivenTrace:
    """A given workload, the same for every seed.

    On a cluster of twice the size every job is there twice, at the same time.
    """

    given: Workload

    def workload(self, *, seed: int, copies: int, jobs_per_hour: float | None) -> Workload:
        if jobs_per_hour is not None:
            raise ParameterError(
                "is for generated workloads",
                field="jobs_per_hour",
                value=jobs_per_hour,
                remedy="Vary arrival_rate: a given trace is sped up.",
            )
        jobs = [
            job if copy == 0 else replace(job, name=f"{job.name}~{copy}")
            for job in self.given.jobs
            for copy in range(copies)
        ]
        return replace(self.given, jobs=tuple(jobs))


@dataclass(frozen=True)
class GeneratedTrace:
    """A generated workload of a family, as `maat simulate --generate` draws it.

    `seed`: of this workload whatever the run's seed is; None: the run's. `xxl_share`: of jobs of
    the XXL class (Sia section 5.3).
    """

    family: str = "philly"
    jobs: int | None = None
    hours: float | None = None
    seed: int | None = None
    xxl_share: float = 0.0

    def workload(self, *, seed: int, copies: int, jobs_per_hour: float | None) -> Workload:
        seed = seed if self.seed is None else self.seed
        jobs, hours = self.jobs, self.hours
        if jobs_per_hour is not None:
            jobs, hours = size_at(self.family, jobs=jobs, hours=hours, jobs_per_hour=jobs_per_hour)
        drawn = self._drawn(jobs, hours, seed)
        return drawn if copies == 1 else self._drawn(len(drawn) * copies, hours, seed)

    def _drawn(self, jobs: int | None, hours: float | None, seed: int) -> Workload:
        return generate(self.family, jobs=jobs, hours=hours, seed=seed, xxl_share=self.xxl_share)


@dataclass(frozen=True)
class Trace:
    """A source of jobs with the name that tables show."""

    name: str
    source: TraceSource


@dataclass(frozen=True)
class Setup:
    """One run, before its workload is drawn.

    `placer` None: the one that suits the policy. `round_seconds`: the run's own interval; None: the
    conditions'. `arrival_rate`: factor on the submission rate.
    `cluster_size`: factor on the number of nodes, and of jobs. `own_policy`: as in a scenario.
    `tuned_by_policy`: how jobs are tuned under policies by their names, in
    place of the conditions' `tuned` (Sia section 4.3: only those that adapt neither have them).
    """

    trace: TraceSource
    models: Mapping[str, Model]
    cluster: Cluster
    policy: str = "sia"
    placer: str | None = None
    policy_parameters: Mapping[str, object] = field(default_factory=dict)
    placer_parameters: Mapping[str, object] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    seed: int = 0
    round_seconds: float | None = None
    arrival_rate: float = 1.0
    jobs_per_hour: float | None = None
    cluster_size: int = 1
    own_policy: Policy | None = None
    tuned_by_policy: Mapping[str, TunedJobs | None] = field(default_factory=dict)

    def scenario(self) -> Scenario:
        """Return the scenario, without the jobs that no GPU type of the cluster runs.

        Raises InputError if trace, cluster, shares, reservations or quotas cannot be used, and for
        a GPU type that nobody knows.
        """
        check_shares(self.conditions.rigid_share, self.conditions.strong_scaling_share)
        scenario = self.unchecked()
        check_models(scenario)
        check_racks(self.conditions.rack_penalty, scenario.cluster)
        check_reservations(
            self.conditions.reservations,
            scenario.cluster,
            job_ids={job.name for job in scenario.workload.jobs},
        )
        check_quotas(self.conditions.quotas, scenario.cluster)
        check_gpu_types(scenario)
        runnable = with_runnable_jobs(scenario)
        if self.conditions.measured_jobs is not None:
            self.conditions.measured_jobs.check(len(runnable.workload))
        return runnable

    @property
    def _suiting_placer(self) -> str:
        return suiting_placer(self.policy) if self.own_policy is None else OWN_PLACER

    def unchecked(self) -> Scenario:
        """Return the scenario, which may reserve more than its cluster has."""
        drawn = self.trace.workload(
            seed=self.seed, copies=self.cluster_size, jobs_per_hour=self.jobs_per_hour
        )
        return Scenario(
            workload=sped_up(drawn, self.arrival_rate),
            models=self.models,
            cluster=grown(self.cluster, self.cluster_size),
            policy=self.policy,
            placer=self._suiting_placer if self.placer is None else self.placer,
            policy_parameters=self.policy_parameters,
            placer_parameters=self.placer_parameters,
            conditions=replace(
                self.conditions,
                tuned=self.tuned_by_policy.get(self.policy, self.conditions.tuned),
            ),
            seed=self.seed,
            round_seconds=self.round_seconds,
            own_policy=self.own_policy,
        )


def sped_up(workload: Workload, rate: float) -> Workload:
    """Return the same jobs, submitted `rate` times as fast from the first on."""
    if rate == 1.0 or not workload.jobs:
        return workload
    first = workload.jobs[0].submit_seconds
    jobs = tuple(
        replace(job, submit_seconds=first + (job.submit_seconds - first) / rate)
        for job in workload.jobs
    )
    return replace(workload, jobs=jobs)


def _copied(node: Node, copy: int) -> Node:
    """Return another node like this, in another rack."""
    rack = None if node.rack is None else f"{node.rack}~{copy}"
    return replace(node, id=f"{node.id}~{copy}", rack=rack)


def grown(cluster: Cluster, factor: int) -> Cluster:
    """Return a cluster of `factor` times as many nodes of every kind."""
    nodes = [
        node if copy == 0 else _copied(node, copy)
        for node in cluster.nodes
        for copy in range(factor)
    ]
    return cluster if factor == 1 else replace(cluster, nodes=tuple(nodes), scores={})
