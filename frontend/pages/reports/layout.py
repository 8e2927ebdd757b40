"""What the page of reports shows before data comes: period, report, kept reports, schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import HIDDEN, aria
from frontend.components.cards import card, graph, page_title, scrolls, skeleton
from frontend.components.period import asked_period, period_choice
from frontend.pages.reports.deleting import delete_dialog
from frontend.pages.reports.schedule_form import schedule_dialog
from frontend.routing import QueryValue, query_value

PAGE = "reports"


def layout(tenant: QueryValue = None, **query: QueryValue) -> html.Div:
    return html.Div(
        [
            page_title(
                "Reports",
                html.Div(id="reports-files", className="legend no-print"),
                note=html.Span(id="reports-note", className="caption"),
            ),
            _controls(query, query_value(tenant) or ""),
            # The chart's place asks for the script of the charts while the report is made.
            html.Div(
                [skeleton(92), graph("report-waiting", height=320)],
                id="reports-document",
                className="report",
            ),
            html.Div(id="reports-more", className="report"),
            html.Div(
                [
                    card("Kept reports", _kept(), className="span-7"),
                    card("By schedule", _schedules(), className="span-5"),
                ],
                className="columns no-print",
            ),
            schedule_dialog(),
            delete_dialog(),
            dcc.Store(id="reports-rest"),
            dcc.Store(id="reports-pressed"),
            dcc.Store(id="reports-changed", data=0),
        ]
    )


def _controls(query: Mapping[str, QueryValue], tenant: str) -> html.Div:
    whose = html.Div(
        dmc.Select(
            id="reports-tenant",
            data=[{"value": tenant, "label": tenant}] if tenant else [],
            value=tenant or None,
            placeholder="all tenants",
            clearable=True,
            size="xs",
            **aria("Tenant"),
        ),
        id="reports-tenants",
        style={} if tenant else HIDDEN,
    )
    return html.Div([*period_choice(PAGE, query), whose], className="filters no-print")


def _kept() -> list[Component]:
    keep = dmc.Button("Keep this report", id="reports-keep", size="compact-sm", n_clicks=0)
    return [
        html.Div(id="reports-keep-problem"),
        html.Div(keep, id="reports-keep-place", style=HIDDEN),
        scrolls("reports-kept", label="Kept reports"),
    ]


def _schedules() -> list[Component]:
    add = dmc.Button("Add a schedule", id="reports-add", size="compact-sm", n_clicks=0)
    return [
        html.Div(add, id="reports-add-place", style=HIDDEN),
        scrolls("reports-schedules", label="Schedules"),
    ]


def asked_of(period: str, days: Sequence[str | None] | None) -> dict[str, str]:
    """Return the query of a report for what the controls say; empty while a day is missing."""
    asked = asked_period("", period, days)
    if asked is None:
        return {}
    return {name: str(value) for name, value in asked.items() if name != "cluster"}
