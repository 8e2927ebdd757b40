"""The notebooks of docs/notebooks run, and say what is stored in them."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from notebooks import FOLDER, executed, is_ended_bar, outputs_of

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
MOST_BYTES = 100_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_says_what_is_stored_in_it(path: Path, tmp_path: Path) -> None:
    stored = outputs_of(nbformat.read(path, as_version=4))

    assert any(stored)
    assert outputs_of(executed(path, tmp_path)) == stored


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_is_small_and_names_no_place_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert len(text.encode()) < MOST_BYTES
    assert not re.search(r"/(?:home|root|tmp|work|Users)/", text)


def cell(source: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(source)


def test_a_notebook_shows_a_bar_and_the_tables_of_what_ends_a_cell(tmp_path: Path) -> None:
    warned = "import warnings\nwarnings.simplefilter('always')\n"
    run = (
        warned
        + "import maat\nrun = maat.simulate(maat.generate(jobs=3, hours=1), policy='fifo'{})\n"
    )
    cells = [cell(run.format("")), cell(run.format(", progress=False")), cell("run.jobs")]
    path = tmp_path / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)

    with_bar, without, shown = executed(path, tmp_path, keeps_bars=True).cells

    assert [is_ended_bar(output) for output in with_bar.outputs] == [True]
    assert without.outputs == []
    assert "<table>" in shown.outputs[0]["data"]["text/html"]


def test_a_bar_in_a_cell_says_where_it_is_and_goes(tmp_path: Path) -> None:
    lines = """
import IPython.display as shown
from maat.library import progress
said = []
shown.DisplayHandle.update = lambda self, obj, **_: said.append(obj.data)
with progress.Bar("<runs>", quiet=False) as bar:
    bar.show(1, 4, "hour 2")
said
"""
    path = tmp_path / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell(lines)]), path)
    said = outputs_of(executed(path, tmp_path))[0][0]
    bar = '<progress value="1" max="4"></progress> &lt;runs&gt; 1/4 hour 2'
    assert said == repr([bar, ""])


def test_an_output_that_differs_is_noticed(tmp_path: Path) -> None:
    said = nbformat.v4.new_output("execute_result", data={"text/plain": "3"}, execution_count=1)
    path = tmp_path / "book.ipynb"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1", outputs=[said])])
    nbformat.write(book, path)

    assert outputs_of(book) == [["3"]]
    assert outputs_of(executed(path, tmp_path)) == [["2"]]
