"""What a run follows from: jobs, cluster, policy and the rules of the world; and the parts that it is played with. Plays nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

from maat.scheduling.bootstrap import ProjectByConstant, Projection, project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError, TraceError
from maat.scheduling.job import Adaptivity
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, parameters_beside
from maat.scheduling.rounds import Placer, Policy, PolicyState
from maat.simulation.adaptivity_shares import draw_adaptivity
from maat.simulation.conditions import Conditions
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.slowdowns import SharedGpus, Slowdown, UnequalGpus
from maat.simulation.tuned_jobs import tuned
from maat.simulation.variability import draw_scores
from maat.simulation.world_models import Model
from maat.workloads.workloads import TraceJob, Workload


@dataclass(frozen=True)
class Scenario:
    """All that a run follows from: the same scenario gives the same result.

    `max_rounds`: after the last submission, where jobs are left that never end.
    """

    workload: Workload
    models: Mapping[str, Model]
    cluster: Cluster
    policy: str = "sia"
    placer: str = "whole-node"
    policy_parameters: Mapping[str, object] = field(default_factory=dict)
    placer_parameters: Mapping[str, object] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    seed: int = 0
    max_rounds: int = 1_000_000

    @cached_property
    def adaptivity(self) -> Mapping[str, Adaptivity]:
        """What may vary of each job, by name, before any is tuned: what its trace or the fidelity says, else drawn by the seed."""
        conditions, jobs = self.conditions, self.workload.jobs
        drawn = draw_adaptivity(
            jobs,
            self.true_models,
            rigid_share=conditions.rigid_share,
            strong_scaling_share=conditions.strong_scaling_share,
            seed=self.seed,
        )
        return {
            **drawn,
            **{
                job.name: Adaptivity.RIGID
                for job in jobs
                if job.model in conditions.fidelity.rigid_models
            },
        }

    @cached_property
    def tuned_jobs(self) -> Mapping[str, TraceJob]:
        """The jobs whose GPU count and batch size were tuned, by name, as they are submitted; they are rigid."""
        if self.conditions.tuned is None:
            return {}
        jobs = [replace(job, adaptivity=self.adaptivity[job.name]) for job in self.workload.jobs]
        return tuned(jobs, self.true_models, self.cluster, self.conditions.tuned, seed=self.seed)

    @property
    def submitted_jobs(self) -> tuple[TraceJob, ...]:
        """The trace's jobs, tuned where they are."""
        return tuple(self.tuned_jobs.get(job.name, job) for job in self.workload.jobs)

    @cached_property
    def true_models(self) -> Mapping[str, Model]:
        """The models as the fidelity has them be."""
        return {name: model.under(self.conditions.fidelity) for name, model in self.models.items()}


def build_parts(scenario: Scenario) -> tuple[Policy, Placer]:
    """The policy and placer of a scenario, with its fidelity's parameters where the scenario sets none of its own, else those that the placer asks
    of the policy."""
    beside = parameters_beside(PLACERS.entry(scenario.placer), scenario.policy)
    preset = scenario.conditions.fidelity.policy_parameters.get(scenario.policy, {})
    policy = POLICIES.build(scenario.policy, {**beside, **preset, **scenario.policy_parameters})
    preset = scenario.conditions.fidelity.placer_parameters.get(scenario.placer, {})
    return policy, PLACERS.build(scenario.placer, {**preset, **scenario.placer_parameters})


def round_seconds_of(scenario: Scenario, policy: Policy) -> float:
    """Between rounds: as the scenario says, else its fidelity, else the policy."""
    said = (scenario.conditions.round_seconds, scenario.conditions.fidelity.round_seconds)
    return next((seconds for seconds in said if seconds is not None), policy.round_seconds)


def projection_of(scenario: Scenario) -> Projection:
    """How a type that a job never ran on is estimated under this fidelity."""
    if not scenario.conditions.fidelity.project_by_constant:
        return project_by_profile
    return ProjectByConstant(
        {name: model.reference_throughput for name, model in scenario.true_models.items()}
    )


