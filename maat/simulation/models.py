"""Where the models of a workload come from: the catalog, or a folder of measured profiles with the catalog's constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from maat.scheduling.job import Adaptivity, JobSpec, MemoryLimits
from maat.simulation.catalog import CatalogModel, load_catalog
from maat.simulation.fidelity import Fidelity
from maat.simulation.profiles import read_profiles
from maat.simulation.truth import FittedTruth, MeasuredTruth, Truth
from maat.simulation.workloads import TraceJob

DEFAULT_RESTART_SECONDS = 30.0


@dataclass(frozen=True)
class Model:
    """One model: its truth, and what its owner would declare of it."""

    name: str
    truth: Truth
    restart_seconds: float
    memory: Mapping[str, MemoryLimits]
    gpus_per_replica: Mapping[str, int]
    reference_throughput: Mapping[str, float]

    @property
    def work(self) -> float:
        """Effective samples of a whole training."""
        return self.truth.epoch_ends[-1]

    def job_spec(self, job: TraceJob, fidelity: Fidelity) -> JobSpec:
        """The declaration of a trace's job. Its GPU count and batch size are requests: elastic policies choose their own."""
        truth = self.truth
        largest = max(job.batch_size or 0, truth.initial_batch_size)
        within_trace = fidelity.plan_within_trace_batch and job.batch_size is not None
        smallest = min(limits.smallest_per_gpu for limits in self.memory.values())
        return JobSpec(
            id=job.name,
            name=job.name,
            model=self.name,
            submitted_at=job.submit_seconds,
            work=self.work,
            initial_batch_size=truth.initial_batch_size,
            max_batch_size=largest if within_trace else truth.max_batch_size,
            memory=self._memory(fidelity),
            adaptivity=Adaptivity.ADAPTIVE,
            gpu_count=job.gpu_count,
            max_gpus=max(
                min(fidelity.most_gpus_per_job, truth.max_batch_size // smallest * max(self.gpus_per_replica.values(), default=1)), 1
            ),
            batch_size=job.batch_size,
            gpus_per_replica=self.gpus_per_replica,
            restart_seconds=fidelity.policy_restart_seconds.get(self.name, self.restart_seconds),
        )

    def _memory(self, fidelity: Fidelity) -> Mapping[str, MemoryLimits]:
        by_hand = {t: largest for (model, t), largest in fidelity.policy_largest_per_gpu.items() if model == self.name}
        return {t: MemoryLimits(limits.smallest_per_gpu, by_hand.get(t, limits.largest_per_gpu)) for t, limits in self.memory.items()}


def catalog_models() -> Mapping[str, Model]:
    """The catalog's models, true to their fitted parameters."""
    return {name: _from_catalog(model) for name, model in load_catalog().items()}


def measured_models(folder: Path) -> Mapping[str, Model]:
    """The models of a profiles folder, true to the measurements. Raises ProfileError naming file, row and field."""
    catalog = load_catalog()
    found = {}
    for name, measured in read_profiles(folder).items():
        known = catalog.get(name)
        smallest = known.smallest_per_gpu if known else int(min(table.points[:, 2].min() for table in measured.steps.values()))
        truth = MeasuredTruth(measured, smallest_per_gpu=smallest, slowdown=known.slowdown if known else 1.0)
        replica = {t: known.gpus_per_replica(t) for t in measured.steps} if known else {}
        unit = {t: n for t, n in replica.items() if n > 1}
        memory = {t: MemoryLimits(smallest, int(table.points[:, 2].max())) for t, table in measured.steps.items()}
        restart = known.restart_seconds if known else DEFAULT_RESTART_SECONDS
        found[name] = Model(name, truth, restart, memory, unit, _reference(truth, unit))
    return found


def _reference(truth: Truth, unit: Mapping[str, int]) -> Mapping[str, float]:
    """Samples per second on one replica at the largest batch that it holds, by type: the ratios of the published simulator."""
    reference = {}
    for kind in truth.gpu_types():
        count = unit.get(kind, 1)
        batch = truth.largest_per_gpu(kind, count)
        reference[kind] = batch / truth.step(kind, (count,), batch).step_seconds
    return reference


def _from_catalog(model: CatalogModel) -> Model:
    unit = {t: model.gpus_per_replica(t) for t in model.gpu_types if model.gpus_per_replica(t) > 1}
    memory = model.memory_limits()
    truth = FittedTruth(
        initial_batch_size=model.initial_batch_size,
        max_batch_size=model.max_batch_size,
        work=model.work,
        epochs=model.epochs,
        parameters={t: model.parameters(t) for t in model.gpu_types},
        smallest_per_gpu={t: limits.smallest_per_gpu for t, limits in memory.items()},
        largest_per_gpu={t: limits.largest_per_gpu for t, limits in memory.items()},
        gpus_per_replica=unit,
        noise_scale_curve=model.noise_scale_curve,
        slowdown=model.slowdown,
    )
    return Model(model.name, truth, model.restart_seconds, memory, unit, _reference(truth, unit))
