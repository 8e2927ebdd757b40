"""Executes the notebooks of docs/notebooks, and tells their outputs as text that stays the same.

`python tests/library/notebooks.py [NAME...]` executes them and stores their outputs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
SECONDS_PER_CELL = 300
FIGURE = "application/vnd.plotly.v1+json"
_TIMED = re.compile(r"<tr><td>(?:\w*_seconds\w*)</td>.*?</tr>")


def executed(path: Path, folder: Path, *, keeps_bars: bool = False) -> nbformat.NotebookNode:
    """Return a notebook with the outputs that it has now, without those of progress bars.

    `folder`: where its kernel works.
    """
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    environment = {**os.environ, "PLOTLY_RENDERER": "plotly_mimetype", "PYTHONWARNINGS": "ignore"}
    client = NotebookClient(
        book,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    client.execute(env=environment)
    for cell in book.cells:
        if cell.cell_type == "code" and not keeps_bars:
            cell.outputs = [output for output in cell.outputs if not is_ended_bar(output)]
    return book


def is_ended_bar(output: Mapping[str, Any]) -> bool:
    """Return whether it is what is left of a progress bar: nothing, in HTML."""
    return output.get("data", {}).get("text/html") == ""


def outputs_of(book: nbformat.NotebookNode) -> list[list[str]]:
    """Return the outputs of each cell of code, without times; a figure as the word figure."""
    return [
        [text for output in cell.outputs for text in _texts(output)]
        for cell in book.cells
        if cell.cell_type == "code"
    ]


def _texts(output: Mapping[str, Any]) -> Iterator[str]:
    if output["output_type"] == "stream":
        yield str(output["text"])
        return
    data = output.get("data", {})
    if FIGURE in data:
        yield "figure"
        return
    yield from (_TIMED.sub("", data[kind]) for kind in ("text/plain", "text/html") if kind in data)


def store(path: Path, folder: Path) -> None:
    """Execute a notebook, and store it with its outputs."""
    nbformat.write(executed(path, folder), path)


if __name__ == "__main__":
    import tempfile

    for found in sorted(FOLDER.glob("*.ipynb")):
        if len(sys.argv) == 1 or found.stem in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as at:
                store(found, Path(at))
