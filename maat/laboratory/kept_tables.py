"""Tables of a run that are kept beside its figures, if they are asked for: its series, its jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from maat.laboratory.content import digest
from maat.laboratory.figures import Figures
from maat.laboratory.results import Kept
from maat.simulation.record import SimulationResult

TABLES = "tables"  # in what is kept of a run, beside the names of its figures

TablesOf = Callable[[SimulationResult], Mapping[str, Any]]
"""What makes the tables of a run, of JSON's own types: a module-level function."""


def kept_tables(result: SimulationResult, tables_of: TablesOf | None) -> Kept:
    """Return the tables of a run as part of what is kept of it; nothing without `tables_of`."""
    return {} if tables_of is None else {TABLES: tables_of(result)}


def without_tables(kept: Kept) -> tuple[Figures, Mapping[str, Any]]:
    """Return what is kept of a run apart: its figures, its tables."""
    figures = {name: value for name, value in kept.items() if name != TABLES}
    return figures, kept.get(TABLES, {})


def with_tables(key: str, tables_of: TablesOf | None) -> str:
    """Return the key of a result that has these tables too."""
    if tables_of is None:
        return key
    return digest({"result": key, "with": f"{tables_of.__module__}.{tables_of.__qualname__}"})
