"""The page of the rounds and its callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import plotly.graph_objects as go
from dash import Dash, Input, Output, State, dcc
from dash.development.base_component import Component

from frontend.addresses import add_page, among, anything, counting
from frontend.api import Api
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer, in_browser
from frontend.components.cards import (
    empty_state,
    error_state,
)
from frontend.components.grid import placeholder_id
from frontend.components.next_step import leads, without_cluster
from frontend.figures.matrix import EMPTY_PIXELS, MAX_JOBS, matrix_figure
from frontend.figures.matrix_rows import ORDERS, rows_of
from frontend.figures.rounds import prices_figure
from frontend.formatting import clock, count, plural
from frontend.loading import Loaded, by_part, failed_figure, loaded
from frontend.pages.rounds.layout import LATEST, MOST_PAGES, layout, the_rounds
from frontend.pages.rounds.summary import facts_of, row_of, verdict_parts
from frontend.routing import path_to, register_title, title_output
from frontend.shell import NO_CLUSTER
from maat.api.rounds import RoundDetailOut
from maat.client import ApiError, AsyncClient, calls
from maat.figures.base import empty_figure

ROUNDS_SHOWN = 200
NO_ROUND = ("No round has run yet", "The worker runs one as soon as it is up.")


def register(app: Dash, api: Api) -> None:
    register_title(app, "round")
    takes = {
        "page": counting("page of the matrix", MOST_PAGES),
        "q": anything,
        "sort": among("order", ORDERS),
    }
    add_page(
        "frontend.pages.rounds",
        path="/rounds",
        name="Rounds",
        title="Rounds",
        order=4,
        layout=the_rounds,
        takes={"round": anything, **takes},
    )
    add_page(
        "frontend.pages.round",
        path_template="/rounds/<number>",
        name="Round",
        title="Round",
        layout=layout,
        takes=takes,
    )
    _register_choices(app)
    answer(
        app,
        partial(show, api),
        output={
            "told": Output(placeholder_id("rounds-grid"), "children"),
            "rows": Output("rounds-grid", "rowData"),
            "row": Output("rounds-grid", "scrollTo"),
            "prices": Output("rounds-prices", "figure"),
            "note": Output("round-note", "children"),
            "verdict": Output("round-verdict", "children"),
            "facts": Output("round-terms-told", "children"),
            "matrix": Output("round-matrix", "figure"),
            "room": Output("round-matrix-room", "style"),
            "found": Output("matrix-found", "children"),
            "pages": Output("round-page", "total"),
            "pager": Output("round-page", "style"),
            "shown": Output("round-shown", "data"),
            "title": title_output("round"),
        },
        inputs={
            "_live": Input("live", "data"),
            "cluster_id": Input("cluster-select", "value"),
            "scheme": Input("scheme", "data"),
            "page": Input("round-page", "value"),
            "sought": Input("matrix-search", "value"),
            "order": Input("matrix-sort", "value"),
        },
        state={
            "asked": State("round-number", "data"),
            "shown": State("round-shown", "data"),
        },
    )


def _register_choices(app: Dash) -> None:
    """Put page, search and order of the matrix into the address."""
    in_browser(
        app,
        "pageInUrl",
        Output("round-page", "id"),
        Input("round-page", "value"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "matrixInUrl",
        Output("round-page", "value"),
        Input("matrix-search", "value"),
        Input("matrix-sort", "value"),
        prevent_initial_call=True,
    )


async def show(
    api: Api,
    *,
    _live: object,
    cluster_id: str | None,
    scheme: str | None,
    page: int | None,
    sought: str | None,
    order: str,
    asked: str,
    shown: list[object] | None,
) -> Changes:
    """Show the list, and one round: the first of the list, or the one that the address names."""
    if not cluster_id or not scheme:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        words = ("No cluster yet", "Its rounds show here.")
        figure = empty_figure(scheme, *words, height=EMPTY_PIXELS)
        return _without_rounds(figure, without_cluster(words[1]))
    async with api.visitor() as maat:
        rounds = await loaded(maat.send(calls.rounds(cluster_id, limit=ROUNDS_SHOWN)))
        if rounds.failure and asked == LATEST:
            figure = failed_figure(scheme, height=EMPTY_PIXELS)(rounds.failure)
            return _without_rounds(figure, error_state(rounds.failure))
        listed = rounds.answer["items"] if rounds.answer else []
        number = asked if asked != LATEST or not listed else str(listed[0]["number"])
        wanted: list[object] = [cluster_id, number, scheme, page, sought, order]
        found = Loaded(None) if wanted == shown else await loaded(_one(maat, cluster_id, number))
    drawn = by_part(
        {
            "told": lambda: None if rounds()["items"] else empty_state(*NO_ROUND, action=_health()),
            "rows": lambda: [
                row_of(entry, cluster_id, shown=number) for entry in rounds()["items"]
            ],
            "prices": lambda: prices_figure(
                rounds()["items"], scheme=scheme, shown=None if asked == LATEST else number
            ),
        },
        failed={
            "told": error_state,
            "rows": lambda _: [],
            "prices": failed_figure(scheme, height=EMPTY_PIXELS),
        },
    )
    if wanted == shown:
        return drawn
    if found.failure:
        figure = failed_figure(scheme, height=EMPTY_PIXELS)(found.failure)
        return {**drawn, **_no_round(figure, error_state(found.failure))}
    if found.answer is None:
        return {**drawn, **_missing(asked, cluster_id, scheme)}
    title = f"Round {number}" if asked != LATEST else None
    return {
        **drawn,
        **({"row": {"rowId": number}} if title and wanted[:2] != (shown or [])[:2] else {}),
        **_drawn(found.answer, scheme, page or 1, sought or "", order, follows=asked == LATEST),
        "shown": wanted,
        "title": title,
    }


async def _one(maat: AsyncClient, cluster_id: str, number: str) -> RoundDetailOut | None:
    """Return the round with its record, or None if the cluster has none of this number."""
    try:
        return await maat.send(calls.round_(cluster_id, number))
    except ApiError as error:
        if error.status in (404, 422):
            return None
        raise


def _drawn(
    entry: RoundDetailOut, scheme: str, page: int, sought: str, order: str, *, follows: bool
) -> Changes:
    """Return the parts of the page that show one round."""
    record = entry["record"]
    rows = rows_of(record, sought=sought, order=order) if record else []
    pages = max(1, -(-len(rows) // MAX_JOBS))
    pruned = (
        "The record of this round was pruned",
        "Its summary stays; newer rounds have their matrix.",
    )
    figure = (
        matrix_figure(record, scheme=scheme, first=(min(page, pages) - 1) * MAX_JOBS, rows=rows)
        if record
        else empty_figure(scheme, *pruned, height=EMPTY_PIXELS)
    )
    least_pixels = (figure.layout.meta or {}).get("least_pixels")
    note = f"round {count(entry['number'])}, {clock(entry['at'])} of cluster time"
    return {
        "note": f"{note}, follows the latest" if follows else note,
        "verdict": verdict_parts(entry),
        "facts": facts_of(entry),
        "matrix": figure,
        "room": {"minWidth": f"{least_pixels}px"} if least_pixels else {},
        "found": _found(rows, len(record["job_names"]) if record else 0),
        "pages": pages,
        "pager": {} if pages > 1 else HIDDEN,
    }


def _health() -> Component:
    return leads("See whether the worker runs", "/admin?tab=health")


def _found(rows: Sequence[int], jobs: int) -> str:
    return "" if len(rows) == jobs else f"{count(len(rows))} of {plural(jobs, 'job')}"


def _no_round(figure: go.Figure, state: Component) -> Changes:
    """Return the parts of the page for one round when no round can be shown."""
    return {
        "note": "",
        "verdict": state,
        "facts": None,
        "matrix": figure,
        "room": {},
        "found": "",
        "pages": 1,
        "pager": HIDDEN,
        "shown": None,
    }


def _without_rounds(figure: go.Figure, state: Component) -> Changes:
    return {"told": state, "rows": [], "prices": figure, **_no_round(figure, state)}


def _missing(number: str, cluster_id: str, scheme: str) -> Changes:
    title, remedy = NO_ROUND
    action: Component = _health()
    if number != LATEST:
        title, remedy = f"There is no round {number}", "It has not run yet, or it was pruned."
        action = dcc.Link(
            "Show the latest round",
            href=path_to("/rounds", cluster=cluster_id),
            className="button-link",
        )
        if not number.isdecimal():
            remedy = "Rounds are numbered from 1 up. Choose one from the list."
    figure = empty_figure(scheme, title, remedy, height=EMPTY_PIXELS)
    return _no_round(figure, empty_state(title, remedy, action=action))
