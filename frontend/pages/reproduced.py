"""One table or figure of a paper: ours beside the published values, and why they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.addresses import add_page, anything
from frontend.api import Api, Failure, error_message
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import (
    card,
    error_state,
    graph,
    link_button,
    missing,
    scrolls,
    skeleton,
)
from frontend.components.own_uploads import (
    LABELS,
    chosen_uploads,
    upload_fields,
    uploads_in,
)
from frontend.components.reproduce import MAY_RUN, changed, reproduce_buttons, reproduce_parts
from frontend.components.states import FINAL_STATES
from frontend.figures.reproduced import has_panels, reproduced_figure
from frontend.pages.reproduced_parts import (
    files,
    not_made,
    notes,
    own_lines,
    progress,
    table,
    title_of,
)
from frontend.papers import agreement, item_name, paper_name, runs_of, whole_words
from frontend.routing import QueryValue, query_value, register_title, title_output, title_store
from maat.api.operations import OperationOut
from maat.api.papers import (
    PaperItemOut,
    PapersOut,
    ReproducedItemDetail,
    ReproductionOut,
)
from maat.client import ApiError, AsyncClient, calls

PAGE = "reproduced"
# What a failed answer empties.
PARTS = ("actions", "own", "verdict", "why", "table", "notes", "files")


class Asked(TypedDict):
    """What the address asks for. `reproduction` None: the newest in which it was made."""

    paper: str
    item: str
    reproduction: str | None


@dataclass(frozen=True)
class Making:
    """An item in one reproduction. `operation`: while it waits or runs."""

    of: ReproductionOut
    item: ReproducedItemDetail
    operation: OperationOut | None = None


def layout(
    paper: QueryValue = "",
    item: QueryValue = "",
    reproduction: QueryValue = None,
    profiles: QueryValue = None,
    trace: QueryValue = None,
    variability: QueryValue = None,
    interference: QueryValue = None,
    **_query: object,
) -> html.Div:
    own = {
        "profiles": profiles,
        "trace": trace,
        "variability": variability,
        "interference": interference,
    }
    asked = Asked(
        paper=query_value(paper) or "",
        item=query_value(item) or "",
        reproduction=query_value(reproduction),
    )
    head = [
        html.Div(skeleton(28), id="reproduced-head", style={"minWidth": "320px"}),
        html.Div(id="reproduced-actions", className="actions"),
    ]
    figure = html.Div(graph("reproduced-figure"), id="reproduced-room")
    says = [
        html.Ul(id="reproduced-notes", className="changes"),
        html.Div(id="reproduced-files", className="legend"),
    ]
    values = scrolls("reproduced-table", skeleton(140), label="Ours and the published values")
    body = [
        html.Div(card("Figure", figure), id="reproduced-drawn", className="span-12"),
        card("Ours and the published values", values, className="span-12"),
        card("How it was made", says, className="span-12"),
    ]
    return html.Div(
        [
            dcc.Store(id="reproduced-of", data=dict(asked)),
            title_store(PAGE),
            dmc.Group(head, justify="space-between", className="page-head"),
            upload_fields(own),
            html.Div(id="reproduced-own", className="hint", role="status"),
            html.Div(id="reproduced-verdict", className="verdict sentence", role="status"),
            html.P(id="reproduced-why", className="why"),
            html.Div(id="reproduced-progress", role="status"),
            html.Div(id="reproduced-nothing"),
            html.Div(body, className="columns", id="reproduced-body"),
            *reproduce_parts(),
        ]
    )


def register(app: Dash, api: Api) -> None:
    register_title(app, PAGE)
    add_page(
        __name__,
        path_template="/papers/<paper>/<item>",
        name="Item of a paper",
        title="Item of a paper",
        layout=layout,
        takes={"reproduction": anything, **dict.fromkeys(LABELS, anything)},
    )
    answer(
        app,
        partial(show, api),
        output={
            "title": title_output(PAGE),
            **{
                name: Output(f"reproduced-{name}", "children")
                for name in ("head", "progress", "nothing", *PARTS)
            },
            "figure": Output("reproduced-figure", "figure"),
            "room": Output("reproduced-room", "className"),
            "drawn": Output("reproduced-drawn", "style"),
            "body": Output("reproduced-body", "style"),
        },
        inputs={
            "_live": Input("live", "data"),
            "scheme": Input("scheme", "data"),
            "_changed": changed(),
            "own": chosen_uploads(),
        },
        state={"asked": State("reproduced-of", "data")},
    )


async def show(
    api: Api,
    *,
    _live: object,
    scheme: str | None,
    _changed: int,
    asked: Asked,
    own: Mapping[str, str | None],
) -> Changes:
    if not scheme:
        return NOTHING
    uploads = uploads_in(own)
    try:
        async with api.visitor() as maat:
            papers = await maat.send(calls.papers(**uploads))
            may_run = MAY_RUN in (await maat.send(calls.me()))["permissions"]
            item = item_in(papers, asked["paper"], asked["item"])
            if item is None:
                return no_such_item()
            shown = await _shown(maat, asked, item)
            newest = await _newest(maat, item)
    except Failure as error:
        return failed(error)
    ended = newest is not None and newest.item["state"] == "succeeded"
    if shown is None and newest is not None and ended and not newest.of["measurements"]:
        shown = newest  # it ended between the two answers
    runs = newest is not None and newest.item["state"] not in FINAL_STATES
    return {
        **_about(papers, asked["paper"], item, may_run=may_run, runs=runs, own=uploads),
        "own": own_lines(
            asked["paper"],
            item,
            None if shown is None else shown.of,
            () if shown is None else shown.item["notes"],
        ),
        "progress": newest and progress(newest.of, newest.item, newest.operation, may_run=may_run),
        **(_nothing(item, may_run=may_run, runs=runs) if shown is None else _made(shown, scheme)),
    }


def item_in(papers: PapersOut, paper: str, key: str) -> PaperItemOut | None:
    """Return the item that a paper names so, by its key or by another of its names."""
    for each in papers["papers"]:
        if each["name"] == paper:
            for item in each["items"]:
                if key in (item["key"], *item["also"]):
                    return item
    return None


async def _shown(maat: AsyncClient, asked: Asked, item: PaperItemOut) -> Making | None:
    """Return the reproduction of the address, or the newest that made the item."""
    made = item["newest_made"]
    found = asked["reproduction"] or (made and made["reproduction_id"])
    return await _making(maat, found, item["key"]) if found else None


async def _newest(maat: AsyncClient, item: PaperItemOut) -> Making | None:
    """Return the newest reproduction, unless it made the item."""
    newest = item["newest"]
    if newest is None or newest["state"] == "succeeded":
        return None
    return await _making(maat, newest["reproduction_id"], item["key"])


async def _making(maat: AsyncClient, reproduction: str, key: str) -> Making:
    of = await maat.send(calls.reproduction(reproduction))
    item = await maat.send(calls.reproduced_item(reproduction, key))
    if item["state"] in FINAL_STATES:
        return Making(of, item)
    return Making(of, item, await maat.operation(of["operation_id"]))


def _about(
    papers: PapersOut,
    paper: str,
    item: PaperItemOut,
    *,
    may_run: bool,
    runs: bool,
    own: Mapping[str, str],
) -> Changes:
    """Return what is said of an item, whether it was made or not."""
    can = may_run and not runs and item["because"] is None
    most = papers["most_whole_runs"]
    refused = can and 0 < most < runs_of([item])
    return {
        "title": f"{item_name(item['key'])} · {paper_name(paper)}",
        "head": html.H1(title_of(paper, item), className="page-title"),
        "actions": [
            html.Span(whole_words([item], most), className="caption") if refused else None,
            *(
                reproduce_buttons(paper, [item], most_whole=most, is_prominent=True, own=own)
                if can
                else []
            ),
            link_button("All papers", "/papers"),
        ],
    }


def _made(shown: Making, scheme: str) -> Changes:
    """Return what came out of an item."""
    item, figure = shown.item, shown.item["figure"]
    drawn: dict[str, object] = {"drawn": HIDDEN}
    if figure is not None:
        drawn = {
            "drawn": {},
            "figure": reproduced_figure(figure, scheme),
            "room": "side-by-side" if has_panels(figure) else "",
        }
    return {
        **drawn,
        "verdict": agreement(item["rows"]),
        "why": item["why"],
        "table": table(item),
        "notes": notes(item, shown.of),
        "files": files(shown.of, item["key"]),
        "nothing": None,
        "body": {} if item["rows"] or figure else HIDDEN,
    }


def _nothing(item: PaperItemOut, *, may_run: bool, runs: bool) -> Changes:
    return {
        **dict.fromkeys(("verdict", "why", "table", "notes", "files"), ""),
        "nothing": not_made(item, may_run=may_run, runs=runs),
        "body": HIDDEN,
    }


def no_such_item() -> Changes:
    absent = missing(
        "No such table or figure",
        "The papers name their items, such as /papers/sia/fig-8. This address names none of them.",
        "All papers",
        "/papers",
    )
    return {**dict.fromkeys(PARTS, ""), "head": "", "nothing": absent, "body": HIDDEN}


def failed(error: Exception) -> Changes:
    """Return what to show of a failure; of a reproduction that is gone, the way to the newest."""
    if isinstance(error, ApiError) and error.status == 404:
        absent = missing(
            "No such reproduction",
            "It may be of another tenant, or deleted after its time.",
            "All papers",
            "/papers",
        )
        return {**dict.fromkeys(PARTS, ""), "head": "", "nothing": absent, "body": HIDDEN}
    title, _ = error_message(error)
    return {
        **dict.fromkeys(PARTS, ""),
        "head": html.H1(title, className="page-title"),
        "nothing": card(None, error_state(error)),
        "progress": None,
        "body": HIDDEN,
    }
