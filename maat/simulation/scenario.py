"""What a run follows from: jobs, cluster, policy and the rules of the world; and the parts that it is played with. Plays nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from maat.scheduling.bootstrap import ProjectByConstant, Projection, project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError, TraceError
from maat.scheduling.job import Adaptivity
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.registry import Needs
from maat.scheduling.reservations import Reservation
from maat.scheduling.rounds import Placer, Policy
from maat.simulation.adaptivity_shares import draw_adaptivity
from maat.simulation.conditions import Condition, SharedGpus, UnequalGpus
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.failures import Failures
from maat.simulation.fidelity import FIDELITIES, Fidelity
from maat.simulation.interference import Interference
from maat.simulation.models import Model
from maat.simulation.tuned_jobs import TunedJobs, tuned
from maat.simulation.variability import Variability, draw_scores
from maat.simulation.workloads import TraceJob, Workload


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


def conditions_of(scenario: Scenario, slowdowns: Mapping[tuple[str, str, int], float]) -> tuple[Condition, ...]:
    """What slows jobs in this scenario besides their own step times."""
    apart = any(_penalty(scenario, name) > 1 for name in scenario.workload.models)
    unequal = (UnequalGpus(scenario.cluster),) if scenario.cluster.scores or apart else ()
    return (*unequal, SharedGpus(slowdowns)) if slowdowns else unequal


def with_scores(scenario: Scenario) -> Scenario:
    """The scenario with the scores of its GPUs drawn, where it says from what."""
    if scenario.variability is None:
        return scenario
    rules = scenario.fidelity.variability
    needed = {rules.classes[name] for name in scenario.workload.models if name in rules.classes}
    scores = draw_scores(scenario.variability, scenario.cluster, rules, needed=needed, seed=scenario.seed)
    return replace(scenario, cluster=replace(scenario.cluster, scores=scores))


def _penalty(scenario: Scenario, model: str) -> float:
    return scenario.locality_penalties.get(model, scenario.models[model].locality_penalty)


def submit(scenario: Scenario, executor: SimulatedExecutor) -> None:
    """Hand every job of the workload to the executor. Raises TraceError for one that could never run."""
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


def notes_on(scenario: Scenario) -> tuple[str, ...]:
    """What a reader of the figures should know: policy or placer lacks what it is for."""
    notes = []
    for kind, entry in (("policy", POLICIES.entry(scenario.policy)), ("placer", PLACERS.entry(scenario.placer))):
        if entry.needs is Needs.SHARED_GPUS and scenario.cluster.jobs_per_gpu == 1:
            notes.append(f"The {kind} {entry.name} shares GPUs; here a GPU holds one job (jobs_per_gpu 1), so it only orders.")
        if entry.needs is Needs.GPU_SCORES and not scenario.cluster.scores and scenario.variability is None:
            notes.append(f"The {kind} {entry.name} weighs how slow GPUs are; here all of a type are alike (no variability given).")
    return tuple(notes)
