"""What items build their runs from: published data where they are, else what stands in for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

from maat.models.profile_files import texts_of_model
from maat.papers.data import Data
from maat.papers.own import OwnMeasurements
from maat.scheduling.errors import ProfileError, VariabilityError
from maat.simulation.iteration_models import shipped_models
from maat.simulation.variability import Measurements, Variability, read_variability_texts
from maat.simulation.world_models import Model, measured_models, models_in_texts
from maat.vocabulary import MeasurementKind
from maat.workloads.generators import generate
from maat.workloads.reading import read_workload
from maat.workloads.workloads import Workload

Value = TypeVar("Value")
MOST_TINY_JOBS = 5
MOST_REMEMBERED = 4  # of one's own measurements that a process has read


class Size(StrEnum):
    """How much is run: all, ten minutes on two cores a paper, or a few jobs, as tests do."""

    WHOLE = "whole"
    QUICK = "quick"
    TINY = "tiny"


@dataclass
class Bench:
    """The data of one item's runs, and notes on what stood in for published data."""

    data: Data = field(default_factory=Data)
    size: Size = Size.WHOLE
    notes: list[str] = field(default_factory=list)

    def pick(self, whole: Value, *, quick: Value, tiny: Value | None = None) -> Value:
        """Return what suits the size; without a tiny one, the quick one."""
        if self.size is Size.WHOLE:
            return whole
        return quick if self.size is Size.QUICK or tiny is None else tiny

    def note(self, sentence: str) -> None:
        """Say something that a reader of the figures should know, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def sia_models(self) -> Mapping[str, Model]:
        """Return the models measured for Sia; else the catalog's, fitted to them.

        Of one's own profiles, a model that they lack raises ProfileError where it is looked up.
        """
        own = self.data.own_of(MeasurementKind.PROFILES)
        if own is not None:
            return _own_models(own)
        if self.data.has("sia profiles"):
            return _measured(self.data.path("sia profiles"))
        self.note("Without the published profiles: models are the catalog's fits of them.")
        return shipped_models()

    @property
    def has_published_profiles(self) -> bool:
        """Whether models are those of the published profiles."""
        is_own = self.data.own_of(MeasurementKind.PROFILES) is not None
        return not is_own and self.data.has("sia profiles")

    def profile_texts(self, model: str) -> Mapping[str, str] | None:
        """Return the files of a model's profile by name; None: there are none but the catalog's."""
        own = self.data.own_of(MeasurementKind.PROFILES)
        if own is not None:
            return texts_of_model(own.texts, model)
        if not self.data.has("sia profiles"):
            return None
        folder = self.data.path("sia profiles") / model
        return {f"{model}/{path.name}": path.read_text("utf-8") for path in folder.glob("*.csv")}

    def own_trace(self, models: Mapping[str, Model]) -> Workload | None:
        """Return one's own trace that stands in for the published one, if any.

        Raises TraceError.
        """
        own = self.data.own_of(MeasurementKind.TRACE)
        if own is None:
            return None
        workload = _own_trace(own, tuple(models))
        for note in workload.notes:
            self.note(note)
        return self.sized(workload)

    def sia_trace(self, family: str, number: int, models: Mapping[str, Model]) -> Workload:
        """Return a trace of Sia's: `philly`, `saturn` (Helios), `newtrace`; or a generated one.

        One's own trace stands in for each.
        """
        own = self.own_trace(models)
        if own is not None:
            return own
        part = f"{family}/workload-{number}"
        if self.data.has("sia trace {}", part):
            workload = _read(self.data.path("sia trace {}", part), tuple(models))
            return self.sized(replace(workload, name=f"{family}-{number}"))
        self.note("Without the published traces: generated ones of the same families.")
        return self.generated({"saturn": "helios"}.get(family, family), seed=number)

    def sia_traces(self, family: str, models: Mapping[str, Model]) -> Mapping[str, Workload]:
        """Return the published traces of a family that are there, of ten; quick: the first.

        One's own trace stands in for all of them.
        """
        own = self.own_trace(models)
        if own is not None:
            return {own.name: own}
        there = [
            n for n in range(1, 11) if self.data.has("sia trace {}", f"{family}/workload-{n}")
        ] or [1, 2, 3]
        numbers = self.pick(there, quick=there[:1])
        return {f"{family}-{n}": self.sia_trace(family, n, models) for n in numbers}

    def sia_scaled(
        self, name: str, models: Mapping[str, Model], *, jobs: int, seed: int
    ) -> Workload:
        """Return a Helios trace at another rate or size, `rate_10` or `scale_2x`; or generated."""
        part = f"scale/{name}/workload-1"
        if self.data.has("sia trace {}", part):
            workload = _read(self.data.path("sia trace {}", part), tuple(models))
            return self.sized(replace(workload, name=name))
        self.note("Without the published traces: generated ones of the same families.")
        return self.generated("helios", jobs=jobs, seed=seed)

    def pollux_trace(self, number: int, models: Mapping[str, Model], *, load: str = "") -> Workload:
        """Return a trace of Pollux; `load`: "", "-0.5", "-1.5", "-2.0" or "-realistic"."""
        part = f"workloads{load}/workload-{number}"
        if self.data.has("pollux trace {}", part):
            workload = _read(self.data.path("pollux trace {}", part), tuple(models))
            return self.sized(replace(workload, name=f"workload-{number}{load}"))
        self.note("Without the published traces: generated ones of the philly family.")
        jobs = round(160 * float(load[1:])) if load[1:2].isdigit() else 160
        return self.generated("philly", jobs=jobs, seed=number)

    def pal_trace(self, part: str, models: Mapping[str, Model]) -> Workload:
        """Return a trace of PAL: `workload-1`, or `sia-cluster-160`; or one's own.

        Raises MissingData.
        """
        own = self.own_trace(models)
        if own is not None:
            return own
        return self.sized(_read(self.data.path("pal trace {}", part), tuple(models)))

    def variability(self, *gpu_types: str) -> Variability:
        """Return PAL's measurements of single GPUs of these types, or one's own.

        Raises MissingData.
        """
        own = self.data.own_of(MeasurementKind.VARIABILITY)
        if own is not None:
            return _own_variability(own, gpu_types)
        return _variability(self.data.path("pal variability"), gpu_types)

    def generated(
        self, family: str, *, jobs: int | None = None, hours: float | None = None, seed: int
    ) -> Workload:
        """Return a generated trace, by the defaults of its family."""
        return self.sized(self.whole_generated(family, jobs=jobs, hours=hours, seed=seed))

    def whole_generated(
        self, family: str, *, jobs: int | None = None, hours: float | None = None, seed: int
    ) -> Workload:
        """Return a generated trace of which no size leaves jobs out."""
        return _generated(family, jobs, hours, seed)

    def sized(self, workload: Workload) -> Workload:
        """Return the trace; for a tiny size only its first jobs."""
        if self.size is not Size.TINY:
            return workload
        return replace(workload, jobs=workload.jobs[:MOST_TINY_JOBS])


@lru_cache(maxsize=MOST_REMEMBERED)  # several policies or placers run each
def _generated(family: str, jobs: int | None, hours: float | None, seed: int) -> Workload:
    return generate(family, jobs=jobs, hours=hours, seed=seed)


class _OwnModels(dict[str, Model]):
    """Models of one's own profiles: one that they lack is an error for who chose them."""

    def __missing__(self, model: str) -> Model:
        raise ProfileError(
            "lack a model that is needed here",
            field=MeasurementKind.PROFILES,
            value=model,
            remedy=f"They have {', '.join(sorted(self))}: measure it too, or make other items.",
        )