def interference_of(scenario: Scenario) -> Mapping[tuple[str, str, int], float]:
    """(victim, partner, GPU count) -> slowdown for what may meet on a GPU, jobs by their `interference_name`; nothing where no GPU is shared.

    Raises InterferenceError where GPUs are shared and it is not known what that costs.
    """
    if scenario.cluster.jobs_per_gpu == 1:
        return {}
    if scenario.conditions.interference is None:
        raise InterferenceError(
            "is missing where several jobs may share a GPU",
            field="interference",
            remedy="Give a table of measured pairs, 'synthetic', or a constant such as 1.25.",
        )
    most = max(
        [
            scenario.conditions.fidelity.most_gpus_per_job,
            *(job.gpu_count for job in scenario.workload.jobs),
        ]
    )
    names = {
        name for job in scenario.submitted_jobs if (name := _shares_as(scenario, job)) is not None
    }
    return scenario.conditions.interference.between(names, range(1, most + 1))


def _shares_as(scenario: Scenario, job: TraceJob) -> str | None:
    """The name under which the scenario's interference has a job; None where nothing is said of any."""
    if scenario.conditions.interference is None:
        return None
    total = (
        scenario.models[job.model].truth.initial_batch_size
        if job.batch_size is None
        else job.batch_size
    )
    return scenario.conditions.interference.called(job.model, -(-total // job.gpu_count))


def slowdowns_of(
    scenario: Scenario, interference: Mapping[tuple[str, str, int], float]
) -> tuple[Slowdown, ...]:
    """What slows jobs in this scenario besides their own step times. `interference`: what jobs that share a GPU lose."""
    apart = any(_penalty(scenario, name) > 1 for name in scenario.workload.models)
    unequal = (UnequalGpus(scenario.cluster),) if scenario.cluster.scores or apart else ()
    return (*unequal, SharedGpus(interference)) if interference else unequal


def run_sequence(scenario: Scenario) -> random.Random:
    """The one sequence of chance of a run whose fidelity has one: scores are drawn with it first, where single measurements are drawn."""
    seed = scenario.conditions.fidelity.variability.draw_seed
    return random.Random(scenario.seed if seed is None else seed)


def with_scores(scenario: Scenario, sequence: random.Random | None = None) -> Scenario:
    """The scenario with the scores of its GPUs drawn, where it says from what."""
    if scenario.conditions.variability is None:
        return scenario
    rules = scenario.conditions.fidelity.variability
    needed = {rules.classes[name] for name in scenario.workload.models if name in rules.classes}
    drawn = run_sequence(scenario) if sequence is None else sequence
    scores = draw_scores(
        scenario.conditions.variability,
        scenario.cluster,
        rules,
        needed=needed,
        seed=scenario.seed,
        sequence=drawn,
    )
    return replace(scenario, cluster=replace(scenario.cluster, scores=scores))


@runtime_checkable
class DrawsOn(Protocol):
    """A placer whose chance may go on where that of the scores ended."""

    def state_after(self, sequence: random.Random, /) -> PolicyState: ...


def first_state_of(placer: Placer, sequence: random.Random) -> PolicyState:
    """What a placer remembers before the first round of a run, whose chance stands at `sequence`."""
    return placer.state_after(sequence) if isinstance(placer, DrawsOn) else PolicyState()


def _penalty(scenario: Scenario, model: str) -> float:
    return scenario.conditions.locality_penalties.get(
        model, scenario.models[model].locality_penalty
    )


def submit(scenario: Scenario, executor: SimulatedExecutor) -> None:
    """Hand every job of the workload to the executor. Raises TraceError for one that could never run."""
    cluster, told = scenario.cluster, scenario.conditions.fidelity.told_to(scenario.policy)
    adaptivity = {**scenario.adaptivity, **dict.fromkeys(scenario.tuned_jobs, Adaptivity.RIGID)}
    for row, job in enumerate(scenario.submitted_jobs, start=2):
        model = scenario.true_models[job.model]
        spec = model.job_spec(job, told, adaptivity=adaptivity[job.name])
        spec = replace(
            spec,
            locality_penalty=_penalty(scenario, job.model),
            shares_as=_shares_as(scenario, job),
        )
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
        executor.submit(
            spec,
            model.truth,
            restart_seconds=model.restart_seconds,
            work_scale=job.work_scale,
            regimes=job.regimes,
        )
