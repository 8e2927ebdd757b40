"""A trace format, its limits, and the cells that several formats have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from maat.csv_input import Row
from maat.shown_text import is_shown
from maat.vocabulary import MAX_TEXT
from maat.workloads.workloads import TraceJob

MAX_EPOCHS = 1_000_000
MAX_WORK_SCALE = 1e8


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A trace format: the columns that identify it, and how to read a row.

    `model_column`, `name_column`: the fields that errors name for an unknown model and for a
    repeated name. `header`: False if the file does not name the columns but separates them by tabs,
    in this order. `model_remedy`: what to do if a model is not known; "": to name a known one.
    `models`: of formats whose jobs count iterations, the models of which that is known; `but`: the
    models that mean something else in this format. Both hold for the models that Maat ships.
    `gpu_seconds`: of a record; None if it does not say, may raise InputError. `counts`: what the
    work of a record counts, where that is no time.
    """

    columns: tuple[str, ...]
    model_column: str
    name_column: str
    parse: Callable[[Row], TraceJob]
    header: bool = True
    model_remedy: str = ""
    models: frozenset[str] | None = None
    but: frozenset[str] = frozenset()
    gpu_seconds: Callable[[Row], float | None] | None = None
    counts: str = ""


def name_cell(row: Row, column: str) -> str:
    text = row.cells[column]
    if not text or len(text) > MAX_TEXT or not is_shown(text):
        raise row.blame(
            "is no usable name",
            field=column,
            value=text,
            row=row.line,
            remedy=f"Give 1 to {MAX_TEXT} printable characters.",
        )
    return text
