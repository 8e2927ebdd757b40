"""Interference: how much jobs on the same GPU slow each other.

A measured table, the shipped synthetic table, or a constant; its name says which. The format of a
table is recognised by its contents: Gavel's throughputs (JSON), PAL's co-location measurements
(CSV), or Maat's own columns (CSV).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from maat.compression import problem_and_remedy, problem_of_text
from maat.csv_input import CsvInput, Row, read_csv
from maat.scheduling.errors import InterferenceError
from maat.scheduling.interference import SharingJob, nearest
from maat.vocabulary import MAX_SLOWDOWN, SYNTHETIC

MAX_GPUS_PER_JOB = 1_000_000
MAX_STEPS_PER_SECOND = 1e9
GAVEL_TYPE = "v100"

_BATCH = re.compile(r"(?P<model>.+) \(batch size (?P<size>[0-9]{1,9})\)")

Pair = tuple[str, str]
ByCount = Mapping[int, float]

# Measured models that stand for catalog models whose shared speed was not measured: image and
# language models of similar size.
GAVEL_STANDS_FOR: Mapping[str, str] = {
    "ResNet-18 (batch size 64)": "cifar10",
    "ResNet-50 (batch size 64)": "imagenet",
    "Transformer (batch size 64)": "bert",
    "LM (batch size 20)": "deepspeech2",
    "Recommendation (batch size 2048)": "ncf",
}
# measured model -> its name in PAL's traces, if that differs
PAL_APPLICATIONS: Mapping[str, str] = {"Bert-Base": "BERT"}
PAL_STANDS_FOR: Mapping[str, str] = {"resnet50": "imagenet", "vgg19": "yolov3", "Bert-Base": "bert"}


@dataclass(frozen=True)
class Interference:
    """(victim model, partner model) -> GPU count of the victim -> slowdown, >= 1.

    Infinite if the two do not fit on one GPU. `everywhere`: one slowdown for all pairs instead of a
    table.
    """

    name: str
    pairs: Mapping[Pair, ByCount] = field(default_factory=dict)
    everywhere: float | None = None

    @classmethod
    def constant(cls, xi: float) -> Interference:
        """Return one slowdown for all jobs that share a GPU.

        Raises InterferenceError below 1.
        """
        if not 1.0 <= xi <= MAX_SLOWDOWN:
            raise InterferenceError(
                f"is no slowdown from 1 to {MAX_SLOWDOWN:g}",
                field="interference",
                value=xi,
                remedy="Give solo over shared speed, such as 1.25.",
            )
        return cls(f"constant {xi:g}", everywhere=float(xi))

    def called(self, model: str, per_gpu_batch_size: int) -> str:
        """Return the name of a job in the table.

        This is its model, or the type `MODEL (batch size N)` of its batch per GPU. A batch size
        that was not measured stands for the next smaller measured one, else for the smallest. The
        model itself if the table knows neither.
        """
        sizes = self._batch_sizes.get(model)
        if not sizes or model in self._models:
            return model
        return SharingJob(model, nearest(per_gpu_batch_size, sizes)).name

    @cached_property
    def _models(self) -> frozenset[str]:
        return frozenset(victim for victim, _ in self.pairs)

    @cached_property
    def _batch_sizes(self) -> Mapping[str, list[int]]:
        """By model: the batch sizes of its measured types."""
        found: dict[str, list[int]] = {}
        for name in self._models:
            match = _BATCH.fullmatch(name)
            if match is not None:
                found.setdefault(match["model"], []).append(int(match["size"]))
        return found

    def between(
        self, models: Collection[str], gpu_counts: Collection[int]
    ) -> dict[tuple[str, str, int], float]:
        """Return (victim, partner, GPU count) -> slowdown of every ordered pair.

        Models or job types, as policies and simulator look them up. A count that was not measured
        has the figure of the next smaller measured one, else of the smallest. Raises
        InterferenceError for a pair that the table lacks: an unknown slowdown is not the same as
        none.
        """
        pairs = [(victim, partner) for victim in sorted(models) for partner in sorted(models)]
        return {
            (victim, partner, n): self._slowdown((victim, partner), n)
            for victim, partner in pairs
            for n in gpu_counts
        }

    def of_jobs(self, victim: SharingJob, partner: SharingJob, gpu_count: int) -> float | None:
        """Return the slowdown of one job by another as a live cluster asks; None if not known."""
        pair = (
            self.called(victim.model, victim.per_gpu_batch_size),
            self.called(partner.model, partner.per_gpu_batch_size),
        )
        return self._slowdown_or_none(pair, gpu_count)

    @property
    def worst(self) -> float:
        """Return the largest slowdown of two jobs that fit on one GPU."""
        if self.everywhere is not None:
            return self.everywhere
        found = [xi for by_count in self.pairs.values() for xi in by_count.values()]
        return max((xi for xi in found if math.isfinite(xi)), default=MAX_SLOWDOWN)

    def bounded(self) -> Interference:
        """Return a table in which jobs that do not fit on one GPU run at the worst slowdown."""
        worst = self.worst
        bounded = {
            pair: {count: min(xi, worst) for count, xi in by_count.items()}
            for pair, by_count in self.pairs.items()
        }
        return Interference(self.name, bounded, self.everywhere)

    def _slowdown_or_none(self, pair: Pair, gpu_count: int) -> float | None:
        if self.everywhere is not None:
            return self.everywhere
        by_count = self.pairs.get(pair)
        return by_count[nearest(gpu_count, list(by_count))] if by_count else None

    def _slowdown(self, pair: Pair, gpu_count: int) -> float:
        found = self._slowdown_or_none(pair, gpu_count)
        if found is None:
            known = ", ".join(sorted({victim for victim, _ in self.pairs})[:12])
            raise InterferenceError(
                f"has no slowdown of {pair[0]} with {pair[1]}",
                field="interference",
                value=self.name,
                remedy=f"Use a table with that pair, or a constant such as 1.25. It knows {known}.",
            )
        return found


def interference(given: str) -> Interference:
    """Return the interference that a text names.

    The text is `synthetic`, a constant such as 1.25, or a file; `FILE#p100` chooses one of Gavel's
    GPU types. Raises InterferenceError.
    """
    if given == SYNTHETIC:
        return synthetic()
    try:
        return Interference.constant(float(given))
    except ValueError:
        pass
    text, _, gpu_type = given.partition("#")
    path = Path(text)
    if not path.is_file():
        raise InterferenceError(
            "is no file, no number and not 'synthetic'",
            field="interference",
            value=given,
            remedy="Name a CSV or JSON table, or a number from 1 up.",
        )
    return (
        read_gavel(path, gpu_type=gpu_type or GAVEL_TYPE)
        if path.suffix == ".json"
        else read_table(path)
    )


@cache
def synthetic() -> Interference:
    """Return the shipped table of the catalog's six data-parallel models.

    These pairs were not measured: see `statement` in interference.json.
    """
    data = json.loads(files("maat.simulation").joinpath("interference.json").read_text("utf-8"))
    pairs = {
        (victim, partner): {1: float(xi)}
        for victim, row in data["pairs"].items()
        for partner, xi in row.items()
    }
    return Interference("synthetic (declared, not measured)", pairs)


# ---- measured tables

_OWN = ("victim", "partner", "gpu_count", "slowdown")
_PAL = ("model1", "gpu_num1", "speed1", "pipeline_strategy", "model2", "gpu_num2", "speed2")
_DATA_PARALLEL = frozenset({"NA", "DP24"})


def read_table(source: Path | str, *, name: str | None = None) -> Interference:
    """Read a CSV with the columns victim, partner, gpu_count, slowdown, or PAL's.

    PAL's file is norm_speed.csv. Raises InterferenceError with row and field.
    """
    table = read_csv(source, error=InterferenceError, name=name)
    title = name if name is not None else source.name if isinstance(source, Path) else "table"
    from_pal = set(_PAL) <= set(table.header)
    if not from_pal:
        table.require(_OWN)
    found = _collected(_pal_rows(table) if from_pal else _own_rows(table))
    if not found:
        raise table.blame(
            "holds no pairs", field="rows", remedy="Add a row for each victim and partner."
        )
    return _measured_by_pal(found, title) if from_pal else Interference(f"table ({title})", found)


def read_interference_text(text: str, *, name: str, gpu_type: str | None = None) -> Interference:
    """Return the interference in a text of any of the formats.

    `gpu_type`: one of Gavel's; None: `GAVEL_TYPE`. Raises InterferenceError.
    """
    if is_gavel(text):
        return read_gavel(text, gpu_type=gpu_type or GAVEL_TYPE, name=name)
    if gpu_type is not None:
        remedy = "Leave out the type: this table holds for every GPU."
        raise InterferenceError(
            "is no measurement of one GPU type",
            field="interference",
            value=f"{name}#{gpu_type}",
            remedy=remedy,
        )
    return read_table(text, name=name)


def is_gavel(text: str) -> bool:
    """Return whether a text is JSON; of these formats only Gavel's is."""
    return text.lstrip()[:1] in ("{", "[")


