"""The report as it will be forwarded: headlines, five figures with their sentences, files.

Headlines and the first figure are drawn first; the browser draws the rest once they are seen.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Sequence
from functools import partial

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api
from frontend.attributes import HIDDEN, aria
from frontend.callbacks import NOTHING, Changes, answer, in_browser
from frontend.components.cards import (
    GRAPH_CONFIG,
    card,
    empty_state,
    error_state,
    graph,
)
from frontend.components.period import period_inputs
from frontend.figures.report import left_out, report_figure, shares_figure
from frontend.formatting import clock
from frontend.loading import Loaded, by_part, loaded, may, nothing
from frontend.pages.reports.layout import PAGE, asked_of
from frontend.routing import path_to
from frontend.shell import NO_CLUSTER
from maat.api.report_rows import single_rows
from maat.api.reports import FigureOut, HeadlineOut, ReportOut
from maat.api.service import MeOut
from maat.client import calls
from maat.client.calls import PREFIX, period_fields

FORMS = (("pdf", "PDF"), ("csv", "CSV"), ("json", "JSON"))
SEES_ALL = ("cluster_admin", "auditor")
MAY_MANAGE = "reports:manage"
GOOD, BAD = "▲", "▼"


def register_shown(app: Dash, api: Api) -> None:
    asked = {
        "cluster_id": Input("cluster-select", "value"),
        **period_inputs(PAGE),
        "tenant": Input("reports-tenant", "value"),
    }
    answer(
        app,
        partial(show, api),
        output={
            "document": Output("reports-document", "children"),
            "rest": Output("reports-rest", "data"),
            "note": Output("reports-note", "children"),
            "files": Output("reports-files", "children"),
            "tenants": Output("reports-tenants", "style"),
            "offered": Output("reports-tenant", "data"),
            "keep": Output("reports-keep-place", "style"),
            "add": Output("reports-add-place", "style"),
        },
        inputs={**asked, "scheme": Input("scheme", "data")},
        state={"offered": State("reports-tenant", "data")},
    )
    in_browser(
        app,
        "restOfReport",
        Output(numbers_id(ALL), "children"),
        Output("reports-more", "children"),
        Input("reports-rest", "data"),
        State(numbers_id(ALL), "id"),
        State("reports-more", "children"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "tenantInUrl",
        Output("reports-tenant", "id"),
        Input("reports-tenant", "value"),
        prevent_initial_call=True,
    )


async def show(
    api: Api,
    *,
    cluster_id: str | None,
    period: str,
    days: list[str | None] | None,
    tenant: str | None,
    scheme: str | None,
    offered: list[dict[str, str]],
) -> Changes:
    """Show the report of the chosen period, and links to its files."""
    if not cluster_id or not scheme:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return _without("No cluster yet", "Its reports show here.")
    asked = asked_of(period, days)
    if not asked:
        return _without("From when to when?", "Choose the first and the last day of the report.")
    async with api.visitor() as maat:
        who = loaded(maat.send(calls.me()))

        def report(**whose: str) -> Awaitable[Loaded[ReportOut]]:
            return loaded(maat.send(calls.report(cluster_id, **asked, **whose)))  # type: ignore[arg-type]

        whose = {}
        if tenant:
            me = await who
            whose = {"tenant": tenant} if _sees_all(me) or me.failure else {}
            found = await report(**whose)
        else:
            me, found = await gather(who, report())
    manages = {} if may(me, MAY_MANAGE) else HIDDEN
    return by_part(
        {
            "document": lambda: beginning(found(), scheme=scheme),
            "rest": lambda: rest(found(), scheme=scheme),
            "note": lambda: f"as of {clock(found()['as_of'])} of cluster time",
            "files": lambda: files_of(cluster_id, {**asked, **whose}) if found() else None,
            "tenants": lambda: {} if _sees_all(me) else HIDDEN,
            "offered": lambda: tenants_in(found(), offered),
            "keep": lambda: manages,
            "add": lambda: manages,
        },
        failed={"document": error_state, "rest": nothing, "files": nothing, "note": lambda _: ""},
    )


def _sees_all(me: Loaded[MeOut]) -> bool:
    return me.answer is not None and me.answer["role"] in SEES_ALL


def _without(title: str, remedy: str) -> Changes:
    return {"document": empty_state(title, remedy), "rest": None, "files": None, "note": ""}


def tenants_in(found: ReportOut, offered: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return the tenants to choose from: those that a report of all has named so far."""
    cost = next(one for one in found["figures"] if one["key"] == "cost")
    named = {str(row[0]) for row in single_rows(cost)} - {"other tenants"}
    known = named | {one["value"] for one in offered or []}
    if found["tenant"]:
        known.add(found["tenant"])
    return [{"value": name, "label": name} for name in sorted(known)]


def files_of(cluster_id: str, asked: dict[str, str]) -> list[Component]:
    """Return links to the report as PDF, CSV and JSON, and a button that prints the page."""
    query = {name: str(value) for name, value in period_fields(asked).items()}
    links: list[Component] = [
        html.A(
            label,
            href=path_to(f"{PREFIX}/clusters/{cluster_id}/report/{form}", **query),
            className="button-link",
            download=f"report.{form}",
            **aria(f"Save the report as {label}"),
        )
        for form, label in FORMS
    ]
    return links


