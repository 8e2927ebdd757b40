"""Measured GPUs of one type: their times by application, and their bins (PAL figures 5 to 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from maat.figures.data import Distribution, Point
from maat.figures.distributions import cdf
from maat.figures.scatter import scatter

RELATIVE_TIME = "Iteration time / median"


def binned_scores(
    scores: Sequence[float],
    bins: Sequence[float],
    *,
    scheme: str | None = None,
    height: int | None = None,
) -> go.Figure:
    """Return the scores of G GPUs, each in the colour of its bin (PAL figure 5).

    Args:
        scores: Times over the median time, ascending.
        bins: The score of each GPU's bin.

    >>> [trace.name for trace in binned_scores([0.9, 1.0, 2.5], [0.95, 0.95, 2.5]).data]
    ['bin of 0.95', 'bin of 2.5']
    """
    groups: dict[str, list[Point]] = {}
    for score in sorted(set(bins)):
        mine = (rank for rank, own in enumerate(bins) if own == score)
        groups.setdefault(f"bin of {score:.3g}", []).extend(
            Point(scores[rank], float(rank)) for rank in mine
        )
    return scatter(
        groups, x=RELATIVE_TIME, y="GPUs, from the fastest", scheme=scheme, height=height
    )


def score_shares(
    lines: Mapping[str, Distribution],
    *,
    of: str,
    scheme: str | None = None,
    height: int | None = None,
) -> go.Figure:
    """Return the share of GPUs or measurements at or below a time (PAL figures 6 and 7).

    >>> lines = {"resnet": Distribution.of([0.9, 1.0, 2.5])}
    >>> [trace.name for trace in score_shares(lines, of="GPUs").data]
    ['resnet']
    """
    return cdf(lines, x=RELATIVE_TIME, of=of, log_x=True, scheme=scheme, height=height)
