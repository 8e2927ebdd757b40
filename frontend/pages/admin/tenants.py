"""Tenants on the page of administration: the list, a new one, closing and opening."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria, click_target, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card, error_state, refused_state, scrolls, skeleton
from frontend.components.names import cut_name, isolated
from frontend.components.notices import notice, refusal
from frontend.formatting import clock
from maat.api.accounts import TenantOut

MAY_CHANGE = "tenants:manage"
DONE = {"remove": "removed", "close": "closed", "open": "open again"}


class Pressed(TypedDict):
    """A press of a button of one tenant."""

    at: int
    action: str
    tenant: str
    name: str


def cards() -> html.Div:
    new = html.Div(
        [
            html.Div(id="admin-tenant-problem"),
            dmc.Group(
                [
                    dmc.TextInput(
                        id="admin-tenant-name", value="", placeholder="name", **aria("Tenant")
                    ),
                    dmc.Button("Make tenant", id="admin-tenant-make", n_clicks=0),
                ],
                gap=8,
            ),
        ],
        id="admin-new-tenant-form",
        className="form-stack",
        **submits("admin-tenant-make"),
    )
    return html.Div(
        [
            card("Tenants", [scrolls("admin-tenants", skeleton(120), label="Tenants"), new], mb=12),
            dcc.Store(id="admin-tenant-pressed"),
            dcc.Store(id="admin-tenant-changed", data=0),
        ]
    )


def register(app: Dash, api: Api) -> None:
    changed = Output("admin-tenant-changed", "data", allow_duplicate=True)
    answer(
        app,
        partial(show_tenants, api),
        output={
            "tenants": Output("admin-tenants", "children"),
            "new": Output("admin-new-tenant-form", "style"),
        },
        inputs={
            "_changed": Input("admin-tenant-changed", "data"),
            "_users": Input("admin-changed", "data"),
        },
    )
    answer(
        app,
        partial(make_tenant, api),
        output={
            "problem": Output("admin-tenant-problem", "children"),
            "name": Output("admin-tenant-name", "value"),
            "changed": changed,
            "notices": NOTICES,
        },
        inputs={"clicks": Input("admin-tenant-make", "n_clicks")},
        state={"name": State("admin-tenant-name", "value")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(act_on_tenant, api),
        output={"changed": changed, "notices": NOTICES},
        inputs={"pressed": Input("admin-tenant-pressed", "data")},
        prevent_initial_call=True,
    )


async def show_tenants(api: Api, *, _changed: int, _users: int) -> Changes:
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            tenants = await maat.tenants()
    except Failure as error:
        return {"tenants": error_state(error), "new": HIDDEN}
    may = MAY_CHANGE in me["permissions"]
    return {
        "tenants": tenant_table(tenants, may=may),
        "new": {"display": "" if may else "none"},
    }


async def make_tenant(api: Api, *, clicks: int | None, name: str | None) -> Changes:
    if not clicks:
        return NOTHING
    try:
        async with api.visitor() as maat:
            made = await maat.create_tenant((name or "").strip())
    except Failure as error:
        return {"problem": refused_state(error)}
    words = notice("Tenant made", f"{isolated(made['name'])} has no users yet.")
    return {"problem": None, "name": "", "changed": clicks, "notices": words}


async def act_on_tenant(api: Api, *, pressed: Pressed | None) -> Changes:
    """Close, open or remove a tenant."""
    if not pressed or pressed["action"] not in DONE:
        return NOTHING
    named, action = pressed["tenant"], pressed["action"]
    try:
        async with api.visitor() as maat:
            if action == "remove":
                await maat.remove_tenant(named)
            else:
                version = (await maat.tenant(named))["version"]
                changes = {"closed": action == "close"}
                await maat.change_tenant(named, changes, version=version)
    except Failure as error:
        return {"notices": refusal(error)}
    words = notice(f"{isolated(pressed['name'])} is {DONE[action]}")
    return {"changed": pressed["at"], "notices": words}


def tenant_table(tenants: Sequence[TenantOut], *, may: bool) -> Component:
    head = html.Thead(
        html.Tr([html.Th(n) for n in ("Name", "State", "Users", "Weight", "Made", "")])
    )
    rows = [
        html.Tr(
            [
                html.Td(cut_name(one["name"])),
                html.Td(one["state"]),
                html.Td(str(one["users"])),
                html.Td(f"{one['weight']:g}"),
                html.Td(clock(one["created_at"])),
                html.Td(_buttons(one) if may else ""),
            ]
        )
        for one in tenants
    ]
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def _buttons(one: TenantOut) -> Component:
    actions = [("close", "Close") if one["state"] == "open" else ("open", "Open")]
    if not one["users"]:
        actions.append(("remove", "Remove"))
    buttons = [
        dmc.Button(
            words,
            variant="subtle",
            size="compact-xs",
            **click_target(
                "admin-tenant-pressed", action=action, tenant=one["id"], name=one["name"]
            ),
            **aria(f"{words} {one['name']}"),
        )
        for action, words in actions
    ]
    return html.Div(buttons)
