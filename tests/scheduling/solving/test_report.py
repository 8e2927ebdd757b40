"""Solve reports: how the programmes of one round add up."""

from __future__ import annotations

import pytest

from maat.scheduling.solving.report import SolveReport, SolveStatus


@pytest.mark.parametrize("clock", [(True, False), (False, True), (False, False)])
def test_a_report_after_others_counts_their_seconds_and_their_clocks_and_keeps_its_own_answer(
    clock: tuple[bool, bool],
) -> None:
    first = SolveReport(SolveStatus.KEPT_PRESENT, "first", seconds=2.0, out_of_time=clock[0])
    last = SolveReport(
        SolveStatus.OPTIMAL, "last", objective=7.0, bound=7.0, seconds=0.5, out_of_time=clock[1]
    )

    together = last.after(first)

    assert (together.status, together.method, together.objective) == (
        SolveStatus.OPTIMAL,
        "last",
        7.0,
    )
    assert together.seconds == pytest.approx(2.5)
    assert together.out_of_time is any(clock)
