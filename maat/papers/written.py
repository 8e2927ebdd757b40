"""Writes items that were made again: a folder a paper with tables, figures and one report.

Every file is written whole or not at all; one call at a time writes to a paper's folder.
"""

from __future__ import annotations

import fcntl
import json
import shlex
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
from maat.papers.data import Data
from maat.papers.items import Paper
from maat.papers.report import as_data, as_markdown, machine, report_html, report_markdown
from maat.papers.reproducing import Reproduced
from maat.scheduling.errors import InputError

INDEX = "index"
STATE = "report.json"
LOCK = ".writing"
KEPT = "Make room, and call again: what was computed is kept."


class Folder:
    """The folder of one paper's report.

    `size`: of its runs; `data`: what they were made of: a folder has items of one size and of the
    same data alone, unless `replace`.
    """

    def __init__(
        self, folder: Path, paper: Paper, size: Size, *, data: Data, replace: bool = False
    ) -> None:
        """Create the folder. Raises InputError if it cannot be used, or holds other files."""
        self.path, self._paper, self._size = folder / paper.name, paper, size
        self._data, self._own = data.words, data.own
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
        """Return what an earlier call wrote.

        Raises InputError if that is of another size or of other data, or not Maat's.
        """
        path = self.path / STATE
        if replace:
            return {}
        if not path.exists():
            self._check_empty()
            return {}
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            items, size = dict(state["items"]), str(state["size"])
            data = state.get("data", self._data)
        except (OSError, ValueError, KeyError, TypeError):
            raise self._refused(f"has a {STATE} that cannot be read") from None
        if size != self._size.value:
            raise self._refused(f"has a report of {size} runs, and these are {self._size.value}")
        if data != self._data:
            raise self._refused(f"has a report made {_with(data)}, and this is {_with(self._data)}")
        return items

    def _check_empty(self) -> None:
        """Raise InputError if files would be overwritten that no call wrote."""
        if (self.path / LOCK).exists():  # a call began, and was stopped before it had an item
            return
        ours = {INDEX} | {item.key for item in self._paper.items}
        found = sorted(each.name for each in self.path.iterdir() if each.stem in ours)
        if found:
            raise self._refused(f"has files that are of no report: {', '.join(found)}")

    def _refused(self, problem: str) -> InputError:
        return InputError(
            problem,
            field="output",
            value=str(self.path),
            remedy="Name another folder, or --replace it.",
        )

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
        made = f"Made by `{self._command}` on {machine()}."
        state = {"size": self._size.value, "data": self._data, "items": self._items}
        files = {
            STATE: _json(state),
            f"{INDEX}.html": report_html(title, self._size, items, made=made).encode(),
            f"{INDEX}.md": report_markdown(title, self._size, items, made=made).encode(),
        }
        for name, content in files.items():
            write_whole(self.path / name, content, remedy=KEPT)

    @property
    def _command(self) -> str:
        """Return what makes the items of the folder again."""
        words = ["maat", "reproduce", self._paper.name]
        if len(self._items) < sum(item.hardware is None for item in self._paper.items):
            words += self._items
        for own in self._own:
            of_type = "" if own.gpu_type is None else f"#{own.gpu_type}"
            words += [f"--{own.kind}", f"{own.name}{of_type}"]
        if self._size is Size.QUICK:
            words.append("--quick")
        return shlex.join(words)


def _with(data: str | None) -> str:
    return "without published data" if data is None else f"with the data in {data}"


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, allow_nan=False).encode()
