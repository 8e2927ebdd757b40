"""Calibration: what forecasts promised, beside what happened."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dash import Dash, Input, Output, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page
from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    graph,
    link_button,
    page_title,
    scrolls,
    skeleton,
)
from frontend.components.next_step import NO_CLUSTER_YET, leads, without_cluster
from frontend.figures.calibration import (
    LEAST_PROMISES,
    NONE_DUE,
    WHEN_DUE,
    promised_figure,
    reliability_figure,
)
from frontend.formatting import duration, percent, plural
from frontend.loading import failed_figure
from frontend.routing import QueryValue
from frontend.shell import NO_CLUSTER
from maat.api.forecasts import CalibrationBinOut, CalibrationOut, SharpnessOut
from maat.figures.base import empty_figure

REFRESH_MILLISECONDS = 15_000
HEIGHT = 340
LATE = 0.9
WHAT = (
    "At its submission, and every hour, each job is promised a start and an end: the P50, and the "
    "P90, which is to hold in nine of ten cases. A promise counts once its time has come. Jobs "
    "that failed or were cancelled are left out."
)

_SIDES = ("", "", "number", "number")  # how a column of the table is aligned


def layout(**_query: QueryValue) -> html.Div:
    cards = [
        card(
            "How often promises were held",
            graph("calibration-held", height=HEIGHT),
            className="span-6",
        ),
        card(
            "Promised and actual ends",
            graph("calibration-ends", height=HEIGHT),
            className="span-6",
        ),
        card(
            "By quantile",
            scrolls("calibration-bins", skeleton(120), label="Promises by quantile"),
            className="span-6",
        ),
        card(
            "How near they came",
            scrolls("calibration-near", skeleton(120), label="How near promises came"),
            className="span-6",
        ),
    ]
    return html.Div(
        [
            page_title("Calibration", link_button("Rounds", "/rounds")),
            html.Div(id="calibration-verdict", className="verdict sentence", role="status"),
            html.Div(WHAT, className="hint"),
            dcc.Interval(id="calibration-refresh", interval=REFRESH_MILLISECONDS),
            html.Div(cards, className="columns"),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/calibration",
        name="Calibration",
        title="Calibration",
        order=6,
        layout=layout,
        takes={},
    )
    answer(
        app,
        partial(show, api),
        output={
            "verdict": Output("calibration-verdict", "children"),
            "held": Output("calibration-held", "figure"),
            "ends": Output("calibration-ends", "figure"),
            "bins": Output("calibration-bins", "children"),
            "near": Output("calibration-near", "children"),
        },
        inputs={
            "_often": Input("calibration-refresh", "n_intervals"),
            "cluster_id": Input("cluster-select", "value"),
            "scheme": Input("scheme", "data"),
        },
    )


async def show(api: Api, *, _often: object, cluster_id: str | None, scheme: str | None) -> Changes:
    if not scheme or cluster_id is None:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return _nothing(scheme)
    try:
        async with api.visitor() as maat:
            found = await maat.calibration(cluster=cluster_id)
    except Failure as error:
        failed = failed_figure(scheme, height=HEIGHT)(error)
        return {
            "verdict": "",
            "held": failed,
            "ends": failed,
            "bins": error_state(error),
            "near": error_state(error),
        }
    return {
        "verdict": verdict(found["bins"]),
        "held": reliability_figure(found["bins"], scheme=scheme, height=HEIGHT),
        "ends": promised_figure(found["promises"], scheme=scheme, height=HEIGHT),
        "bins": bins_table(found),
        "near": near_table(found["sharpness"]),
    }


def _nothing(scheme: str) -> Changes:
    words = "Its promises show here."
    drawn = empty_figure(scheme, NO_CLUSTER_YET, words, height=HEIGHT)
    bins = without_cluster(words)
    return {"verdict": "", "held": drawn, "ends": drawn, "bins": bins, "near": ""}


def verdict(bins: Sequence[CalibrationBinOut]) -> str:
    """Say how many of the ends came by their P90; nothing before one was due."""
    due = [one for one in bins if (one["quantity"], one["quantile"]) == ("end", LATE)]
    held, promises = next(((one["held"], one["promises"]) for one in due), (None, 0))
    if held is None:
        return ""
    told = f"{percent(held)} of {plural(promises, 'promised end')} came by the P90; 90 % are to."
    few = f" Of fewer than {LEAST_PROMISES}, that says little." if promises < LEAST_PROMISES else ""
    return f"{told}{few}"


def bins_table(found: CalibrationOut) -> Component:
    """The shares as a table, and how many promises would say something."""
    if not any(one["promises"] for one in found["bins"]):
        return empty_state(NONE_DUE, WHEN_DUE, action=leads("Jobs and their promises", "/jobs"))
    heads = zip(("Promise", "Quantile", "Come due", "Held"), _SIDES, strict=True)
    head = html.Tr([html.Th(name, className=side) for name, side in heads])
    rows = [_row(one) for one in found["bins"]]
    few = min(one["promises"] for one in found["bins"]) < LEAST_PROMISES
    note = f"A share of fewer than {LEAST_PROMISES} promises says little." if few else ""
    return html.Div(
        [
            html.Table([html.Thead(head), html.Tbody(rows)], className="plain-table"),
            html.Div(note, className="hint"),
        ]
    )


def near_table(sharpness: Sequence[SharpnessOut]) -> Component:
    """How near the P50 came, before or after, and how far P90 is from it."""
    if not any(one["promises"] for one in sharpness):
        return html.Div(NONE_DUE, className="hint")
    names = ("P50 of", "Known", "Within 1 min", "Within 10 min", "Median error", "P50 to P90")
    sides = ("", *("number" for _ in names[1:]))
    head = html.Tr([html.Th(name, className=side) for name, side in zip(names, sides, strict=True)])
    rows = [
        html.Tr(
            [html.Td(cell, className=side) for cell, side in zip(_near(one), sides, strict=True)]
        )
        for one in sharpness
    ]
    return html.Div(
        [
            html.Table([html.Thead(head), html.Tbody(rows)], className="plain-table"),
            html.Div("Minutes of cluster time. P50 to P90: the median width.", className="hint"),
        ]
    )


def _near(one: SharpnessOut) -> tuple[str, ...]:
    return (
        f"{one['quantity']} of a job",
        str(one["promises"]),
        percent(one["within_1_minute"]),
        percent(one["within_10_minutes"]),
        duration(one["median_error_seconds"]),
        duration(one["median_width_seconds"]),
    )


def _row(one: CalibrationBinOut) -> html.Tr:
    cells = (
        f"{one['quantity']} of a job",
        f"P{100 * one['quantile']:.0f}",
        str(one["promises"]),
        percent(one["held"]),
    )
    return html.Tr(
        [html.Td(cell, className=side) for cell, side in zip(cells, _SIDES, strict=True)]
    )
