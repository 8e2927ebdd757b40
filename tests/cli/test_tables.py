"""Tables on narrow terminals: in parts, and nothing cut."""

from __future__ import annotations

import pytest

from maat.cli.tables import drawn

NAMES = ("fifo (thresholds=18000) + lowest-numbered", "sia + whole-node")
FIGURES = ("Unfinished", "JCT, h", "p99 JCT, h", "Makespan, h", "GPU-h per job", "JCT ratio")
ROWS = [
    (name, "0", "0.593 ± 0.123", "2.57", "2.93", "3.68", "1.017 [0.730, 1.396]") for name in NAMES
]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_name_and_no_figure_is_cut_whatever_the_width(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = drawn(("Policy + placer",), FIGURES, ROWS)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    for word in (*" ".join(NAMES).split(), *ROWS[0][1:], *" ".join(FIGURES).split()):
        assert word in shown, word


def test_a_table_that_the_width_holds_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert drawn(("Policy + placer",), FIGURES, ROWS).count("Policy + placer") == 1
    monkeypatch.setenv("COLUMNS", "80")
    assert drawn(("Policy + placer",), FIGURES, ROWS).count("Policy + placer") == 2


def test_where_there_is_no_terminal_nothing_is_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert (
        drawn(("Policy + placer",), FIGURES * 9, [(row[0], *row[1:] * 9) for row in ROWS]).count(
            "Policy + placer"
        )
        == 1
    )
