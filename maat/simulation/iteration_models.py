"""Models that are known by one figure, the time of an iteration: those of PAL's traces, whose jobs are so many iterations on so many GPUs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from maat.models.truth import Shape, StepTime
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.job import JobSpec, MemoryLimits
from maat.simulation.fidelity import Fidelity
from maat.simulation.world_models import Model, catalog_models
from maat.vocabulary import Adaptivity
from maat.workloads.workloads import TraceJob

MOST_GPUS = 4096


class IterationTruth:
    """An iteration takes the same time on any GPU type and any GPUs, and is worth one effective sample; a training is one iteration long.

    A trace says how many trainings a job is (`work_scale`). The batch counts GPUs: nothing is known of samples.
    """

    initial_batch_size = 1
    max_batch_size = MOST_GPUS
    epoch_ends: Sequence[float] = (1.0,)
    slowdown = 1.0

    def __init__(self, seconds: float, gpu_types: Sequence[str]) -> None:
        self._time, self._gpu_types = StepTime(seconds, 0.0), tuple(gpu_types)

    def content(self) -> object:
        """All that it was made from: what tells one truth from another."""
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
        """No noise: an iteration is worth the same whatever the batch."""
        return GradientStatistics(1.0, 0.0)

    def steps_after(self, epoch: int, total_batch_size: int) -> float:
        """Nothing comes after the only epoch."""
        return 0.0


class IterationModel(Model):
    """Its jobs are rigid: their iteration times hold for the GPU count of the trace alone."""

    def job_spec(
        self, job: TraceJob, fidelity: Fidelity, *, adaptivity: Adaptivity = Adaptivity.RIGID
    ) -> JobSpec:
        """The declaration of a trace's job, rigid whatever `adaptivity` asks for."""
        return super().job_spec(
            replace(job, batch_size=job.gpu_count), fidelity, adaptivity=Adaptivity.RIGID
        )


@cache
def iteration_models() -> Mapping[str, Model]:
    """The models of PAL's traces, by the names that these use."""
    table = json.loads(
        files("maat.simulation").joinpath("iteration_times.json").read_text(encoding="utf-8")
    )
    memory = {name: MemoryLimits(1, 1, fills_gpu=False) for name in table["gpu_types"]}
    return {
        name: IterationModel(
            name=name,
            truth=IterationTruth(seconds, table["gpu_types"]),
            restart_seconds=0.0,  # PAL section V: negligible
            memory=memory,
            gpus_per_replica={},
            reference_throughput=dict.fromkeys(memory, 1.0 / seconds),
            locality_penalty=table["locality_penalty"],
        )
        for name, seconds in table["iteration_seconds"].items()
    }


@cache
def shipped_models() -> Mapping[str, Model]:
    """All models that Maat knows by itself: the catalog's, and those known by an iteration time alone."""
    return {**catalog_models(), **iteration_models()}
