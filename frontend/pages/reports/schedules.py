"""Schedules of reports: the list with their last deliveries, a form, and what can be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria, click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import empty_state, error_state
from frontend.components.next_step import without_cluster
from frontend.components.notices import notice, refusal
from frontend.components.states import state_chip
from frontend.formatting import clock, plural
from frontend.forms import FormValues, errors_by_field
from frontend.pages.reports.deleting import Pressed
from frontend.pages.reports.schedule_form import EVERY, FIELDS
from frontend.pages.reports.shown import MAY_MANAGE
from frontend.shell import NO_CLUSTER
from maat.api.reports import DeliveryOut, ScheduleOut
from maat.client import AsyncClient, calls
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem

DELIVERIES_SHOWN = 3
ERRORS = ("name", "hour", "url", "secret", "forms")


def register_schedules(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(list_schedules, api),
        output={"table": Output("reports-schedules", "children")},
        inputs={
            "_live": Input("live", "data"),
            "_changed": Input("reports-changed", "data"),
            "cluster_id": Input("cluster-select", "value"),
        },
    )
    answer(
        app,
        partial(act, api),
        output={
            "changed": Output("reports-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"pressed": Input("reports-pressed", "data")},
        prevent_initial_call=True,
    )
    _register_form(app, api)


def _register_form(app: Dash, api: Api) -> None:
    answer(
        app,
        ask,
        output={"asks": Output("reports-ask", "opened")},
        inputs={"clicks": Input("reports-add", "n_clicks")},
        prevent_initial_call=True,
    )
    answer(
        app,
        say_channel,
        output={
            "webhook": Output("reports-schedule-webhook", "style"),
            "folder": Output("reports-schedule-folder", "style"),
        },
        inputs={"channel": Input("reports-schedule-channel", "value")},
    )
    answer(
        app,
        partial(add, api),
        output={
            "errors": {name: Output(f"reports-schedule-{name}", "error") for name in ERRORS},
            "problem": Output("reports-schedule-problem", "children"),
            "asks": Output("reports-ask", "opened", allow_duplicate=True),
            "secret": Output("reports-schedule-secret", "value"),
            "key": Output("reports-schedule-key", "data"),
            "changed": Output("reports-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("reports-schedule-add", "n_clicks")},
        state={
            "cluster_id": State("cluster-select", "value"),
            "tenant": State("reports-tenant", "value"),
            "key": State("reports-schedule-key", "data"),
            "changed": State("reports-changed", "data"),
            "values": {name: State(f"reports-schedule-{name}", "value") for name in FIELDS},
        },
        prevent_initial_call=True,
        running=[(Output("reports-schedule-add", "loading"), True, False)],
    )


async def list_schedules(
    api: Api, *, _live: object, _changed: int, cluster_id: str | None
) -> Changes:
    if not cluster_id:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return {"table": without_cluster("Its schedules show here.")}
    try:
        async with api.visitor() as maat:
            found = (await maat.send(calls.report_schedules(cluster=cluster_id)))["items"]
            may = MAY_MANAGE in (await maat.send(calls.me()))["permissions"]
            deliveries = {one["id"]: await _last(maat, one["id"]) for one in found}
    except Failure as error:
        return {"table": error_state(error)}
    return {"table": schedules_table(found, deliveries, may=may)}


async def _last(maat: AsyncClient, schedule_id: str) -> list[DeliveryOut]:
    page = await maat.send(calls.report_deliveries(schedule_id, limit=DELIVERIES_SHOWN))
    return page["items"]


async def ask(*, clicks: int | None) -> Changes:
    return {"asks": True} if clicks else NOTHING


async def say_channel(*, channel: str) -> Changes:
    is_webhook = channel == "webhook"
    return {"webhook": {} if is_webhook else HIDDEN, "folder": HIDDEN if is_webhook else {}}


async def add(
    api: Api,
    *,
    clicks: int | None,
    cluster_id: str,
    tenant: str | None,
    key: str,
    changed: int,
    values: FormValues,
) -> Changes:
    """Add the schedule that the form describes, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    body = body_of(values, cluster_id=cluster_id, tenant=tenant)
    try:
        async with api.visitor() as maat:
            made = await maat.send(calls.schedule_report(body, idempotency_key=key))
    except Failure as error:
        beside, problem = errors_by_field(error, _place, empty_name="Give the schedule a name.")
        errors = {name: beside.get(name, "") for name in ERRORS}
        return {"errors": errors, "problem": problem, "key": uuid4().hex}
    return {
        "errors": dict.fromkeys(ERRORS, ""),
        "problem": None,
        "asks": False,
        "secret": "",
        "key": uuid4().hex,
        "changed": changed + 1,
        "notices": notice("Schedule added", f"Next due at {clock(made['next_due_at'])} UTC."),
    }


