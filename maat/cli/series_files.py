"""Writes the series of a run: one JSON file, or a folder of CSV files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

from maat.cli.output import check_writable, write_csv
from maat.library.run import Run
from maat.library.tables import Table
from maat.scheduling.errors import InputError, MaatError

FIELD = "series"
TABLES: Mapping[str, Callable[[Run], Table]] = {
    "gpus": attrgetter("gpus"),
    "efficiency": attrgetter("efficiency"),
    "nodes": attrgetter("nodes"),
    "waits": attrgetter("waits"),
    "jobs": attrgetter("job_series"),
}


def check_series_path(path: Path, *, inputs: Sequence[Path]) -> None:
    """Check before the run that the file or the folder can be written. Raises InputError."""
    if path.suffix == ".json":
        check_writable(path, inputs=inputs, field=FIELD)
        return
    try:
        path.mkdir(exist_ok=True)
    except OSError as failed:
        raise InputError(
            f"cannot be made a folder ({failed.strerror})",
            field=FIELD,
            value=str(path),
            remedy="Name a new folder in one that exists, or a file that ends in .json.",
        ) from failed
    for name in TABLES:
        check_writable(path / f"{name}.csv", inputs=inputs, field=FIELD)


def write_series(run: Run, path: Path) -> None:
    """Write the series of a run. Raises MaatError if they cannot be completed."""
    tables = {name: table_of(run) for name, table_of in TABLES.items()}
    if path.suffix == ".json":
        _write_json(tables, path)
        return
    for name, table in tables.items():
        rows = zip(*table.to_dict().values(), strict=True)
        write_csv(
            path / f"{name}.csv",
            table.columns,
            (["" if cell is None else cell for cell in row] for row in rows),
        )


def _write_json(tables: Mapping[str, Table], path: Path) -> None:
    """Write each table as its columns: {"gpus": {"time_seconds": [...], ...}, ...}."""
    columns = {name: table.to_dict() for name, table in tables.items()}
    try:
        path.write_text(json.dumps(columns, allow_nan=False), encoding="utf-8")
    except OSError as failed:
        raise MaatError(
            f"series: {path} cannot be written ({failed.strerror}). "
            "Give a file where there is space."
        ) from failed
