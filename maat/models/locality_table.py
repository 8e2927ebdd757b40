"""Tables of steps within a node and across nodes, as `maat measure locality` writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from maat.csv_input import Row, read_csv
from maat.scheduling.errors import LocalityError
from maat.scheduling.locality import MeasuredPenalty, penalty_of_ratios
from maat.vocabulary import MAX_GPUS, MAX_TEXT

COLUMNS = (
    "model",
    "gpu_type",
    "gpu_count",
    "per_gpu_batch_size",
    "node_count",
    "within_seconds",
    "across_seconds",
    "steps",
)
"""`within_seconds`: of a step on one node; `across_seconds`: on `node_count` nodes; `steps`: the
fewer of both means. The first five name a measurement."""

KEY_COLUMNS = COLUMNS[:5]


class MeasuredSteps(NamedTuple):
    """One row: the mean steps of a model on one node and on several, the same GPUs in all."""

    model: str
    gpu_type: str
    gpu_count: int
    per_gpu_batch_size: int
    node_count: int
    within_seconds: float
    across_seconds: float
    steps: int

    @property
    def key(self) -> tuple[object, ...]:
        """Return what tells one measurement from another: the values of KEY_COLUMNS."""
        return self[: len(KEY_COLUMNS)]

    @property
    def ratio(self) -> float:
        return self.across_seconds / self.within_seconds


@dataclass(frozen=True)
class LocalityTable:
    """The rows of a table; at least one."""

    rows: tuple[MeasuredSteps, ...]

    @property
    def models_by_type(self) -> Mapping[str, list[str]]:
        return {
            gpu_type: sorted({row.model for row in self.rows if row.gpu_type == gpu_type})
            for gpu_type in sorted({row.gpu_type for row in self.rows})
        }

    def by_type(self, model: str) -> Mapping[str, MeasuredPenalty]:
        """Return the penalty of a model by GPU type."""
        mine = [row for row in self.rows if row.model == model]
        return {
            gpu_type: _penalty(row for row in mine if row.gpu_type == gpu_type)
            for gpu_type in sorted({row.gpu_type for row in mine})
        }

    def penalties(self, gpu_types: Collection[str]) -> Mapping[str, float]:
        """Return the penalty by model, over its rows on these GPU types. Raises LocalityError."""
        rows = [row for row in self.rows if row.gpu_type in gpu_types]
        if not rows:
            raise LocalityError(
                "has no row of a GPU type of this cluster",
                field="gpu_type",
                value=", ".join(self.models_by_type),
                remedy=f"Measure on one of: {', '.join(gpu_types)}.",
            )
        models = sorted({row.model for row in rows})
        return {
            model: _penalty(row for row in rows if row.model == model).penalty for model in models
        }


def read_locality(source: Path | str, *, name: str | None = None) -> LocalityTable:
    """Read a table from a file (Path) or a text. Raises LocalityError with row and field."""
    table = read_csv(source, error=LocalityError, name=name)
    table.require(COLUMNS)
    found: dict[tuple[object, ...], MeasuredSteps] = {}
    for row in table.rows:
        steps = _steps(row)
        if steps.key in found:
            raise row.blame(
                "stands here twice",
                field="model",
                value=steps.model,
                row=row.line,
                remedy=f"Keep one row of the same {', '.join(KEY_COLUMNS)}.",
            )
        found[steps.key] = steps
    if not found:
        raise table.blame(
            "holds no rows", field="rows", remedy="Add one with `maat measure locality`."
        )
    return LocalityTable(tuple(found.values()))


def _steps(row: Row) -> MeasuredSteps:
    nodes = row.whole_number("node_count", minimum=2, maximum=MAX_GPUS)
    return MeasuredSteps(
        _name(row, "model"),
        _name(row, "gpu_type"),
        row.whole_number("gpu_count", minimum=nodes, maximum=MAX_GPUS),
        row.whole_number("per_gpu_batch_size", minimum=0),
        nodes,
        row.number("within_seconds", above=0.0),
        row.number("across_seconds", above=0.0),
        row.whole_number("steps"),
    )


def _name(row: Row, column: str) -> str:
    name = row.cells[column]
    if not 0 < len(name) <= MAX_TEXT:
        raise row.blame(
            f"is no name of 1 to {MAX_TEXT} characters",
            field=column,
            value=name[:MAX_TEXT],
            row=row.line,
            remedy="Name what was measured.",
        )
    return name


def _penalty(rows: Iterable[MeasuredSteps]) -> MeasuredPenalty:
    of_type = list(rows)
    return penalty_of_ratios([row.ratio for row in of_type], steps=sum(r.steps for r in of_type))
