"""A linear programme with some whole-number variables, and its answer, as data.

mixed_solver.py solves it.

    maximise  cost x
    subject to  lower <= x <= upper,  row_lower <= A x <= row_upper,  x whole where `whole`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.report import SolveReport


@dataclass(frozen=True)
class MixedProgramme:
    """N columns, M rows, and the matrix as K entries (row, column, value).

    Shapes (N,), (M,), (K,). An infinite bound is no bound.
    """

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    whole: BoolArray
    row_lower: FloatArray
    row_upper: FloatArray
    row: IntArray
    column: IntArray
    value: FloatArray


@dataclass(frozen=True)
class MixedAnswer:
    """`x`, shape (N,), is feasible and whole where required; None if none is usable.

    The report's message then says why. `infeasible`: the solver proved that no answer exists.
    """

    x: FloatArray | None
    report: SolveReport
    infeasible: bool = False


@dataclass(frozen=True, slots=True)
class MixedOptions:
    """How exact an answer must be, and how much work it may cost.

    `gap`: relative gap below which an answer counts as optimal. `nodes`: the most nodes that
    branch and bound visits; a busy machine gives the same answer. `seconds`: wall time, a last
    resort.
    """

    gap: float = 1e-4
    nodes: int = 5_000
    seconds: float = 60.0


@dataclass
class Rows:
    """The rows of a programme while it is built, one block at a time."""

    _row: list[IntArray] = field(default_factory=list)
    _column: list[IntArray] = field(default_factory=list)
    _value: list[FloatArray] = field(default_factory=list)
    _lower: list[FloatArray] = field(default_factory=list)
    _upper: list[FloatArray] = field(default_factory=list)
    count: int = 0

    def add(
        self, lower: FloatArray, upper: FloatArray, *terms: tuple[IntArray, FloatArray]
    ) -> None:
        """Add a block of B rows: lower <= sum of terms <= upper.

        A term is (columns, coefficients), shapes (B,) or (B, several).
        """
        for columns, values in terms:
            block = np.broadcast_to(
                np.arange(len(lower)).reshape(-1, *([1] * (columns.ndim - 1))), columns.shape
            )
            self._row.append((self.count + block).ravel())
            self._column.append(columns.ravel())
            self._value.append(np.broadcast_to(values, columns.shape).astype(np.float64).ravel())
        self._lower.append(lower)
        self._upper.append(upper)
        self.count += len(lower)

    def programme(
        self, cost: FloatArray, lower: FloatArray, upper: FloatArray, whole: BoolArray
    ) -> MixedProgramme:
        """Return the programme of these rows."""
        return MixedProgramme(
            cost,
            lower,
            upper,
            whole,
            _joined(self._lower),
            _joined(self._upper),
            np.concatenate([np.zeros(0, dtype=np.int64), *self._row]).astype(np.int64),
            np.concatenate([np.zeros(0, dtype=np.int64), *self._column]).astype(np.int64),
            _joined(self._value),
        )


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([np.zeros(0), *parts])


def breaks(programme: MixedProgramme, x: FloatArray, *, tolerance: float = 1e-6) -> bool:
    """Return whether a point breaks a bound, a row, or wholeness.

    The tolerance on a row is relative to the row's size.
    """
    inside = (x >= programme.lower - tolerance) & (x <= programme.upper + tolerance)
    whole = ~programme.whole | (np.abs(x - np.round(x)) <= tolerance)
    terms = programme.value * x[programme.column]
    at = np.bincount(programme.row, weights=terms, minlength=len(programme.row_lower))
    size = tolerance * np.maximum(
        np.bincount(programme.row, weights=np.abs(terms), minlength=len(at)), 1.0
    )
    kept = (at >= programme.row_lower - size) & (at <= programme.row_upper + size)
    return not bool(inside.all() and whole.all() and kept.all())
