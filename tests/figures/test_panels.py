"""Figures of several panels, as the papers arrange them."""

from __future__ import annotations

from maat.figures.bars import grouped_bars
from maat.figures.data import Estimate
from maat.figures.panels import side_by_side


def test_panels_share_one_legend_that_is_shown() -> None:
    both = {"ours": [Estimate(1.0)], "published": [Estimate(2.0)]}
    one = {"slowdowns": [Estimate(1.0)]}
    drawn = side_by_side(
        *(grouped_bars(["FIFO"], series, x="Policy", y="Hours") for series in (both, both, one))
    )
    assert drawn.layout.showlegend
    named = [trace.name for trace in drawn.data if trace.showlegend is not False]
    assert named == ["ours", "published"]  # the third panel has one series, and named none
