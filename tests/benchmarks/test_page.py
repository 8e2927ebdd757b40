"""How tables get into a page of docs/."""

from __future__ import annotations

from pathlib import Path

from benchmarks.page import markdown, write_between


def test_a_table_has_one_line_per_row() -> None:
    assert markdown(("a", "b"), [(1, "x"), (2.5, "y")]).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | x |",
        "| 2.5 | y |",
    ]


def test_only_what_is_between_the_marks_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- a -->\nold\n<!-- b -->\n\nafter\n", encoding="utf-8")
    write_between(page, "new", begin="<!-- a -->", end="<!-- b -->")
    write_between(page, "newer", begin="<!-- a -->", end="<!-- b -->")
    assert (
        page.read_text(encoding="utf-8") == "before\n\n<!-- a -->\n\nnewer\n\n<!-- b -->\n\nafter\n"
    )
