"""`maat.save_figure`: figures as files, and what is said where none can be drawn or written."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from small_disk import SmallDisk

import maat
from maat.library import pictures
from maat.library.files import check_writable, write_whole
from maat.library.pictures import NoPictures, Pictures, check_figure_path
from maat.scheduling.errors import InputError, MaatError

FIGURE = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name="</script>"))


def test_the_examples_of_pictures_are_true() -> None:
    assert doctest.testmod(pictures).failed == 0


@pytest.mark.needs_chromium
def test_the_suffix_says_as_what_a_figure_is_written(tmp_path: Path) -> None:
    maat.save_figure(FIGURE, tmp_path / "figure.PDF")
    assert (tmp_path / "figure.PDF").read_bytes().startswith(b"%PDF-")
    with Pictures() as drawn:
        assert drawn.of(FIGURE)["svg"].startswith(b"<svg")
        assert drawn.of(FIGURE)["png"].startswith(b"\x89PNG")
        assert drawn.why_none is None


def test_a_page_needs_nothing_else_and_no_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    maat.save_figure(FIGURE, str(tmp_path / "figure.html"))
    page = (tmp_path / "figure.html").read_text(encoding="utf-8")
    assert "Plotly.newPlot(" in page
    assert "<script src" not in page
    assert '"</script>"' not in page


@pytest.mark.parametrize(
    ("figure", "path", "message"),
    [
        (FIGURE, "figure.jpeg", r"path: has no suffix of a figure .*End it in .svg, .png, .pdf or"),
        (FIGURE, "figure", "path: has no suffix of a figure"),
        (FIGURE, "none/figure.html", "path: cannot be written .No such file or directory"),
        (FIGURE, ".html", "path: has no suffix of a figure"),
        (None, "figure.html", "figure: is no figure of plotly .got 'NoneType'.. Give for example"),
    ],
)
def test_what_cannot_be_saved_is_told_with_a_remedy(
    figure: Any, path: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        maat.save_figure(figure, tmp_path / path)
    assert not list(tmp_path.iterdir())


def test_without_a_browser_a_picture_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("BROWSER_PATH", raising=False)
    for refused in (
        lambda: maat.save_figure(FIGURE, tmp_path / "figure.svg"),
        lambda: check_figure_path(tmp_path / "figure.svg", field="path"),
    ):
        with pytest.raises(InputError, match=r"there is no Chrome .*Install Chrome .*\.html"):
            refused()
    assert not list(tmp_path.iterdir())
    with Pictures() as drawn:
        assert drawn.of(FIGURE) == {}
        assert drawn.why_none == (
            "SVG and PNG are not written, HTML is: there is no Chrome. Install Chrome or "
            "Chromium, or name it in BROWSER_PATH."
        )


@pytest.mark.needs_chromium
def test_a_browser_that_ends_is_told_and_no_call_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER_PATH", "/bin/false")
    with Pictures() as drawn, pytest.raises(NoPictures, match="the browser failed"):
        drawn.drawn(FIGURE, "svg")


def test_a_file_is_written_whole_or_stays_as_it_was(small_disk: SmallDisk) -> None:
    path = small_disk.path / "figure.svg"
    write_whole(path, b"first")
    with pytest.raises(MaatError, match=r"No space left on device.*where there is space"):
        write_whole(path, bytes(5 * 2**20))
    assert path.read_bytes() == b"first"
    assert [each.name for each in small_disk.path.iterdir()] == ["figure.svg"]
    small_disk.fill()
    with pytest.raises(InputError, match=r"plot: cannot be written \(No space left on device\)"):
        check_writable(path, field="plot")
    assert path.read_bytes() == b"first"
