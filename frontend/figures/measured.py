"""Charts of uploaded measurements: PM scores, slowdowns of pairs and across nodes, throughput."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from maat.api.measurements import PairsOut, RatesOut, ScoresOut, SpreadOut
from maat.figures.bars import grouped_bars
from maat.figures.base import empty_figure
from maat.figures.data import Distribution, Estimate, Place
from maat.figures.grids import heat_map
from maat.figures.lines import lines
from maat.figures.pm_scores import binned_scores, score_shares

ROW_PIXELS, BESIDE_ROWS = 20, 260  # of a heat map; its names below are as long as those beside


def shares_figure(scores: Sequence[ScoresOut], *, scheme: str, height: int) -> go.Figure:
    """Share of GPUs x time over the median, a line for each application and GPU type."""
    drawn = {
        f"{each['application']} on {each['gpu_type']}": Distribution.of(each["scores"])
        for each in scores
    }
    return score_shares(drawn, of="GPUs", scheme=scheme, height=height)


def bins_figure(
    scores: Sequence[ScoresOut], *, application: str, gpu_type: str, scheme: str, height: int
) -> go.Figure:
    """The GPUs of one type, from the fastest, in the colours of their bins."""
    for each in scores:
        if (each["application"], each["gpu_type"]) == (application, gpu_type):
            return binned_scores(each["scores"], each["bins"], scheme=scheme, height=height)
    return empty_figure(scheme, "Not measured", height=height)


def pairs_figure(pairs: PairsOut, *, scheme: str) -> go.Figure:
    """Victim x partner, coloured by the victim's slowdown; grey where none was measured."""
    return heat_map(
        pairs["models"],
        pairs["models"],
        pairs["slowdowns"],
        x="Shares a GPU with",
        y="Job",
        value="Slowdown",
        scheme=scheme,
        height=BESIDE_ROWS + ROW_PIXELS * len(pairs["models"]),
    )


def spreads_figure(spreads: Sequence[SpreadOut], *, scheme: str, height: int) -> go.Figure:
    """Models x penalty of steps across nodes, a bar for each GPU type; whiskers span the rows."""
    models = sorted({one["model"] for one in spreads})
    known = {(one["gpu_type"], one["model"]): one for one in spreads}
    series = {
        gpu_type: [_spread_of(known.get((gpu_type, model))) for model in models]
        for gpu_type in sorted({one["gpu_type"] for one in spreads})
    }
    return grouped_bars(
        models,
        series,
        x="Model",
        y="Step across nodes / within one",
        scheme=scheme,
        height=height,
    )


def _spread_of(known: SpreadOut | None) -> Estimate:
    if known is None:
        return Estimate(None)
    return Estimate(known["penalty"], known["least"], known["most"])


def rates_figure(rates: RatesOut, *, scheme: str, height: int) -> go.Figure:
    """GPUs x samples per second, measured and fitted, a pair of lines for each batch size."""
    series: dict[str, list[tuple[Place, Estimate]]] = {}
    for point in rates["points"]:
        batch = f"{point['per_gpu_batch']:g} per GPU"
        series.setdefault(f"{batch}, measured", []).append((point["gpus"], Estimate(point["rate"])))
        if point["fitted"] is not None:
            fitted = (point["gpus"], Estimate(point["fitted"]))
            series.setdefault(f"{batch}, fitted", []).append(fitted)
    return lines(
        series,
        x=f"GPUs ({rates['gpu_type']})",
        y=f"{rates['model']}: samples/s",
        scheme=scheme,
        height=height,
    )