def beginning(found: ReportOut, *, scheme: str) -> list[Component]:
    """What is read first: title, headlines, and the first question without its numbers."""
    heads = html.Div([headline(one) for one in found["headlines"]], className="report-tiles")
    first = found["figures"][0]
    return [
        html.H2(found["title"], className="report-title"),
        html.P(found["summary"], className="caption"),
        heads,
        *([_caveats(found["caveats"])] if found["caveats"] else []),
        section(first, html.Div(id=numbers_id(first["key"])), scheme=scheme),
    ]


def rest(found: ReportOut, *, scheme: str) -> dict[str, object]:
    """What assets/report.js adds to the beginning: its numbers, and the other questions."""
    first, *others = found["figures"]
    return {
        "numbers": numbers(first),
        "sections": [section(one, numbers(one), scheme=scheme) for one in others],
    }


def numbers_id(key: object) -> dict[str, object]:
    """The place of the first question's numbers."""
    return {"type": "report-numbers", "key": key}


def headline(one: HeadlineOut) -> Component:
    """A number with its change; green or red by an arrow and words, never by colour alone."""
    known = one["change"] is not None and one["before"] is not None
    before = f"from {one['shown_before']}" if known else "no figure for the period before"
    tile: Component = dmc.Paper(
        [
            html.Div(one["label"], className="tile-label", title=one["formula"]),
            html.Div(one["shown"], className="tile-value"),
            html.Div(
                [html.Span(change_words(one), className="tile-change"), before],
                className="tile-note",
            ),
        ],
        className="card tile",
        withBorder=True,
    )
    return tile


def change_words(one: HeadlineOut) -> str:
    """`+12.0 points, better `: the change, and whether it is good news."""
    if one["change"] is None:
        return ""
    words = one["shown_change"]
    if one["better"] == "neither" or one["change"] == 0:
        return f"{words} "
    is_better = (one["change"] > 0) == (one["better"] == "up")
    return f"{words}, {'better' if is_better else 'worse'} "


def section(of: FigureOut, told: Component | None, *, scheme: str) -> Component:
    """One question: the answer, the figure, its numbers as `told`, and what is behind them."""
    parts: list[Component] = [html.P(of["answer"], className="report-answer")]
    parts.append(_figures(of, scheme))
    if told is not None:
        parts.append(told)
    if of["caveats"]:
        parts.append(_caveats(of["caveats"]))
    parts.append(_source(of))
    return card(of["question"], parts, className="report-section", mb=12)


def numbers(of: FigureOut) -> Component | None:
    """The rows of a figure, to be opened; None without any."""
    if not of["rows"]:
        return None
    table = html.Div(_table(of), className="scroll-x", tabIndex=0)
    return html.Details([html.Summary("The numbers"), table], className="folded")


def _figures(of: FigureOut, scheme: str) -> Component:
    drawn = [_graph(f"report-{of['key']}", report_figure(of, scheme=scheme))]
    if of["chart"] == "shares-and-rho" and of["rows"]:
        drawn.append(_graph("report-shares", shares_figure(of, scheme=scheme)))
    parts: list[Component] = [html.Div(drawn, className="report-figures")]
    if more := left_out(of):
        parts.append(html.Div(f"{more} more tenants are in the numbers.", className="hint"))
    return html.Div(parts)


def _graph(graph_id: str, figure: object) -> Component:
    place = graph(graph_id)
    place.children[0] = dcc.Graph(id=graph_id, figure=figure, config=GRAPH_CONFIG)
    return place


def _table(of: FigureOut) -> Component:
    head = html.Thead(
        html.Tr(
            [
                html.Th(column["label"], className="" if column["is_text"] else "number")
                for column in of["columns"]
            ]
        )
    )
    singles = len(single_rows(of))
    rows = [
        html.Tr(
            [
                _cell(cell, column["is_text"], is_sum=at >= singles)
                for column, cell in zip(of["columns"], row, strict=True)
            ]
        )
        for at, row in enumerate(of["shown"])
    ]
    parts = [head, html.Tbody(rows[:singles])]
    if rows[singles:]:
        parts.append(html.Tfoot(rows[singles:]))
    return html.Table(parts, className="plain-table")


def _cell(text: str, is_text: bool, *, is_sum: bool) -> Component:
    """A cell; the first of a row that sums up others is its heading."""
    name = "wraps" if is_text else "number"
    if is_sum and is_text:
        return html.Th(text, scope="row", className=name)
    return html.Td(text, className=name)


def _caveats(caveats: Sequence[str]) -> Component:
    return html.Ul([html.Li(text) for text in caveats], className="report-caveats")


def _source(of: FigureOut) -> Component:
    policies = ", ".join(of["policy_versions"]) or "no policy decided"
    told = (("Formula", of["formula"]), ("Window", of["window"]), ("Policy", policies))
    return html.Div(
        [html.Div([html.B(f"{name}: "), text]) for name, text in told], className="report-source"
    )
