"""A linear programme some of whose variables are whole numbers, and its answer, as data. Not responsible for solving: see mixed_solver.py.

maximise  cost x   with  lower <= x <= upper,  row_lower <= A x <= row_upper,  x whole where `whole`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.report import SolveReport


@dataclass(frozen=True)
class MixedProgramme:
    """N columns, M rows; the matrix as K entries (row, column, value). Shapes (N,), (M,), (K,); infinite bounds are none."""

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
    """`x`, shape (N,): feasible, whole where it must be; None where there is no usable answer, and the report's message says why.

    `infeasible`: it is proved that there can be none.
    """

    x: FloatArray | None
    report: SolveReport
    infeasible: bool = False


@dataclass(frozen=True, slots=True)
class MixedOptions:
    """`gap`: relative, at which an answer counts as proved. `nodes`: most that branch and bound looks at, so that a busy machine gives the
    same answer; `seconds`: wall time, a last resort.
    """

    gap: float = 1e-4
    nodes: int = 5_000
    seconds: float = 60.0


@dataclass
class Rows:
    """Rows of a programme while it is stated, one block at a time."""

    _row: list[IntArray] = field(default_factory=list)
    _column: list[IntArray] = field(default_factory=list)
    _value: list[FloatArray] = field(default_factory=list)
    _lower: list[FloatArray] = field(default_factory=list)
    _upper: list[FloatArray] = field(default_factory=list)
    count: int = 0

    def add(
        self, lower: FloatArray, upper: FloatArray, *terms: tuple[IntArray, FloatArray]
    ) -> None:
        """A block of B rows: lower <= sum of terms <= upper. A term is (columns, coefficients), shapes (B,) or (B, several)."""
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
        """The programme of these rows."""
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
    """Whether a point breaks a bound, a row, or wholeness, by more than the tolerance (relative to the row's size)."""
    inside = (x >= programme.lower - tolerance) & (x <= programme.upper + tolerance)
    whole = ~programme.whole | (np.abs(x - np.round(x)) <= tolerance)
    terms = programme.value * x[programme.column]
    at = np.bincount(programme.row, weights=terms, minlength=len(programme.row_lower))
    size = tolerance * np.maximum(
        np.bincount(programme.row, weights=np.abs(terms), minlength=len(at)), 1.0
    )
    kept = (at >= programme.row_lower - size) & (at <= programme.row_upper + size)
    return not bool(inside.all() and whole.all() and kept.all())