def _own_rows(table: CsvInput) -> Iterable[tuple[Pair, int, float]]:
    line_of: dict[tuple[Pair, int], int] = {}
    for row in table.rows:
        count = row.whole_number("gpu_count", maximum=MAX_GPUS_PER_JOB)
        pair = (_model(row, "victim"), _model(row, "partner"))
        first = line_of.setdefault((pair, count), row.line)
        if first != row.line:
            raise row.blame(
                f"is the second of {pair[0]} beside {pair[1]} for gpu_count {count}, "
                f"after that of line {first}",
                field="slowdown",
                value=row.cells["slowdown"],
                row=row.line,
                remedy="Keep one of the two lines.",
            )
        yield pair, count, row.number("slowdown", minimum=1.0, maximum=MAX_SLOWDOWN)


def _model(row: Row, column: str) -> str:
    name = row.cells[column]
    if not name:
        raise row.blame(
            "is missing", field=column, row=row.line, remedy="Name a model of the trace."
        )
    return name


def _pal_rows(table: CsvInput) -> Iterable[tuple[Pair, int, float]]:
    """Yield both directions of every data-parallel pair: speed alone over shared.

    A speed of 0 means that the two do not fit on one GPU.
    """
    alone: dict[tuple[str, int, str], float] = {}
    for row in table.rows:
        first, second, how = (
            row.cells["model1"],
            row.cells["model2"],
            row.cells["pipeline_strategy"],
        )
        if how not in _DATA_PARALLEL:
            continue
        count, speed = row.whole_number("gpu_num1"), _speed(row, "speed1")
        if second == "Empty":
            alone[first, count, how] = speed
        else:
            yield (first, second), count, _ratio(alone.get((first, count, how), 1.0), speed)
            yield (second, first), row.whole_number("gpu_num2"), _ratio(1.0, _speed(row, "speed2"))


