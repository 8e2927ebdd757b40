"""Tables: what they are by themselves, and what pyarrow, polars and pandas make of them."""

from __future__ import annotations

import doctest
import subprocess
import sys
import textwrap

import pytest

from maat.library import arrow, tables
from maat.library.tables import Table

ROWS = [("a", 1.5, 2, True), ("naïve ☂", None, None, None), (None, 0.0, -3, False)]
KINDS = {"job": str, "hours": float, "gpus": int, "done": bool}
COLUMNS = {
    "job": ["a", "naïve ☂", None],
    "hours": [1.5, None, 0.0],
    "gpus": [2, None, -3],
    "done": [True, None, False],
}


def table() -> Table:
    return Table(KINDS, ROWS)


def test_the_examples_of_the_documentation_are_true() -> None:
    assert doctest.testmod(tables).failed == 0


def test_a_table_has_rows_and_columns() -> None:
    assert table().to_dict() == COLUMNS
    assert next(iter(table())) == {"job": "a", "hours": 1.5, "gpus": 2, "done": True}


def test_a_table_without_rows_keeps_its_columns() -> None:
    empty = Table(KINDS, [])
    assert (len(empty), empty.columns, list(empty)) == (0, tuple(KINDS), [])
    assert empty.to_dict() == {name: [] for name in KINDS}


def test_a_wrong_column_is_answered_with_those_that_there_are() -> None:
    for number in (0, slice(1)):
        with pytest.raises(
            TypeError, match=r"columns by name, .* table\['job'\]. list\(table\) is"
        ):
            table()[number]  # type: ignore[index]
    with pytest.raises(KeyError, match=r"hour: no such column.*job, hours, gpus, done"):
        table()["hour"]


def test_what_is_changed_in_an_answer_does_not_change_the_table() -> None:
    found = table()
    found["gpus"].append(1)
    found.to_dict()["gpus"].clear()
    assert found["gpus"] == COLUMNS["gpus"]


def test_a_shown_table_escapes_what_it_holds_and_says_how_much_it_left_out() -> None:
    shown = Table({"<b>": str}, [("<script>",)] * 23)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;" in shown
    assert "and 3 more rows" in shown


def test_pyarrow_reads_a_table_with_its_kinds_and_nulls() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    found = pyarrow.table(table())
    found.validate(full=True)
    assert found.to_pydict() == COLUMNS
    assert [str(kind) for kind in found.schema.types] == ["string", "double", "int64", "bool"]
    empty = pyarrow.table(Table(KINDS, []))
    empty.validate(full=True)
    assert empty.schema == found.schema


def test_pyarrow_may_take_one_column_and_drop_the_rest() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    before = len(arrow._kept)
    column = pyarrow.table(table())["job"]
    assert column.to_pylist() == COLUMNS["job"]
    del column
    assert len(arrow._kept) == before
    assert not arrow._streams


def test_a_stream_that_nobody_reads_keeps_nothing() -> None:
    before = len(arrow._kept)
    capsule = table().__arrow_c_stream__()
    assert len(arrow._kept) == before + 1
    del capsule
    assert len(arrow._kept) == before
    assert not arrow._streams


def test_polars_reads_a_table() -> None:
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(table()).to_dict(as_series=False) == COLUMNS


def test_pandas_reads_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table().to_dict())
    assert frame["hours"].sum() == 1.5
    assert list(frame.columns) == list(KINDS)


def test_a_process_may_end_while_arrow_holds_a_table() -> None:
    pytest.importorskip("pyarrow")
    script = """
        import pyarrow
        from maat.library.tables import Table
        kept = pyarrow.table(Table({"a": str, "b": int}, [("x", 1)] * 1000))
        reader = pyarrow.RecordBatchReader.from_stream(Table({"a": str}, [("x",)]))
        print(kept.num_rows)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "1000"), ended.stderr
