"""Writes the series of runs: one JSON file, or a folder of CSV files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.output import write_table
from maat.library.files import check_writable, write_whole
from maat.library.run import Run
from maat.library.tables import Table, joined
from maat.scheduling.errors import InputError

FIELD = "series"
OF_RUN: Mapping[str, Callable[[Run], Table]] = {
    "gpus": attrgetter("gpus"),
    "efficiency": attrgetter("efficiency"),
    "nodes": attrgetter("nodes"),
    "waits": attrgetter("waits"),
    "jobs": attrgetter("job_series"),
}
OF_STUDY = ("gpus", "efficiency", "nodes", "waits")
"""Those that a comparison or a sweep keeps of its runs."""


SeriesPath = Annotated[
    Path | None,
    typer.Option(
        "--series",
        help="Keep and write GPUs in use, efficiency, nodes and waits of every run over time: to "
        "one file if it ends in .json, else to a folder of CSV files.",
    ),
]


def series_of_runs(runs: Mapping[str, Run]) -> Mapping[str, Table]:
    """Return the series of runs by their name; of several, each row begins with its policy."""
    if len(runs) == 1:
        [run] = runs.values()
        return {name: table_of(run) for name, table_of in OF_RUN.items()}
    return {
        name: joined(({"policy": policy}, table_of(run)) for policy, run in runs.items())
        for name, table_of in OF_RUN.items()
    }


def check_series_path(path: Path, names: Iterable[str], *, inputs: Sequence[Path]) -> None:
    """Check before the work that the file, or the folder's files of these names, can be written.

    Raises InputError.
    """
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
    for file in files_of_series(path, names)[1:]:
        check_writable(file, inputs=inputs, field=FIELD)


def files_of_series(path: Path, names: Iterable[str]) -> Sequence[Path]:
    """Return what is written there: one JSON file, or a folder and its CSV files."""
    return [path] if path.suffix == ".json" else [path, *(path / f"{name}.csv" for name in names)]


def write_series(tables: Mapping[str, Table], path: Path) -> None:
    """Write series by their names. Raises MaatError if they cannot be completed."""
    if path.suffix == ".json":
        _write_json(tables, path)
        return
    for name, table in tables.items():
        write_table(path / f"{name}.csv", table, field=FIELD)


def _write_json(tables: Mapping[str, Table], path: Path) -> None:
    """Write each table as its columns: {"gpus": {"time_seconds": [...], ...}, ...}."""
    columns = {name: table.to_dict() for name, table in tables.items()}
    write_whole(path, json.dumps(columns, allow_nan=False).encode(), field=FIELD)
