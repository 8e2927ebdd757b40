"""The world of a scenario: the parts of a run that follow from it. Runs nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

from maat.scheduling.bootstrap import ProjectByConstant, Projection, project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError, TraceError
from maat.scheduling.job import JobSpec
from maat.scheduling.parameters import rebuilt
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, parameters_beside
from maat.scheduling.protocols import Placer, Policy
from maat.scheduling.rounds import PolicyState
from maat.simulation.adaptivity_shares import draw_adaptivity
from maat.simulation.fidelity import Fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.slowdowns import SharedGpus, SharedNetwork, Slowdown, UnequalGpus
from maat.simulation.step_penalties import step_penalties
from maat.simulation.submission import Submission
from maat.simulation.tuned_jobs import tuned
from maat.simulation.variability import draw_scores
from maat.simulation.world_models import Model
from maat.vocabulary import Adaptivity
from maat.workloads.workloads import TraceJob

InterferenceTable = Mapping[tuple[str, str, int], float]
Scores = Mapping[str, tuple[float, ...]]


@runtime_checkable
class ContinuesDraws(Protocol):
    """A placer whose random draws may continue the sequence that drew the GPU scores."""

    def state_after(self, sequence: random.Random, /) -> PolicyState: ...


@dataclass(frozen=True)
class World:
    """The parts of a run, each built from the scenario at its first use and kept.

    A caller that needs one part (a content key, a check of a request) does not build the others.
    """

    scenario: Scenario

    @classmethod
    def of(cls, scenario: Scenario) -> World:
        return cls(scenario)

    # ---- policy, placer, rounds

    @cached_property
    def policy(self) -> Policy:
        """The policy, built with its parameters.

        The scenario's parameters go before the fidelity's, and these before those for the placer.
        An own policy has its parameters, if it has such knobs. Raises UnknownNameError or
        ParameterError.
        """
        scenario = self.scenario
        if scenario.own_policy is not None:
            return rebuilt(scenario.own_policy, scenario.policy_parameters, owner=scenario.policy)
        for_placer = parameters_beside(PLACERS.entry(scenario.placer), scenario.policy)
        preset = scenario.conditions.fidelity.policy_parameters.get(scenario.policy, {})
        parameters = {**for_placer, **preset, **scenario.policy_parameters}
        return POLICIES.build(scenario.policy, parameters)

    @cached_property
    def placer(self) -> Placer:
        """The placer: the scenario's parameters, then the fidelity's.

        Raises UnknownNameError or ParameterError.
        """
        scenario = self.scenario
        preset = scenario.conditions.fidelity.placer_parameters.get(scenario.placer, {})
        return PLACERS.build(scenario.placer, {**preset, **scenario.placer_parameters})

    @property
    def round_seconds(self) -> float:
        """Seconds between rounds.

        The run's own, else the conditions', else the fidelity's, else the policy's default.
        """
        conditions = self.scenario.conditions
        given = (
            self.scenario.round_seconds,
            conditions.round_seconds,
            conditions.fidelity.round_seconds,
        )
        return next(
            (seconds for seconds in given if seconds is not None), self.policy.default_round_seconds
        )

    @cached_property
    def fidelity(self) -> Fidelity:
        """The fidelity with the profiling that the policy gets."""
        return self.scenario.conditions.fidelity.as_known_to(self.scenario.policy)

    @cached_property
    def projection(self) -> Projection:
        """The estimate of a job's speed on a GPU type that it never ran on."""
        if not self.scenario.conditions.fidelity.project_by_constant:
            return project_by_profile
        return ProjectByConstant(
            {name: model.reference_throughput for name, model in self.true_models.items()}
        )

    # ---- the cluster and its randomness

    @property
    def cluster(self) -> Cluster:
        """The cluster, with drawn GPU scores if the conditions have measurements.

        Raises VariabilityError.
        """
        return self.scenario_with_scores.cluster

    @cached_property
    def scenario_with_scores(self) -> Scenario:
        """The scenario with the drawn GPU scores; the scenario itself without a draw.

        Raises VariabilityError.
        """
        scores, _ = self._drawn_scores
        if scores is None:
            return self.scenario
        return replace(self.scenario, cluster=replace(self.scenario.cluster, scores=scores))

    @cached_property
    def placer_state(self) -> PolicyState:
        """The placer's state before the first round.

        A placer that draws continues the sequence of the run after the scores were drawn from it.
        """
        _, sequence = self._drawn_scores
        if isinstance(self.placer, ContinuesDraws):
            return self.placer.state_after(sequence)
        return PolicyState()

    @cached_property
    def _drawn_scores(self) -> tuple[Scores | None, random.Random]:
        """The GPU scores (None: the cluster's own), and the sequence after the draw."""
        scenario, rules = self.scenario, self.scenario.conditions.fidelity.variability
        seed = scenario.seed if rules.draw_seed is None else rules.draw_seed
        sequence = random.Random(seed)
        if scenario.conditions.variability is None:
            return None, sequence
        classes = {
            rules.classes[name] for name in scenario.workload.models if name in rules.classes
        }
        scores = draw_scores(
            scenario.conditions.variability,
            scenario.cluster,
            rules,
            needed=classes,
            seed=scenario.seed,
            sequence=sequence,
        )
        return scores, sequence

    # ---- what slows jobs

    @cached_property
    def interference(self) -> InterferenceTable:
        """(victim, partner, GPU count) -> slowdown of jobs that may share a GPU.

        Names are `JobSpec.interference_name`. Empty if no GPU can be shared. Raises
        InterferenceError if GPUs can be shared and the conditions give no table.
        """
        scenario = self.scenario
        if scenario.cluster.jobs_per_gpu == 1:
            return {}
        conditions = scenario.conditions
        if conditions.interference is None:
            raise InterferenceError(
                "is missing where several jobs may share a GPU",
                field="interference",
                remedy="Give a table of measured pairs, 'synthetic', or a constant such as 1.25.",
            )
        requested = [job.gpu_count for job in scenario.workload.jobs]
        most = max([conditions.fidelity.most_gpus_per_job, *requested])
        names = {name for job in self.jobs if (name := self._shares_as(job)) is not None}
        return conditions.interference.between(names, range(1, most + 1))

    @cached_property
    def slowdowns(self) -> tuple[Slowdown, ...]:
        """What slows jobs apart from their own step times."""
        unequal = () if self.unequal_gpus is None else (self.unequal_gpus,)
        contention = self.scenario.conditions.network_contention
        network = (SharedNetwork(self.cluster, contention),) if contention else ()
        shared = (SharedGpus(self.interference),) if self.interference else ()
        return (*unequal, *shared, *network)

    @cached_property
    def unequal_gpus(self) -> UnequalGpus | None:
        """How much the GPUs and nodes that jobs get slow them; None if not at all."""
        models = self.scenario.workload.models
        apart = any(self._locality_penalty(name) > 1 for name in models) or (
            self.scenario.conditions.rack_penalty > 1
        )
        return UnequalGpus(self.cluster) if self.cluster.scores or apart else None

    def check_interference(self) -> None:
        """Raise InterferenceError if GPUs can be shared and no table covers the jobs."""
        _ = self.interference

    def check_scores(self) -> None:
        """Raise VariabilityError if the measurements do not cover the cluster."""
        _ = self.cluster

    # ---- models and jobs

    @cached_property
    def true_models(self) -> Mapping[str, Model]:
        """The models as the fidelity defines them."""
        scenario, fidelity = self.scenario, self.scenario.conditions.fidelity
        types = {*scenario.cluster.type_names, *scenario.workload.gpu_types}
        return {name: model.on(types).under(fidelity) for name, model in scenario.models.items()}

    @cached_property
    def adaptivity(self) -> Mapping[str, Adaptivity]:
        """The adaptivity of each job by name, before tuning.

        It is the trace's, else drawn by the seed. Jobs of the fidelity's rigid models are rigid.
        """
        conditions, jobs = self.scenario.conditions, self.scenario.workload.jobs
        drawn = draw_adaptivity(
            jobs,
            self.true_models,
            rigid_share=conditions.rigid_share,
            strong_scaling_share=conditions.strong_scaling_share,
            seed=self.scenario.seed,
        )
        rigid = [job.name for job in jobs if job.model in conditions.fidelity.rigid_models]
        return {**drawn, **dict.fromkeys(rigid, Adaptivity.RIGID)}

    @cached_property
    def tuned_jobs(self) -> Mapping[str, TraceJob]:
        """The tuned jobs by name, with tuned GPU count and batch size. They are rigid."""
        scenario = self.scenario
        if scenario.conditions.tuned is None:
            return {}
        jobs = [
            replace(job, adaptivity=self.adaptivity[job.name]) for job in scenario.workload.jobs
        ]
        return tuned(
            jobs,
            self.true_models,
            scenario.cluster,
            scenario.conditions.tuned,
            seed=scenario.seed,
            rounds_batch_up=scenario.conditions.fidelity.rounds_batch_up,
        )

    @cached_property
    def jobs(self) -> tuple[TraceJob, ...]:
        """The jobs of the trace; tuned jobs with their tuned request."""
        return tuple(self.tuned_jobs.get(job.name, job) for job in self.scenario.workload.jobs)

    @cached_property
    def submissions(self) -> tuple[Submission, ...]:
        """The jobs for the simulated executor.

        A job that is bound to types that the cluster lacks is submitted, and never runs. Raises
        TraceError for one whose model cannot run there (the laboratory leaves such jobs out
        before), and where no job can.
        """
        names = self.scenario.cluster.type_names
        if self.jobs and all(job.is_bound_elsewhere(names) for job in self.jobs):
            raise self._all_elsewhere()
        return tuple(self._submission(row, job) for row, job in enumerate(self.jobs, start=2))

    def _all_elsewhere(self) -> TraceError:
        names = ", ".join(sorted({name for job in self.jobs for name in job.gpu_types or ()}))
        there = ", ".join(self.scenario.cluster.type_names)
        return TraceError(
            f"name no GPU type of this cluster ({there}), for any job",
            field="gpu_types",
            value=names,
            remedy="Simulate a cluster that has some of them, or leave the column out.",
            source=self.scenario.workload.name,
        )

    def refusal(self, job: TraceJob, row: int | None = None) -> TraceError | None:
        """Return why no GPU type of the cluster runs a job; None if one does.

        None also for a job that is bound to types that the cluster lacks: it does not finish.
        """
        if job.is_bound_elsewhere(self.scenario.cluster.type_names):
            return None
        return self._refusal(self._spec(job), row)

    def _submission(self, row: int, job: TraceJob) -> Submission:
        model = self.true_models[job.model]
        refusal = self.refusal(job, row)
        if refusal is not None:
            raise refusal
        return Submission(
            self._spec(job), model.truth, model.restart_seconds, job.work_scale, regimes=job.regimes
        )

    def _spec(self, job: TraceJob) -> JobSpec:
        is_tuned = job.name in self.tuned_jobs
        adaptivity = Adaptivity.RIGID if is_tuned else self.adaptivity[job.name]
        return replace(
            self.true_models[job.model].job_spec(job, self.fidelity, adaptivity=adaptivity),
            locality_penalty=self._locality_penalty(job.model),
            step_penalty=self._step_penalty(job.model),
            rack_penalty=self.scenario.conditions.rack_penalty,
            shares_as=self._shares_as(job),
        )

    def _refusal(self, spec: JobSpec, row: int | None) -> TraceError | None:
        cluster, source = self.scenario.cluster, self.scenario.workload.name
        usable = [t for t in cluster.type_names if spec.may_use(t)]
        if not usable:
            measured = self.true_models[spec.model].memory
            return TraceError(
                f"cannot run on any GPU type of this cluster ({', '.join(cluster.type_names)})",
                field="application",
                value=spec.model,
                remedy=f"Measured are: {', '.join(measured)}.",
                source=source,
                row=row,
            )
        if spec.is_rigid and all(spec.requested_gpus % spec.replica_gpus(t) for t in usable):
            sizes = ", ".join(f"{spec.replica_gpus(t)} GPUs of {t}" for t in usable)
            return TraceError(
                "is no whole number of replicas of this rigid job",
                field="num_replicas",
                value=spec.requested_gpus,
                remedy=f"One replica takes {sizes}.",
                source=source,
                row=row,
            )
        return None

    def _locality_penalty(self, model: str) -> float:
        default = self.scenario.models[model].locality_penalty
        return self.scenario.conditions.locality_penalties.get(model, default)

    def _step_penalty(self, model: str) -> Mapping[str, float]:
        """What nodes apart cost a model by its step times, as far as placers know it."""
        return self._step_penalties[model] if self.scenario.conditions.weighs_steps else {}

    @cached_property
    def _step_penalties(self) -> Mapping[str, Mapping[str, float]]:
        return {
            name: step_penalties(model.truth, self.scenario.cluster, model.gpus_per_replica)
            for name, model in self.true_models.items()
            if name in self.scenario.workload.models
        }

    def _shares_as(self, job: TraceJob) -> str | None:
        """The job's name in the interference table; None if there is no table."""
        interference = self.scenario.conditions.interference
        if interference is None:
            return None
        total = job.batch_size
        if total is None:
            total = self.scenario.models[job.model].truth.initial_batch_size
        return interference.called(job.model, -(-total // job.gpu_count))
