"""Kept reports: keep the one that is shown, list them, delete one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import aria, click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import empty_state, error_state, refused_state
from frontend.components.names import isolated
from frontend.components.next_step import without_cluster
from frontend.components.notices import notice
from frontend.formatting import clock
from frontend.pages.reports.layout import asked_of
from frontend.pages.reports.shown import FORMS, MAY_MANAGE
from frontend.shell import NO_CLUSTER
from maat.api.reports import KeptReportOut
from maat.client import calls
from maat.client.calls import PREFIX, period_fields

SHOWN = 50


def register_kept(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(list_kept, api),
        output={"table": Output("reports-kept", "children")},
        inputs={
            "_live": Input("live", "data"),
            "_changed": Input("reports-changed", "data"),
            "cluster_id": Input("cluster-select", "value"),
        },
    )
    answer(
        app,
        partial(keep, api),
        output={
            "problem": Output("reports-keep-problem", "children"),
            "changed": Output("reports-changed", "data"),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("reports-keep", "n_clicks")},
        state={
            "cluster_id": State("cluster-select", "value"),
            "period": State("reports-period", "value"),
            "days": State("reports-days", "value"),
            "tenant": State("reports-tenant", "value"),
            "changed": State("reports-changed", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("reports-keep", "loading"), True, False)],
    )


async def list_kept(api: Api, *, _live: object, _changed: int, cluster_id: str | None) -> Changes:
    if not cluster_id:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return {"table": without_cluster("Its reports show here.")}
    try:
        async with api.visitor() as maat:
            page = await maat.send(calls.reports(cluster=cluster_id, limit=SHOWN))
            may = MAY_MANAGE in (await maat.send(calls.me()))["permissions"]
    except Failure as error:
        return {"table": error_state(error)}
    return {"table": kept_table(page["items"], may=may)}


async def keep(
    api: Api,
    *,
    clicks: int | None,
    cluster_id: str,
    period: str,
    days: list[str | None] | None,
    tenant: str | None,
    changed: int,
) -> Changes:
    """Make the report of the chosen period again and keep it."""
    asked = asked_of(period, days)
    if not clicks or not asked:
        return NOTHING
    body = {"cluster": cluster_id, **period_fields(asked), **({"tenant": tenant} if tenant else {})}
    try:
        async with api.visitor() as maat:
            made = await maat.send(calls.make_report(body, idempotency_key=uuid4().hex))
    except Failure as error:
        return {"problem": refused_state(error)}
    words = notice("Report kept", f"{isolated(made['title'])} will not change any more.")
    return {"problem": None, "changed": changed + 1, "notices": words}


def kept_table(kept: Sequence[KeptReportOut], *, may: bool) -> Component:
    if not kept:
        return empty_state(
            "No report is kept",
            "Keep one to forward it: it never changes, and its checksum shows that. "
            "Schedules keep theirs too.",
        )
    head = html.Thead(
        html.Tr([html.Th("Report"), html.Th("Made (UTC)"), html.Th("Files"), html.Th("")])
    )
    return html.Table(
        [head, html.Tbody([_row(one, may=may) for one in kept])], className="plain-table"
    )


def _row(one: KeptReportOut, *, may: bool) -> html.Tr:
    whose = one["tenant"] or "all tenants"
    of_schedule = (
        f"by the schedule {one['schedule']}" if one["schedule"] else "by a deleted schedule"
    )
    by = of_schedule if one["schedule_id"] else "by hand"
    delete_it = dmc.Button(
        "Delete",
        variant="subtle",
        size="compact-xs",
        **click_target(
            "reports-pressed", action="delete-report", name=one["title"], report=one["id"]
        ),
        **aria(f"Delete the report {one['title']}"),
    )
    return html.Tr(
        [
            html.Td(
                [one["title"], html.Div(f"{whose}, {by}", className="caption")],
                className="wraps narrow",
                title=f"{one['id']}\nSHA-256 {one['checksum']}",
            ),
            html.Td(clock(one["made_at"])),
            html.Td(
                html.Div(
                    [
                        html.A(
                            label,
                            href=f"{PREFIX}/reports/{one['id']}/{form}",
                            download=f"report.{form}",
                            **aria(f"Save {one['title']} as {label}"),
                        )
                        for form, label in FORMS
                    ],
                    className="legend",
                )
            ),
            html.Td(delete_it if may else "", className="number"),
        ]
    )
