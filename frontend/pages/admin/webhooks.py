"""Webhooks on the page of administration: the list, a dialog, and the messages of one."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN, click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card, error_state, refused_state, scrolls, skeleton
from frontend.components.notices import notice, refusal
from frontend.forms import FormValues, errors_by_field
from frontend.pages.admin.webhook_dialog import (
    ALL_TENANTS,
    FIELDS,
    Pressed,
    body_of,
    field_id,
    place_of,
    pressed_for,
    values_of,
    webhook_dialog,
)
from frontend.pages.admin.webhook_rows import PRESSED, made_secret, message_table, webhook_table
from maat.client import AsyncClient

MAY_READ, MAY_MANAGE = "webhooks:read", "webhooks:manage"
SHOWN_AT_ONCE, MESSAGES_SHOWN = 100, 50
DONE = {
    "test": "A message is on its way: see its messages.",
    "pause": "It is told of nothing until it goes on.",
    "resume": "It is told of what happens from now on.",
    "delete": "It is deleted with its messages.",
    "redeliver": "The message is on its way, with the same id.",
    "rotate": "For 24 hours the old secret signs too.",
}


def cards() -> html.Div:
    return html.Div(
        [
            card(
                "Webhooks",
                [
                    scrolls("admin-webhooks", skeleton(120), label="Webhooks"),
                    html.Div(id="admin-webhook-made"),
                ],
                aside=html.Div(id="admin-webhook-add"),
                mb=12,
            ),
            html.Div(
                card("Messages", scrolls("admin-webhook-messages", label="Messages"), mb=12),
                id="admin-webhook-messages-part",
                style=HIDDEN,
            ),
            webhook_dialog(),
            dcc.Store(id=PRESSED),
            dcc.Store(id="admin-webhook-shown"),
            dcc.Store(id="admin-webhook-changed", data=0),
        ]
    )


def register(app: Dash, api: Api) -> None:
    changed = Output("admin-webhook-changed", "data", allow_duplicate=True)
    answer(
        app,
        partial(show_webhooks, api),
        output={
            "webhooks": Output("admin-webhooks", "children"),
            "add": Output("admin-webhook-add", "children"),
        },
        inputs={
            "_live": Input("live", "data"),
            "_changed": Input("admin-webhook-changed", "data"),
        },
    )
    answer(
        app,
        partial(show_messages, api),
        output={
            "part": Output("admin-webhook-messages-part", "style"),
            "messages": Output("admin-webhook-messages", "children"),
        },
        inputs={
            "_live": Input("live", "data"),
            "_changed": Input("admin-webhook-changed", "data"),
            "webhook": Input("admin-webhook-shown", "data"),
        },
    )
    answer(
        app,
        partial(act_on_webhook, api),
        output={
            "changed": changed,
            "shown": Output("admin-webhook-shown", "data"),
            "made": Output("admin-webhook-made", "children", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"pressed": Input(PRESSED, "data")},
        prevent_initial_call=True,
    )
    _register_dialog(app, api)


def _register_dialog(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(open_webhook, api),
        output={
            "opened": Output("admin-webhook", "opened", allow_duplicate=True),
            "title": Output("admin-webhook", "title"),
            "values": {name: Output(field_id(name), "value") for name in FIELDS},
            "errors": {
                name: Output(field_id(name), "error", allow_duplicate=True) for name in FIELDS
            },
            "clusters": Output(field_id("cluster"), "data"),
            "tenants": Output(field_id("whose"), "data"),
            "whose": Output("admin-webhook-whose-part", "style"),
            "problem": Output("admin-webhook-problem", "children", allow_duplicate=True),
        },
        inputs={"pressed": Input(PRESSED, "data")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(save_webhook, api),
        output={
            "opened": Output("admin-webhook", "opened"),
            "problem": Output("admin-webhook-problem", "children"),
            "errors": {name: Output(field_id(name), "error") for name in FIELDS},
            "made": Output("admin-webhook-made", "children"),
            "changed": Output("admin-webhook-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("admin-webhook-save", "n_clicks")},
        state={
            "pressed": State(PRESSED, "data"),
            "values": {name: State(field_id(name), "value") for name in FIELDS},
        },
        prevent_initial_call=True,
        running=[(Output("admin-webhook-save", "loading"), True, False)],
    )


async def show_webhooks(api: Api, *, _live: object, _changed: int) -> Changes:
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            found = await maat.webhooks(limit=SHOWN_AT_ONCE)
    except Failure as error:
        return {"webhooks": error_state(error), "add": None}
    may = MAY_MANAGE in me["permissions"]
    add = dmc.Button(
        "Make a webhook",
        variant="subtle",
        size="compact-xs",
        **click_target(PRESSED, **pressed_for("new", None)),
    )
    return {"webhooks": webhook_table(found, may=may), "add": add if may else None}


async def show_messages(api: Api, *, _live: object, _changed: int, webhook: str | None) -> Changes:
    if not webhook:
        return {"part": HIDDEN}
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            found = await maat.webhook_deliveries(webhook, limit=MESSAGES_SHOWN)
    except Failure as error:
        return {"part": SHOWN, "messages": error_state(error)}
    return {
        "part": SHOWN,
        "messages": message_table(found, may=MAY_MANAGE in me["permissions"]),
    }


async def act_on_webhook(api: Api, *, pressed: Pressed | None) -> Changes:
    """Do what the pressed button of a row says; what opens the dialog is not for here."""
    if not pressed or pressed["action"] in ("new", "change"):
        return NOTHING
    if pressed["action"] == "messages":
        return {"shown": pressed["webhook"]}
    if pressed["action"] not in DONE:
        return NOTHING
    changes: dict[str, object] = {}
    try:
        async with api.visitor() as maat:
            if pressed["action"] == "rotate":
                made = await maat.rotate_webhook_secret(pressed["webhook"])
                changes["made"] = made_secret(made)
            else:
                await _do(maat, pressed)
    except Failure as error:
        return {"notices": refusal(error)}
    if pressed["action"] == "test":
        changes["shown"] = pressed["webhook"]
    if pressed["action"] == "delete":
        changes["shown"] = None
    said = notice("Done", DONE[pressed["action"]])
    return {**changes, "changed": pressed["at"], "notices": said}


async def _do(maat: AsyncClient, pressed: Pressed) -> None:
    webhook = pressed["webhook"]
    if pressed["action"] == "test":
        await maat.send_webhook_test(webhook, idempotency_key=uuid4().hex)
    elif pressed["action"] == "delete":
        await maat.remove_webhook(webhook)
    elif pressed["action"] == "redeliver":
        await maat.redeliver(webhook, pressed["name"])
    else:
        changes = {"active": pressed["action"] == "resume"}
        await maat.change_webhook(webhook, changes, version=int(pressed["version"]))


async def open_webhook(api: Api, *, pressed: Pressed | None) -> Changes:
    """Show what is to be changed in the dialog, or empty fields for a new webhook."""
    if not pressed or pressed["action"] not in ("new", "change"):
        return NOTHING
    is_new = not pressed["webhook"]
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            found = None if is_new else await maat.webhook(pressed["webhook"])
            clusters = await maat.clusters()
            tenants = await maat.tenants() if me["role"] == "cluster_admin" else []
    except Failure as error:
        return {"problem": refused_state(error), "opened": True}
    everybody = [{"value": ALL_TENANTS, "label": "all tenants"}] if tenants else []
    return {
        "opened": True,
        "title": "New webhook" if is_new else pressed["name"],
        "values": values_of(found),
        "errors": dict.fromkeys(FIELDS, ""),
        "clusters": [{"value": one["id"], "label": one["name"]} for one in clusters],
        "tenants": [
            *everybody,
            *({"value": one["name"], "label": one["name"]} for one in tenants),
        ],
        "whose": SHOWN if is_new and tenants else HIDDEN,
        "problem": None,
    }


async def save_webhook(
    api: Api, *, clicks: int | None, pressed: Pressed | None, values: FormValues
) -> Changes:
    """Make the webhook, or change it; show what is wrong beside its field."""
    if not clicks or not pressed or pressed["action"] not in ("new", "change"):
        return NOTHING
    is_new = not pressed["webhook"]
    body = body_of(values, is_new=is_new)
    secret = None
    try:
        async with api.visitor() as maat:
            if is_new:
                secret = made_secret(await maat.create_webhook(body))
            else:
                version = int(pressed["version"])
                await maat.change_webhook(pressed["webhook"], body, version=version)
    except Failure as error:
        beside, above = errors_by_field(error, place_of, empty_name="Give the webhook a name.")
        return {"errors": {name: beside.get(name, "") for name in FIELDS}, "problem": above}
    return {
        "opened": False,
        "problem": None,
        "errors": dict.fromkeys(FIELDS, ""),
        "made": secret,
        "changed": pressed["at"],
        "notices": notice("Webhook made" if is_new else "Webhook changed", body["name"]),
    }
