"""The agent inside a simulated job: it measures, learns and chooses batch plans.

It reads the truth only as a measurement: the step time of a plan that runs, the gradients of an
epoch that runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from maat.models.truth import Shape, Truth, gain
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, Fitter, GradientStatistics
from maat.scheduling.efficiency import efficiency
from maat.scheduling.fitting import Sample
from maat.scheduling.goodput import (
    BatchLimits,
    BatchPlan,
    Candidates,
    batch_candidates,
    plan_for_batch,
    throughput_of,
)
from maat.scheduling.job import JobSpec
from maat.scheduling.matrix import NO_LOSS
from maat.scheduling.regimes import Regime, batch_size_at


@dataclass(frozen=True, slots=True)
class Replicas:
    """The GPUs that a job runs on.

    `shape`: how many on each node. `count`: number of replicas.
    """

    gpu_type: str
    shape: Shape
    count: int

    @property
    def gpu_count(self) -> int:
        return sum(self.shape)


@dataclass(frozen=True, slots=True)
class StepTime:
    """The measured seconds of an optimiser step; `of`: where, and which plan."""

    of: tuple[Replicas, BatchPlan]
    seconds: float


@dataclass(frozen=True, slots=True)
class StepGain:
    """The measured effective samples of a step; `of`: which epoch and plan."""

    of: tuple[int, BatchPlan]
    samples: float


@dataclass(frozen=True, slots=True)
class AgentState:
    """All that changes in an agent while its job trains."""

    belief: Belief
    step_time: StepTime | None
    step_gain: StepGain | None


@dataclass(frozen=True, slots=True)
class _Speeds:
    """Batch candidates on these replicas, with their believed throughput, (1, B).

    Holds the fitted `parameters` themselves: an id could belong to another array later.
    """

    replicas: Replicas
    parameters: FloatArray
    candidates: Candidates
    throughput: FloatArray


class _Limits(NamedTuple):
    """The batch limits of one job on one GPU type, in samples."""

    smallest_total: int
    largest_total: int
    smallest_per_gpu: int
    largest_per_gpu: int
    most_total: float


@lru_cache(maxsize=4096)
def _candidates(
    parameters: bytes, limits: _Limits, *, node_count: int, replica_count: int, initial: int
) -> tuple[Candidates, FloatArray]:
    """Return the batch candidates, and their throughput by a model's parameters (as bytes).

    Jobs of one model believe the same and share them.
    """
    nodes, replicas, first = (np.array([float(x)]) for x in (node_count, replica_count, initial))
    found = batch_candidates(BatchLimits(*(np.array([float(x)]) for x in limits)), replicas, first)
    throughput = throughput_of(
        np.frombuffer(parameters)[None, :], found, node_count=nodes, replica_count=replicas
    )[0]
    for array in (*found, throughput):
        array.setflags(write=False)
    return found, throughput


class AdaptiveAgent:
    """Chooses the batch plan of one job by its own belief (Pollux section 4.1).

    `max_batch_size`: upper limit of the plans that it chooses. `regimes`: batch sizes that the job
    sets itself, whatever is granted; () if the scheduler or the agent chooses.
    """

    def __init__(
        self, spec: JobSpec, truth: Truth, max_batch_size: int, regimes: tuple[Regime, ...]
    ) -> None:
        self.belief = Belief()
        self.max_batch_size = max_batch_size
        self._spec, self._truth, self._regimes = spec, truth, regimes
        self._step_time: StepTime | None = None
        self._step_gain: StepGain | None = None
        self._speeds: _Speeds | None = None

    def state(self) -> AgentState:
        return AgentState(self.belief, self._step_time, self._step_gain)

    def put_back(self, state: AgentState) -> None:
        """Return to an earlier state."""
        self.belief = state.belief
        self._step_time, self._step_gain = state.step_time, state.step_gain

    # ---- measuring

    def learn(self, gpu_type: str, samples: Sequence[Sample], *, fitter: Fitter) -> None:
        """Add step times to the belief."""
        self.belief = self.belief.with_samples(gpu_type, samples, fitter=fitter)

    def step_seconds(self, replicas: Replicas, plan: BatchPlan, *, fitter: Fitter) -> float:
        """Return the true seconds of a step of this plan, without other jobs' slowdown.

        The agent learns a step time once per plan and allocation.
        """
        known = self._step_time
        if known is None or known.of != (replicas, plan):
            seconds = self._measure_step(replicas, plan, fitter)
            known = self._step_time = StepTime((replicas, plan), seconds)
        return known.seconds

    def _measure_step(self, replicas: Replicas, plan: BatchPlan, fitter: Fitter) -> float:
        kind, batch = replicas.gpu_type, plan.per_gpu_batch_size
        time = self._truth.step(kind, replicas.shape, batch)
        sample = Sample(
            len(replicas.shape), replicas.count, batch, time.step_seconds, time.sync_seconds
        )
        belief = self.belief.with_samples(kind, (sample,), fitter=fitter)
        peak = max(belief.peak_replica_count, replicas.count)
        self.belief = replace(belief, peak_replica_count=peak)
        return time.with_accumulation(plan.accumulation_steps) * self._truth.slowdown

    def samples_per_step(self, epoch: int, plan: BatchPlan) -> float:
        """Return the effective samples of one step of this plan in this epoch.

        The agent measures the gradients once per epoch and plan.
        """
        known = self._step_gain
        if known is None or known.of != (epoch, plan):
            known = self._step_gain = StepGain((epoch, plan), self._measure_gain(epoch, plan))
        return known.samples

    def _measure_gain(self, epoch: int, plan: BatchPlan) -> float:
        truth, belief = self._truth, self.belief
        last = len(truth.epoch_ends) - 1
        gradient = truth.gradient(min(epoch, last), plan.total_batch_size)
        self.belief = Belief(belief.by_type, gradient, belief.peak_replica_count)
        scale = plan.total_batch_size / truth.initial_batch_size
        return truth.initial_batch_size * (gain(gradient, scale) if self._spec.learns else scale)

    # ---- choosing

    def choose(self, replicas: Replicas, epoch: int, fixed_plan: BatchPlan | None) -> BatchPlan:
        """Return the plan that the job runs next on these replicas.

        The job's own regimes come first, then the scheduler's plan, then the batch size that the
        owner fixed, then the plan of highest believed goodput.
        """
        spec, kind = self._spec, replicas.gpu_type
        if self._regimes:
            size = batch_size_at(self._regimes, epoch)
            down = spec.rounds_batch_down and size >= replicas.count
            per_gpu = size // replicas.count if down else -(-size // replicas.count)
            return BatchPlan(per_gpu * replicas.count, per_gpu, 0)
        if fixed_plan is not None:
            return self._fitted(fixed_plan, replicas)
        if spec.has_fixed_batch and spec.batch_size is not None:
            return self._within_memory(spec.batch_size, replicas)
        known = self.belief.by_type.get(kind)
        if known is None or self.belief.gradient is None:
            smallest = self._truth.smallest_per_gpu(kind) * replicas.count
            least = max(self._truth.initial_batch_size, smallest)
            return self._within_memory(least, replicas)
        return self._best(replicas, known.parameters, self.belief.gradient)

    def plan_for(self, total: int, kind: str, *, gpu_count: int, replicas: int) -> BatchPlan:
        """Return the plan of a total batch size with the fewest accumulation steps."""
        most = max(self.max_batch_size, self._spec.requested_batch_size)
        return plan_for_batch(
            total,
            replicas=replicas,
            largest_per_gpu=self._truth.largest_per_gpu(kind, gpu_count),
            largest_total=total if self._spec.rounds_batch_down else most,
            accumulate_above=self._truth.initial_batch_size if self._spec.learns else total,
        )

    def _within_memory(self, total: int, replicas: Replicas) -> BatchPlan:
        return self.plan_for(
            total, replicas.gpu_type, gpu_count=replicas.gpu_count, replicas=replicas.count
        )

    def _fitted(self, plan: BatchPlan, replicas: Replicas) -> BatchPlan:
        """A given plan, split again if it does not suit the replicas or their memory."""
        passes = plan.accumulation_steps + 1
        suits = plan.total_batch_size == replicas.count * plan.per_gpu_batch_size * passes
        largest = self._truth.largest_per_gpu(replicas.gpu_type, replicas.gpu_count)
        if suits and plan.per_gpu_batch_size <= largest:
            return plan
        return self._within_memory(plan.total_batch_size, replicas)

    def _best(
        self, replicas: Replicas, parameters: FloatArray, gradient: GradientStatistics
    ) -> BatchPlan:
        """The candidate of highest believed goodput.

        Throughputs are kept until the model or the replicas change; phi changes every epoch.
        """
        speeds = self._speeds
        if speeds is None or speeds.parameters is not parameters or speeds.replicas != replicas:
            speeds = self._speeds = self._candidate_speeds(replicas, parameters)
        found, initial = speeds.candidates, np.asarray(float(self._truth.initial_batch_size))
        phi = np.asarray(
            initial * gradient.variance / max(gradient.square, 1e-300)
            if self._spec.learns
            else NO_LOSS
        )
        best = int(np.argmax(speeds.throughput * efficiency(phi, initial, found.total[0])))
        per_gpu, accumulation = int(found.per_gpu[0, best]), int(found.accumulation[0, best])
        most = int(self.max_batch_size // (replicas.count * (accumulation + 1)))
        per_gpu = max(min(per_gpu, most), 1)
        return BatchPlan(replicas.count * per_gpu * (accumulation + 1), per_gpu, accumulation)

    def _candidate_speeds(self, replicas: Replicas, parameters: FloatArray) -> _Speeds:
        truth, kind = self._truth, replicas.gpu_type
        limits = _Limits(
            truth.initial_batch_size,
            self.max_batch_size,
            truth.smallest_per_gpu(kind),
            truth.largest_per_gpu(kind, replicas.gpu_count),
            math.inf if self._spec.rounds_batch_up else self.max_batch_size,
        )
        found, throughput = _candidates(
            parameters.tobytes(),
            limits,
            node_count=len(replicas.shape),
            replica_count=replicas.count,
            initial=truth.initial_batch_size,
        )
        return _Speeds(replicas, parameters, found, throughput)