def _speed(row: Row, column: str) -> float:
    return row.number(column, minimum=0.0, maximum=MAX_SLOWDOWN)


def _measured_by_pal(found: Mapping[Pair, ByCount], title: str) -> Interference:
    named = _standing_in(_apart_where_unmeasured(found), PAL_APPLICATIONS)
    return Interference(f"measured ({title})", _standing_in(named, PAL_STANDS_FOR))


def _apart_where_unmeasured(pairs: Mapping[Pair, ByCount]) -> dict[Pair, ByCount]:
    """The pairs; models that PAL did not run together get an infinite slowdown.

    PAL did not measure language models among themselves.
    """
    models = sorted({model for pair in pairs for model in pair})
    return {
        (victim, partner): pairs.get((victim, partner), {1: math.inf})
        for victim in models
        for partner in models
    }


def read_gavel(
    source: Path | str, *, gpu_type: str = GAVEL_TYPE, name: str | None = None
) -> Interference:
    """Read Gavel's simulation_throughputs.json from a file (Path) or a text.

    Returns pairs of one-GPU jobs on one GPU type; its pairs of larger jobs hold no measurements.
    Raises InterferenceError.
    """
    title = name if name is not None else source.name if isinstance(source, Path) else "table"
    by_type = gavel_types(source, name=str(source) if isinstance(source, Path) else title)
    if gpu_type not in by_type:
        raise _not_gavel(title, f"has no GPU type {gpu_type}; use one of {', '.join(by_type)}")
    rows: list[tuple[Pair, int, float]] = []
    for key, speeds in by_type[gpu_type].items():
        victim = _one_gpu_job(key)
        for other, both in speeds.items() if victim is not None else ():
            partner = _one_gpu_job(other)
            if victim is not None and partner is not None:
                try:
                    rows.append(
                        (
                            (victim, partner),
                            1,
                            _ratio(_gavel_speed(speeds["null"]), _gavel_speed(both[0])),
                        )
                    )
                except (KeyError, TypeError, ValueError, IndexError) as wrong:
                    raise _not_gavel(title, f"has no speeds for {key} with {other}") from wrong
    return Interference(
        f"measured ({title}, {gpu_type})", _standing_in(_collected(rows), GAVEL_STANDS_FOR)
    )