def body_of(values: FormValues, *, cluster_id: str, tenant: str | None) -> RawBody:
    """The fields as the API's body."""
    body: RawBody = {
        "cluster": cluster_id,
        "name": (values["name"] or "").strip(),
        "every": values["every"],
        "hour": values["hour"] if isinstance(values["hour"], int) else -1,
        "channel": values["channel"],
        "forms": values["forms"] or [],
    }
    if tenant:
        body["tenant"] = tenant
    if values["channel"] == "webhook":
        given = {"url": (values["url"] or "").strip(), "secret": values["secret"] or ""}
        body |= {name: value for name, value in given.items() if value}
    return body


def _place(problem: FieldProblem) -> str | None:
    name = problem.pointer.strip("/").split("/")[0]
    return name if name in ERRORS else "url" if name == "channel" else None


async def act(api: Api, *, pressed: Pressed | None) -> Changes:
    """Do what the pressed button of a row says."""
    if not pressed:
        return NOTHING
    told = {
        "deliver": "The report is made now; the list shows whether it arrived.",
        "stop": "No further report is made until it goes on.",
        "resume": "It goes on.",
    }
    if pressed["action"] not in told:
        return NOTHING
    try:
        async with api.visitor() as maat:
            await _do(maat, pressed)
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": pressed["at"], "notices": notice("Done", told[pressed["action"]])}


async def _do(maat: AsyncClient, pressed: Pressed) -> None:
    schedule = pressed["schedule"]
    if pressed["action"] == "deliver":
        await maat.send(calls.deliver_report(schedule, idempotency_key=uuid4().hex))
    else:
        changes = {"active": pressed["action"] == "resume"}
        version = int(pressed["version"])
        await maat.send(calls.change_report_schedule(schedule, changes, version=version))


def schedules_table(
    schedules: Sequence[ScheduleOut],
    deliveries: Mapping[str, Sequence[DeliveryOut]],
    *,
    may: bool,
) -> Component:
    if not schedules:
        return empty_state(
            "No report by schedule",
            "A schedule makes one each week or month, and sends it to a folder or a webhook.",
        )
    rows = [row for one in schedules for row in _rows(one, deliveries.get(one["id"], ()), may)]
    return html.Table(html.Tbody(rows), className="plain-table")


def _rows(one: ScheduleOut, deliveries: Sequence[DeliveryOut], may: bool) -> list[html.Tr]:
    every = dict(EVERY)[one["every"]]
    where = one["url"] or "folder"
    whose = one["tenant"] or "all tenants"
    due = f"next {clock(one['next_due_at'])} UTC" if one["active"] else "stopped"
    told = [
        html.B(one["name"]),
        html.Div(f"{every}, {whose}, {due}", className="caption"),
        html.Div(where, className="caption breaks"),
        *[_delivery(delivery) for delivery in deliveries],
        *([_buttons(one)] if may else []),
    ]
    return [html.Tr(html.Td(told, className="wraps"))]


def _delivery(one: DeliveryOut) -> Component:
    tries = plural(one["tries"], "try", "tries") if one["tries"] else ""
    words = ", ".join(part for part in (clock(one["due_at"]), tries, one["message"]) if part)
    return html.Div(
        [state_chip(one["state"]), html.Span(words, className="caption breaks")],
        className="legend",
    )


def _buttons(one: ScheduleOut) -> Component:
    name, version = one["name"], str(one["version"])
    stop = "stop" if one["active"] else "resume"
    actions = (
        ("deliver", "Send now", f"Make and send the report of {name} now"),
        (stop, stop.capitalize(), f"{stop.capitalize()} the schedule {name}"),
        ("delete", "Delete", f"Delete the schedule {name}"),
    )
    return html.Div(
        [
            dmc.Button(
                words,
                variant="subtle",
                size="compact-xs",
                **click_target(
                    "reports-pressed", action=action, name=name, schedule=one["id"], version=version
                ),
                **aria(label),
            )
            for action, words, label in actions
        ],
        className="row-buttons below",
    )
