"""What a job is taken to be in a draw: what is believed of it, completed by past lives.

The truth of a simulated cluster is not read here: a forecast knows what a scheduler may know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maat.forecasting.history import Curve, PastLife
from maat.models.truth import Shape, StepTime
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, Fitter, GradientStatistics
from maat.scheduling.bootstrap import project_by_profile
from maat.scheduling.job import Job, JobSpec
from maat.scheduling.throughput import pass_seconds, step_seconds

_POINTS = 20  # of the curve of the noise that are looked at in each part
PARTS = 10  # of a training: its gradients are one value in each
UNMEASURED_SECONDS = 1.0  # of a step of which nothing is known; its pace says how long it takes
NO_GRADIENT = GradientStatistics(1.0, 0.0)


@dataclass(frozen=True)
class _Model:
    """Step times of one GPU type: parameters, and the factor on throughput of a stand-in."""

    parameters: FloatArray
    factor: float


class BelievedTruth:
    """A job as its measurements say that it is.

    A step on K GPUs takes T(m, K) of the fitted model, which is Pollux eq. 11, or that of another
    type over the ratio of Sia eq. 1; `slowdown` times that in a draw.
    """

    def __init__(
        self,
        job: Job,
        gpu_types: Sequence[str],
        *,
        past: PastLife | None,
        fitter: Fitter,
        slowdown: float = 1.0,
    ) -> None:
        spec = job.spec
        self.initial_batch_size, self.max_batch_size = spec.initial_batch_size, spec.max_batch_size
        self.slowdown = slowdown
        self.epoch_ends: tuple[float, ...] = tuple(
            spec.work * (part + 1) / PARTS for part in range(PARTS)
        )
        self._memory, self._units = spec.memory, spec.gpus_per_replica
        self._models = _models(job, gpu_types, past, fitter)
        curves = () if past is None else past.curves
        self._courses = [gradients_of(job, curve) for curve in curves or ((),)]
        self._gradients = self._courses[0]
        self._log: dict[tuple[str, Shape, int], StepTime] = {}

    def at_pace(self, slowdown: float) -> BelievedTruth:
        """Return the same job, slower by this factor than what is believed of it."""
        other = object.__new__(BelievedTruth)
        vars(other).update(vars(self))
        other.slowdown = slowdown
        return other

    @property
    def courses(self) -> int:
        """How many past trainings say how its gradients may go on, at least one."""
        return len(self._courses)

    def along(self, number: int) -> BelievedTruth:
        """Return the same job with gradients that go on as in that one of the past trainings."""
        other = self.at_pace(self.slowdown)
        other._gradients = self._courses[number]
        return other

    @property
    def is_measured(self) -> bool:
        """Whether a step time is known of it on any type."""
        return bool(self._models)

    def gpu_types(self) -> Sequence[str]:
        return tuple(self._memory)

    def step(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime:
        key = (gpu_type, shape, per_gpu_batch_size)
        found = self._log.get(key)
        if found is None:
            found = self._log[key] = self._evaluate(*key)
        return found

    def smallest_per_gpu(self, gpu_type: str) -> int:
        return self._memory[gpu_type].smallest_per_gpu

    def largest_per_gpu(self, gpu_type: str, gpu_count: int) -> int:
        return self._memory[gpu_type].largest_per_gpu

    def slowest_step(self, gpu_type: str, gpu_count: int) -> float:
        batch = self.largest_per_gpu(gpu_type, gpu_count)
        return self.step(gpu_type, (gpu_count,), batch).step_seconds

    def gradient(self, epoch: int, total_batch_size: int) -> GradientStatistics:
        return self._gradients[epoch]

    def steps_after(self, epoch: int, total_batch_size: int) -> float:
        return (self.epoch_ends[-1] - self.epoch_ends[epoch]) / total_batch_size

    def _evaluate(self, gpu_type: str, shape: Shape, batch: int) -> StepTime:
        model = self._models.get(gpu_type)
        if model is None:
            return StepTime(UNMEASURED_SECONDS, 0.0)
        samples = np.asarray(float(batch))
        replicas = max(sum(shape) // self._units.get(gpu_type, 1), 1)
        whole = float(
            step_seconds(
                model.parameters,
                samples,
                node_count=np.asarray(len(shape)),
                replica_count=np.asarray(replicas),
            )
        )
        alone = float(pass_seconds(model.parameters, samples))
        return StepTime(whole / model.factor, max(whole - alone, 0.0) / model.factor)


def _models(
    job: Job, gpu_types: Sequence[str], past: PastLife | None, fitter: Fitter
) -> Mapping[str, _Model]:
    """Return the step times by type, as rounds would estimate them by all that was measured."""
    belief = belief_with(past, job.belief, fitter=fitter)
    known = replace(job, belief=belief)
    found = {}
    for kind in gpu_types:
        if not job.spec.may_use(kind):
            continue
        stand_in = project_by_profile(known, kind, gpu_types)
        if stand_in is not None:
            source, factor = stand_in
            found[kind] = _Model(belief.by_type[source].parameters, factor)
    return found


def belief_with(past: PastLife | None, own: Belief, *, fitter: Fitter) -> Belief:
    """Return the step times that are believed of a job with those that a past life measured.

    A measurement of the job itself comes before one of another job.
    """
    belief = Belief(own.by_type)
    for kind, samples in ({} if past is None else past.samples).items():
        known = belief.by_type.get(kind)
        measured = {} if known is None else known.by_key
        if all(sample[:3] in measured for sample in samples):
            continue
        both = {sample[:3]: sample for sample in samples} | dict(measured)
        in_order = [both[key] for key in sorted(both)]  # so that they are fitted once for all jobs
        fitted = Belief().with_samples(kind, in_order, fitter=fitter)
        belief = replace(belief, by_type={**belief.by_type, **fitted.by_type})
    return belief


def gradients_of(job: Job, curve: Curve) -> list[GradientStatistics]:
    """Return the gradients in each part of the training, PARTS of them.

    Those of a past training by its share of work, scaled as little as its noise needs to agree
    with the one that was measured of this job, within half a part of where it is: noise may grow a
    hundredfold from one measurement to the next. Else this job's own throughout; else larger
    batches have no value.
    """
    own = job.belief.gradient
    if not curve:
        return [NO_GRADIENT if own is None else own] * PARTS
    shares = np.array([share for share, _ in curve])
    noise = np.array([one.variance / max(one.square, 1e-300) for _, one in curve])
    at = (np.arange(PARTS * _POINTS) + 0.5) / (PARTS * _POINTS)
    inverse = 1.0 / (np.interp(at, shares, noise).reshape(PARTS, _POINTS) + 1.0)
    parts = 1.0 / inverse.mean(axis=1) - 1.0
    if own is not None:
        done = 1.0 - job.remaining_work / job.spec.work if job.spec.work > 0 else 0.0
        about = np.interp(done + np.linspace(-0.5, 0.5, 2 * _POINTS + 1) / PARTS, shares, noise)
        measured = own.variance / max(own.square, 1e-300)
        nearest = min(max(measured, float(about.min())), float(about.max()))
        parts *= measured / nearest if nearest > 0 else 1.0
    return [GradientStatistics(1.0, float(value)) for value in parts]


def unseen_job(spec: JobSpec) -> Job:
    """Return a job of which nothing is measured yet."""
    return Job(spec, Belief(), spec.work)