class _OwnGpus(dict[tuple[str, str], Measurements]):
    """One's own measured GPUs: what was not measured is an error for who chose them."""

    def __missing__(self, wanted: tuple[str, str]) -> Measurements:
        gpu_type, application = wanted
        raise VariabilityError(
            f"have no measurements of {application}",
            field="gpu_type",
            value=gpu_type,
            remedy=f"Add {application}-{gpu_type}.csv, or make other items.",
        )


@lru_cache(maxsize=MOST_REMEMBERED)
def _own_models(own: OwnMeasurements) -> Mapping[str, Model]:
    return _OwnModels(models_in_texts(own.texts))


@lru_cache(maxsize=MOST_REMEMBERED)
def _own_trace(own: OwnMeasurements, models: tuple[str, ...]) -> Workload:
    workload = read_workload(own.text, known_models=models, name=own.name)
    return replace(workload, name=own.name)


@lru_cache(maxsize=MOST_REMEMBERED)
def _own_variability(own: OwnMeasurements, gpu_types: tuple[str, ...]) -> Variability:
    found = read_variability_texts(own.texts, gpu_types=gpu_types or None)
    return Variability(_OwnGpus(found.measured))


@cache
def _measured(folder: Path) -> Mapping[str, Model]:
    return measured_models(folder)


@cache
def _read(path: Path, models: tuple[str, ...]) -> Workload:
    return read_workload(path, known_models=models)


@cache
def _variability(folder: Path, gpu_types: tuple[str, ...]) -> Variability:
    """Read the measurements; in a checkout they lie in a folder for each cluster."""
    files = {path.name: path for path in sorted(folder.rglob("*-agg.csv"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    return read_variability_texts(texts, gpu_types=gpu_types)
