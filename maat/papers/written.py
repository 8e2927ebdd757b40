"""Writes items that were made again: a folder a paper with tables, figures and one report.

Every file is written whole or not at all; one call at a time writes to a paper's folder.
"""

from __future__ import annotations

import fcntl
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from maat.csv_output import csv_text
from maat.figures.theme import on_paper
from maat.library.files import write_whole
from maat.library.pictures import Pictures
from maat.papers.bench import Size
from maat.papers.items import Paper
from maat.papers.report import as_data, as_markdown, report_html, report_markdown
from maat.papers.reproducing import Reproduced
from maat.scheduling.errors import InputError

STATE = "report.json"
LOCK = ".writing"
KEPT = "Make room, and call again: what was computed is kept."


class Folder:
    """The folder of one paper's report.

    `size`: of its runs: a folder has items of one size alone, unless `replace`.
    """

    def __init__(self, folder: Path, paper: Paper, size: Size, *, replace: bool = False) -> None:
        """Create the folder. Raises InputError if it cannot be used."""
        self.path, self._paper, self._size = folder / paper.name, paper, size
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as failed:
            raise InputError(
                f"cannot be written ({failed.strerror})",
                field="output",
                value=str(folder),
                remedy="Name a folder that can be.",
            ) from failed
        self._items = self._before(replace=replace)

    def _before(self, *, replace: bool) -> dict[str, Any]:
        """Return what an earlier call wrote. Raises InputError if that is of another size."""
        path = self.path / STATE
        if replace or not path.exists():
            return {}
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            items, size = dict(state["items"]), str(state["size"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}  # not a report: a new one replaces it
        if size != self._size.value:
            raise InputError(
                f"has a report of {size} runs, and these are {self._size.value}",
                field="output",
                value=str(self.path),
                remedy="Name another folder, or --replace it.",
            )
        return items

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder. Raises InputError if another call writes to it."""
        with (self.path / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as taken:
                raise InputError(
                    "is being written by another call",
                    field="output",
                    value=str(self.path),
                    remedy="Wait for it, or name another folder.",
                ) from taken
            yield

    def add(self, made: Reproduced, pictures: Pictures) -> Sequence[Path]:
        """Write an item's files; return them. Raises MaatError if there is no space."""
        if made.failed is not None:
            return []
        key, table = made.item.key, made.table
        files = {
            "csv": csv_text(table.columns, (tuple(row.values()) for row in table)).encode(),
            "md": as_markdown(as_data(made)).encode(),
            "json": _json(as_data(made)),
        }
        figure: Mapping[str, Any] | None = None
        if made.figure is not None:
            drawn = on_paper(go.Figure(made.figure))
            files |= pictures.of(drawn)
            files["html"] = drawn.to_html(include_plotlyjs=True, full_html=True).encode()
            figure = json.loads(drawn.to_json())
        for ending, content in files.items():
            write_whole(self.path / f"{key}.{ending}", content, remedy=KEPT)
        self._items[key] = {**as_data(made), "figure": figure, "pictures": "svg" in files}
        self._keep()
        return [self.path / f"{key}.{ending}" for ending in files]

    def _keep(self) -> None:
        order = [item.key for item in self._paper.items if item.key in self._items]
        self._items = {key: self._items[key] for key in order}
        title, items = self._paper.title, list(self._items.values())
        files = {
            STATE: _json({"size": self._size.value, "items": self._items}),
            "index.html": report_html(title, self._size, items).encode(),
            "index.md": report_markdown(title, self._size, items).encode(),
        }
        for name, content in files.items():
            write_whole(self.path / name, content, remedy=KEPT)


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, allow_nan=False).encode()