def gavel_types(source: Path | str, *, name: str) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return GPU type -> job -> partner -> speeds.

    Raises InterferenceError if the JSON is of another kind.
    """
    try:
        given = source.read_bytes() if isinstance(source, Path) else source
        packed = problem_of_text(given) if isinstance(given, str) else problem_and_remedy(given)
        if packed:
            raise _not_gavel(name, packed[0], remedy=packed[1])
        data = json.loads(given)
    # ValueError: no UTF-8, no JSON, numbers of thousands of digits
    except (OSError, ValueError, RecursionError) as wrong:
        raise _not_gavel(name, "is no JSON that can be read") from wrong
    by_type = list(data.values()) if isinstance(data, dict) else []
    jobs = [row for by_job in by_type if isinstance(by_job, dict) for row in by_job.values()]
    if not jobs or not all(isinstance(item, dict) for item in (*by_type, *jobs)):
        raise _not_gavel(name, "holds no throughputs by GPU type and job")
    return data  # type: ignore[no-any-return]


def _gavel_speed(given: Any) -> float:
    """Raises TypeError or ValueError."""
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or not 0 <= given <= MAX_STEPS_PER_SECOND
    ):
        raise ValueError(given)
    return float(given)


def _not_gavel(
    name: str, problem: str, *, remedy: str = "Give Gavel's simulation_throughputs.json."
) -> InterferenceError:
    return InterferenceError(problem, field="interference", value=name, remedy=remedy)


def _one_gpu_job(key: str) -> str | None:
    """Return the job type in a key such as ('ResNet-50 (batch size 64)', 1).

    None for a job of several GPUs and for `null`.
    """
    match = re.fullmatch(r"\('(?P<name>[^']+)', 1\)", key)
    return None if match is None else match["name"]


def _ratio(alone: float, together: float) -> float:
    """The slowdown, at least 1: a higher speed with a partner is measurement noise."""
    return math.inf if together <= 0 else max(alone / together, 1.0)


def _collected(rows: Iterable[tuple[Pair, int, float]]) -> dict[Pair, dict[int, float]]:
    """Group figures by pair and count; of several figures, keep the worst."""
    found: dict[Pair, dict[int, float]] = {}
    for pair, count, xi in rows:
        by_count = found.setdefault(pair, {})
        by_count[count] = max(xi, by_count.get(count, 1.0))
    return found


def _standing_in(pairs: Mapping[Pair, ByCount], names: Mapping[str, str]) -> dict[Pair, ByCount]:
    """Return the pairs under their measured names and under those of other models.

    `names`: measured model -> the model that it stands for.
    """
    found = dict(pairs)
    for (victim, partner), by_count in pairs.items():
        for pair in (
            (names.get(victim), partner),
            (victim, names.get(partner)),
            (names.get(victim), names.get(partner)),
        ):
            if pair[0] is not None and pair[1] is not None:
                found[pair[0], pair[1]] = by_count
    return found
