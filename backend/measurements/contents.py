"""Turns uploaded files into the library's measurements, and says what they cover.

Knows no table; the worker calls it too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from maat.api.simulations import MAX_SIMULATED_JOBS
from maat.laboratory.requested import Model, models_in_texts, shipped_models
from maat.models.locality_table import LocalityTable, read_locality
from maat.models.throughput_table import EPOCH_SAMPLES, read_throughput_text
from maat.scheduling.errors import TraceError
from maat.simulation.interference import (
    Interference,
    gavel_types,
    is_gavel,
    read_interference_text,
    synthetic,
)
from maat.simulation.variability import Variability, read_variability_texts
from maat.vocabulary import SYNTHETIC, MeasurementKind
from maat.workloads.reading import read_workload
from maat.workloads.workloads import Workload

EVERY_GPU = "every GPU"

Texts = Mapping[str, str]


def variability_of(texts: Texts, *, gpu_types: Collection[str] | None = None) -> Variability:
    """Read variability. Raises VariabilityError naming file, row and column."""
    return read_variability_texts(texts, gpu_types=gpu_types)


def interference_of(texts: Texts, *, name: str, gpu_type: str | None = None) -> Interference:
    """Read interference. Raises InterferenceError naming row and column.

    `name`: as results show it. `gpu_type`: one of those that the file distinguishes.
    """
    (text,) = texts.values()
    return read_interference_text(text, name=name, gpu_type=gpu_type)


def locality_of(texts: Texts) -> LocalityTable:
    """Read steps within a node and across nodes. Raises LocalityError naming row and column."""
    ((name, text),) = texts.items()
    return read_locality(text, name=name)


@lru_cache(maxsize=16)
def declared_interference(
    given: str, *, text: str | None = None, name: str = "", gpu_type: str | None = None
) -> Interference:
    """Return the shipped table, one slowdown for all pairs, or the table in a text; cached.

    Raises InterferenceError.
    """
    if text is not None:
        return read_interference_text(text, name=name, gpu_type=gpu_type)
    return synthetic() if given == SYNTHETIC else Interference.constant(float(given))


def catalog_pairs() -> list[tuple[str, str]]:
    """Return the pairs of the catalog's models that can share GPUs: (victim, partner)."""
    return sorted(synthetic().pairs)


def profiles_of(texts: Texts, *, gpu_types: Collection[str] | None = None) -> Mapping[str, Model]:
    """Return the measured models. Raises ProfileError naming file, row and column.

    `gpu_types`: read only the measurements on these. The last few are kept in memory.
    """
    types = None if gpu_types is None else tuple(sorted(gpu_types))
    return _profiles(tuple(sorted(texts.items())), types)


def table_rates(
    texts: Texts, *, model: str, gpu_type: str
) -> list[tuple[int, float, float]] | None:
    """Return (GPUs, batch per GPU, samples per second) of a table of throughputs.

    None if the texts are no table but profiles.
    """
    if len(texts) > 1:
        return None
    ((name, text),) = texts.items()
    counts = read_throughput_text(text, name=name)[model].rates[gpu_type]
    return [
        (count, float(batch), rate * batch)
        for count, by_batch in counts.items()
        for batch, rate in by_batch.items()
    ]


@lru_cache(maxsize=4)
def _profiles(
    texts: tuple[tuple[str, str], ...], gpu_types: tuple[str, ...] | None
) -> Mapping[str, Model]:
    return models_in_texts(dict(texts), gpu_types=gpu_types)


def trace_of(text: str, *, profiled: Collection[str] = ()) -> Workload:
    """Read a trace of models that are shipped, or of those of uploaded profiles.

    It is read in the way that makes more jobs of it. Raises TraceError if none does.
    """
    readings = [_reading(text, known) for known in (shipped_models(), {*profiled, *EPOCH_SAMPLES})]
    read = [each for each in readings if isinstance(each, Workload)]
    if not read and isinstance(readings[0], TraceError):
        raise readings[0]
    return max(read, key=len)


def _reading(text: str, known: Collection[str]) -> Workload | TraceError:
    try:
        return read_workload(text, known_models=known, max_jobs=MAX_SIMULATED_JOBS, name="trace")
    except TraceError as wrong:
        return wrong


def _models_by_type(models: Mapping[str, Model]) -> dict[str, list[str]]:
    types = sorted({gpu_type for model in models.values() for gpu_type in model.memory})
    return {
        gpu_type: sorted(name for name, model in models.items() if model.runs_on(gpu_type))
        for gpu_type in types
    }


def covered(
    kind: MeasurementKind, texts: Texts, *, profiled: Collection[str] = ()
) -> dict[str, list[str]]:
    """Return GPU type -> the applications or models measured on it.

    Reads everything. `profiled`: models of uploaded profiles, which a trace may have. Raises
    InputError.
    """
    if kind is MeasurementKind.VARIABILITY:
        measured = variability_of(texts).measured
        return {
            gpu_type: sorted(name for of, name in measured if of == gpu_type)
            for gpu_type, _ in sorted(measured)
        }
    if kind is MeasurementKind.LOCALITY:
        return {**locality_of(texts).models_by_type}
    if kind is MeasurementKind.PROFILES:
        return _models_by_type(profiles_of(texts))
    ((name, text),) = texts.items()
    if kind is MeasurementKind.TRACE:
        return {EVERY_GPU: sorted({job.model for job in trace_of(text, profiled=profiled).jobs})}
    types = gavel_types(text, name=name) if is_gavel(text) else None
    if types is None:
        return {EVERY_GPU: _models(interference_of(texts, name=name))}
    return {
        gpu_type: _models(interference_of(texts, name=name, gpu_type=gpu_type))
        for gpu_type in sorted(types)
    }


def _models(table: Interference) -> list[str]:
    return sorted({name for pair in table.pairs for name in pair})
