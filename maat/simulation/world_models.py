"""The models of a simulation: from the catalog, or from a folder of profiles.

Constants that profiles lack are the catalog's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from maat.models.catalog import CatalogModel, load_catalog
from maat.models.catalog_truth import truth_of
from maat.models.measurements import MeasuredModel
from maat.models.profiles import read_profile_texts, read_profiles
from maat.models.throughput_table import TableTruth, read_throughput_table, read_throughput_text
from maat.models.truth import BoundedTruth, MeasuredTruth, Truth
from maat.scheduling.errors import UnknownNameError
from maat.scheduling.job import JobSpec, MemoryLimits, declared
from maat.scheduling.regimes import DeclaredRegimes
from maat.simulation.fidelity import Fidelity
from maat.vocabulary import Adaptivity
from maat.workloads.workloads import TraceJob

DEFAULT_RESTART_SECONDS = 30.0
TABLE_RESTART_SECONDS = 20.0  # checkpoint and resume together (uw-mad-dash/shockwave)


@dataclass(frozen=True)
class Model:
    """A model: its truth, and what its owner would declare.

    `locality_penalty`: how much slower an iteration is across nodes, unless the truth's step times
    include it. `most_gpus_by_type`: the most GPUs on which steps were measured, if they were.
    """

    name: str
    truth: Truth
    restart_seconds: float
    memory: Mapping[str, MemoryLimits]
    gpus_per_replica: Mapping[str, int]
    reference_throughput: Mapping[str, float]
    locality_penalty: float = 1.0
    most_gpus_by_type: Mapping[str, int] = field(default_factory=dict)

    @property
    def work(self) -> float:
        """Effective samples of a whole training."""
        return self.truth.epoch_ends[-1]

    def runs_on(self, gpu_type: str) -> bool:
        """Return whether the model can run on a GPU type."""
        return gpu_type in self.memory

    def on(self, gpu_types: Collection[str]) -> Model:
        """Return the model in a world of these GPU types: one that is measured stays as it is."""
        return self

    def under(self, fidelity: Fidelity) -> Model:
        """Return the model as a fidelity defines it: restart, calibration, memory."""
        largest = {
            t: most
            for (model, t), most in fidelity.largest_per_gpu.items()
            if model == self.name and t in self.memory
        }
        slowdown = self.truth.slowdown if fidelity.calibrated else 1.0
        restart = (
            self.restart_seconds
            if fidelity.flat_restart_seconds is None
            else fidelity.flat_restart_seconds
        )
        if not largest and slowdown == self.truth.slowdown:
            return replace(self, restart_seconds=restart)
        truth = BoundedTruth(self.truth, largest=largest, slowdown=slowdown)
        return replace(
            self, truth=truth, restart_seconds=restart, memory=_at_most(largest, self.memory)
        )

    def job_spec(
        self, job: TraceJob, fidelity: Fidelity, *, adaptivity: Adaptivity = Adaptivity.ADAPTIVE
    ) -> JobSpec:
        """Return the declaration of a trace's job.

        GPU count and batch size of an adaptive job are requests: elastic policies choose their own.
        `adaptivity`: of a job whose trace leaves it open. A strong-scaling job has the trace's
        batch size (the model's initial one if the trace names none), a rigid one also its GPU
        count. A job that sets its own batch sizes is rigid, and may use the GPU types on which all
        of them can run.
        """
        if job.regimes:
            return self._with_regimes(job, fidelity)
        truth = self.truth
        adaptivity = Adaptivity.RIGID if self.name in fidelity.rigid_models else adaptivity
        batch_size = (
            truth.initial_batch_size
            if adaptivity is not Adaptivity.ADAPTIVE and job.batch_size is None
            else job.batch_size
        )
        largest = max(job.batch_size or 0, truth.initial_batch_size)
        within_trace = fidelity.plan_within_trace_batch and job.batch_size is not None
        plannable = largest if within_trace else truth.max_batch_size
        completed = declared(job) | {
            "model": self.name,
            "adaptivity": adaptivity,
            "max_gpus": self._most_gpus(job, fidelity) if job.max_gpus is None else job.max_gpus,
            "batch_size": batch_size,
            "max_batch_size": plannable
            if job.max_batch_size is None
            else min(plannable, job.max_batch_size),
        }
        return JobSpec(
            **completed,
            id=job.name,
            submitted_at=job.submit_seconds,
            tenant=job.tenant,
            work=self.work * job.work_scale,
            initial_batch_size=truth.initial_batch_size,
            memory=self._memory(fidelity),
            gpus_per_replica=self.gpus_per_replica,
            restart_seconds=fidelity.policy_restart_seconds.get(self.name, self.restart_seconds),
            variability_class=fidelity.variability.classes.get(self.name),
            locality_penalty=self.locality_penalty,
            most_gpus_by_type=self.most_gpus_by_type,
            rounds_batch_up=fidelity.rounds_batch_up,
        )

    def _most_gpus(self, job: TraceJob, fidelity: Fidelity) -> int:
        """The limit of a job whose trace names none."""
        smallest = min(limits.smallest_per_gpu for limits in self.memory.values())
        by_batch = (
            self.truth.max_batch_size // smallest * max(self.gpus_per_replica.values(), default=1)
        )
        return max(min(fidelity.most_gpus_per_job, by_batch), job.gpu_count)

    def _with_regimes(self, job: TraceJob, fidelity: Fidelity) -> JobSpec:
        first, sizes = (
            job.regimes[0].batch_size,
            tuple(sorted({regime.batch_size for regime in job.regimes})),
        )
        largest = -(-sizes[-1] // job.gpu_count)
        plain = self.job_spec(
            replace(job, regimes=(), batch_size=first), fidelity, adaptivity=Adaptivity.RIGID
        )
        return replace(
            plain,
            initial_batch_size=first,
            max_batch_size=max(sizes[-1], first),
            memory={
                t: limits
                for t, limits in plain.memory.items()
                if self.truth.largest_per_gpu(t, job.gpu_count) >= largest
            },
            regimes=DeclaredRegimes(self.truth.epoch_ends[0], sizes),
        )

    def _memory(self, fidelity: Fidelity) -> Mapping[str, MemoryLimits]:
        by_hand = {
            t: largest
            for (model, t), largest in fidelity.policy_largest_per_gpu.items()
            if model == self.name
        }
        return {
            t: replace(limits, largest_per_gpu=by_hand.get(t, limits.largest_per_gpu))
            for t, limits in self.memory.items()
        }


def _at_most(
    largest: Mapping[str, int], memory: Mapping[str, MemoryLimits]
) -> Mapping[str, MemoryLimits]:
    return {
        t: replace(
            limits,
            largest_per_gpu=min(limits.largest_per_gpu, largest.get(t, limits.largest_per_gpu)),
        )
        for t, limits in memory.items()
    }


def catalog_models() -> Mapping[str, Model]:
    """Return the catalog's models; their truth is their fitted parameters."""
    return {name: model_of(model) for name, model in load_catalog().items()}


def named_model(name: str, profiles: Mapping[str, Model] | None = None) -> Model:
    """Return a model of these; None: of the catalog. Raises UnknownNameError."""
    models = catalog_models() if profiles is None else profiles
    if name not in models:
        raise UnknownNameError(
            "is no known model",
            field="model",
            value=name,
            remedy=f"Use one of: {', '.join(sorted(models))}.",
        )
    return models[name]


def measured_models(
    folder: Path, *, gpu_types: Collection[str] | None = None
) -> Mapping[str, Model]:
    """Return the models of a profiles folder, or of a file of throughputs.

    Their truth is the measurements. `gpu_types`: read only these. Raises ProfileError naming file,
    row and field.
    """
    if folder.is_file():
        return _from_tables(read_throughput_table(folder))
    return _from_profiles(read_profiles(folder, gpu_types=gpu_types))


def models_in_texts(
    texts: Mapping[str, str], *, gpu_types: Collection[str] | None = None
) -> Mapping[str, Model]:
    """Return the models of the texts of a profiles folder, or of one table of throughputs.

    `texts`: by the names of their files; a single one that begins as JSON is a table. Raises
    ProfileError naming file, row and field.
    """
    if len(texts) == 1:
        ((name, text),) = texts.items()
        if name.endswith(".json") or text.lstrip().startswith("{"):
            return _from_tables(read_throughput_text(text, name=name))
    return _from_profiles(read_profile_texts(texts, gpu_types=gpu_types))


def _from_tables(tables: Mapping[str, TableTruth]) -> Mapping[str, Model]:
    return {name: _from_table(name, truth) for name, truth in tables.items()}


def _from_profiles(profiles: Mapping[str, MeasuredModel]) -> Mapping[str, Model]:
    return {name: _measured(measured) for name, measured in profiles.items()}


def _measured(measured: MeasuredModel) -> Model:
    """A measured model. What was not measured is the catalog's, or a plain default.

    Not measured are restart seconds, slowdown, replica size and smallest batch.
    """
    known = load_catalog().get(measured.name)
    fits = known.fits if known else {}
    least = min((fit.smallest_per_gpu_batch_size for fit in fits.values()), default=1)
    measured_least = int(min(table.points[:, 2].min() for table in measured.steps.values()))
    truth = MeasuredTruth(
        measured,
        smallest_per_gpu=least if known else measured_least,
        slowdown=known.slowdown if known else 1.0,
    )
    unit = {
        t: fits[t].gpus_per_replica
        for t in measured.steps
        if t in fits and fits[t].gpus_per_replica > 1
    }
    memory = {
        t: MemoryLimits(truth.smallest_per_gpu(t), truth.largest_per_gpu(t, unit.get(t, 1)))
        for t in measured.steps
    }
    restart = known.restart_seconds if known else DEFAULT_RESTART_SECONDS
    most = {t: table.most_gpus for t, table in measured.steps.items()}
    reference = _reference(truth, unit)
    return Model(measured.name, truth, restart, memory, unit, reference, most_gpus_by_type=most)


def _from_table(name: str, truth: TableTruth) -> Model:
    first = {
        t: next(count for count in range(1, 10**6) if truth.largest_per_gpu(t, count))
        for t in truth.gpu_types()
    }
    memory = {
        t: MemoryLimits(
            truth.smallest_per_gpu(t), truth.largest_per_gpu(t, first[t]), fills_gpu=False
        )
        for t in first
    }
    reference = {
        t: memory[t].largest_per_gpu * first[t] / truth.slowest_step(t, first[t]) for t in first
    }
    return Model(name, truth, TABLE_RESTART_SECONDS, memory, {}, reference)


def _reference(truth: Truth, unit: Mapping[str, int]) -> Mapping[str, float]:
    """Samples per second of one replica, by type.

    As in the published simulator: largest batch over largest step time.
    """
    reference = {}
    for kind in truth.gpu_types():
        count = unit.get(kind, 1)
        reference[kind] = truth.largest_per_gpu(kind, count) / truth.slowest_step(kind, count)
    return reference


def model_of(model: CatalogModel) -> Model:
    """Return a model whose truth are the fits of a catalog."""
    unit = {t: n for t, n in model.gpus_per_replica.items() if n > 1}
    memory = model.memory_limits()
    truth = truth_of(model)
    return Model(model.name, truth, model.restart_seconds, memory, unit, _reference(truth, unit))
