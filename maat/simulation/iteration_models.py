"""Models known only by the time of an iteration: those of PAL's traces, and jobs as recorded.

A job is a number of iterations on a number of GPUs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache

from maat.models.gpu_types import GPU_TYPES
from maat.models.iteration_times import iteration_times
from maat.models.truth import Shape, StepTime
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.job import JobSpec, MemoryLimits
from maat.simulation.fidelity import Fidelity
from maat.simulation.world_models import DEFAULT_RESTART_SECONDS, Model, catalog_models
from maat.vocabulary import Adaptivity
from maat.workloads.recorded import MOST_RECORDED_GPUS, RECORDED
from maat.workloads.workloads import TraceJob


class IterationTruth:
    """The truth of a model whose iterations take the same time on any GPUs.

    An iteration is worth one effective sample; a training is one iteration long. `work_scale` in
    the trace says how many trainings a job is. The batch counts GPUs, since samples are unknown.
    """

    initial_batch_size = 1
    max_batch_size = MOST_RECORDED_GPUS
    epoch_ends: Sequence[float] = (1.0,)
    slowdown = 1.0

    def __init__(self, seconds: float, gpu_types: Sequence[str]) -> None:
        self._time, self._gpu_types = StepTime(seconds, 0.0), tuple(gpu_types)

    def content(self) -> object:
        """Return what this truth was made from; it identifies the truth."""
        return {"iteration_seconds": self._time.step_seconds, "gpu_types": self._gpu_types}

    def gpu_types(self) -> Sequence[str]:
        return self._gpu_types

    def step(self, gpu_type: str, shape: Shape, per_gpu_batch_size: int) -> StepTime:
        return self._time

    def smallest_per_gpu(self, gpu_type: str) -> int:
        return 1

    def largest_per_gpu(self, gpu_type: str, gpu_count: int) -> int:
        return 1

    def slowest_step(self, gpu_type: str, gpu_count: int) -> float:
        return self._time.step_seconds

    def gradient(self, epoch: int, total_batch_size: int) -> GradientStatistics:
        """Return gradients without noise: an iteration is worth the same at any batch."""
        return GradientStatistics(1.0, 0.0)

    def steps_after(self, epoch: int, total_batch_size: int) -> float:
        """Return 0: there is only one epoch."""
        return 0.0


class IterationModel(Model):
    """A model whose jobs are rigid.

    Iteration times hold only for the trace's GPU count.
    """

    def job_spec(
        self, job: TraceJob, fidelity: Fidelity, *, adaptivity: Adaptivity = Adaptivity.RIGID
    ) -> JobSpec:
        """Return the declaration of a trace's job; it is rigid for every `adaptivity`."""
        return super().job_spec(
            replace(job, batch_size=job.gpu_count), fidelity, adaptivity=Adaptivity.RIGID
        )


@cache
def iteration_models() -> Mapping[str, Model]:
    """Return the models of PAL's traces, by their names there."""
    times = iteration_times()
    memory = {name: MemoryLimits(1, 1, fills_gpu=False) for name in times.gpu_types}
    return {
        name: IterationModel(
            name=name,
            truth=IterationTruth(seconds, times.gpu_types),
            restart_seconds=0.0,  # PAL section V: negligible
            memory=memory,
            gpus_per_replica={},
            reference_throughput=dict.fromkeys(memory, 1.0 / seconds),
            locality_penalty=times.locality_penalty,
        )
        for name, seconds in times.seconds.items()
    }


class RecordedModel(IterationModel):
    """The model of jobs that are replayed as recorded, on GPUs of any type.

    It takes as long on every GPU type: a trace binds its jobs to the types that they ran on, where
    it says it. So a type needs no measurement, only a name.
    """

    def runs_on(self, gpu_type: str) -> bool:
        return True

    def on(self, gpu_types: Collection[str]) -> Model:
        more = [name for name in gpu_types if name not in self.memory]
        return _recorded((*self.memory, *sorted(more))) if more else self


@cache
def recorded_model() -> Model:
    """Return the model of jobs that are replayed as recorded: a second of it takes a second."""
    return _recorded(GPU_TYPES)


def _recorded(gpu_types: Sequence[str]) -> RecordedModel:
    memory = {name: MemoryLimits(1, 1, fills_gpu=False) for name in gpu_types}
    return RecordedModel(
        name=RECORDED,
        truth=IterationTruth(1.0, gpu_types),
        restart_seconds=DEFAULT_RESTART_SECONDS,
        memory=memory,
        gpus_per_replica={},
        reference_throughput=dict.fromkeys(memory, 1.0),
    )


@cache
def shipped_models() -> Mapping[str, Model]:
    """Return all that Maat ships: the catalog's, the iteration models, and jobs as recorded."""
    return {**catalog_models(), **iteration_models(), RECORDED: recorded_model()}
