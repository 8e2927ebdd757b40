"""Users on the page of administration: the list, a new user, and what may change of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria, click_target, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser, is_press_of
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    refused_state,
    scrolls,
    skeleton,
)
from frontend.components.dialogs import dialog
from frontend.components.names import cut_name, isolated
from frontend.components.next_step import leads
from frontend.components.notices import notice
from frontend.formatting import clock
from frontend.forms import FormValues
from maat.api.accounts import UserOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.vocabulary import Role, UserKind

MAY_CHANGE = "users:manage"
SHOWN_AT_ONCE = 200
ROLES = [{"value": role.value, "label": role.value.replace("_", " ")} for role in Role]
NEW = ("name", "tenant", "role", "kind", "password")
CHANGES = ("role", "state", "password")


class Pressed(TypedDict, total=False):
    """A press of the button that opens the dialog of one user."""

    at: int
    user: str
    role: str
    state: str


def cards() -> html.Div:
    search = dmc.TextInput(
        id="admin-search", placeholder="Part of a name", value="", debounce=300, size="xs",
        **aria("Search users"),
    )  # fmt: skip
    return html.Div(
        [
            card(
                "Users", scrolls("admin-users", skeleton(120), label="Users"), aside=search, mb=12
            ),
            html.Div(card("New user", _new(), mb=12), id="admin-new-user"),
            _dialog(),
            dcc.Store(id="admin-pressed"),
            dcc.Store(id="admin-changed", data=0),
        ]
    )


def _new() -> html.Div:
    row = [
        dmc.TextInput(id="admin-new-name", label="Name", value=""),
        dmc.TextInput(id="admin-new-tenant", label="Tenant", value="", placeholder="your own"),
        dmc.Select(
            id="admin-new-role", label="Role", data=ROLES, value="viewer", allowDeselect=False
        ),
        dmc.Select(
            id="admin-new-kind",
            label="Kind",
            data=[
                {"value": UserKind.PERSON.value, "label": "person"},
                {"value": UserKind.SERVICE.value, "label": "service account"},
            ],
            value=UserKind.PERSON.value,
            allowDeselect=False,
        ),
        dmc.PasswordInput(
            id="admin-new-password", label="Password", value="", autoComplete="new-password"
        ),
    ]
    return html.Div(
        [
            html.Div(id="admin-new-problem"),
            html.Div(row, className="form-row wide"),
            html.Div("A service account has tokens and no password.", className="hint"),
            dmc.Group([dmc.Button("Make user", id="admin-new-make", n_clicks=0)], mt=4),
        ],
        className="form-stack",
        **submits("admin-new-make"),
    )


def _dialog() -> dmc.Modal:
    states = [{"value": "active", "label": "active"}, {"value": "off", "label": "not active"}]
    form = html.Div(
        [
            html.Div(id="admin-user-problem"),
            dmc.Select(id="admin-user-role", label="Role", data=ROLES, allowDeselect=False),
            dmc.Select(id="admin-user-state", label="State", data=states, allowDeselect=False),
            dmc.PasswordInput(
                id="admin-user-password",
                label="New password",
                value="",
                placeholder="as it is",
                autoComplete="new-password",
            ),
            html.Div(
                "Who is not active is let in by no means. A new password ends all sessions.",
                className="hint",
            ),
            dmc.Group(
                [
                    dmc.Button("Remove", id="admin-user-remove", variant="subtle", n_clicks=0),
                    dmc.Button("Save", id="admin-user-save", n_clicks=0),
                ],
                justify="space-between",
            ),
        ],
        className="form-stack",
        **submits("admin-user-save"),
    )
    return dialog("admin-user", "User", form)


def register(app: Dash, api: Api) -> None:
    _register_list(app, api)
    _register_dialog(app, api)


def _register_list(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_users, api),
        output={
            "users": Output("admin-users", "children"),
            "new": Output("admin-new-user", "style"),
            "roles": Output("admin-new-role", "data"),
            "other_roles": Output("admin-user-role", "data"),
        },
        inputs={"_changed": Input("admin-changed", "data"), "q": Input("admin-search", "value")},
    )
    answer(
        app,
        partial(make_user, api),
        output={
            "problem": Output("admin-new-problem", "children"),
            "password": Output("admin-new-password", "value"),
            "changed": Output("admin-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("admin-new-make", "n_clicks")},
        state={"values": {name: State(f"admin-new-{name}", "value") for name in NEW}},
        prevent_initial_call=True,
    )


def _register_dialog(app: Dash, api: Api) -> None:
    answer(
        app,
        open_user,
        output={
            "title": Output("admin-user", "title"),
            **{name: Output(f"admin-user-{name}", "value") for name in CHANGES},
            "problem": Output("admin-user-problem", "children", allow_duplicate=True),
        },
        inputs={"pressed": Input("admin-pressed", "data")},
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "openOn",
        Output("admin-user", "opened", allow_duplicate=True),
        Input("admin-pressed", "data"),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(act_on_user, api),
        output={
            "opened": Output("admin-user", "opened"),
            "problem": Output("admin-user-problem", "children"),
            "changed": Output("admin-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={
            "saves": Input("admin-user-save", "n_clicks"),
            "removes": Input("admin-user-remove", "n_clicks"),
        },
        state={
            "pressed": State("admin-pressed", "data"),
            "values": {name: State(f"admin-user-{name}", "value") for name in CHANGES},
        },
        prevent_initial_call=True,
    )


async def show_users(api: Api, *, _changed: int, q: str | None) -> Changes:
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            found = await maat.send(calls.users(q=q or None, limit=SHOWN_AT_ONCE))
    except Failure as error:
        return {"users": error_state(error), "new": HIDDEN}
    may = MAY_CHANGE in me["permissions"]
    roles = [role for role in ROLES if role["value"] in me["may_give"]]
    return {
        "roles": roles,
        "other_roles": roles,
        "users": user_table(
            found["items"], may=me["may_give"], more=found["next_cursor"] is not None
        ),
        "new": {"display": "" if may else "none"},
    }


async def make_user(api: Api, *, clicks: int | None, values: FormValues) -> Changes:
    if not clicks:
        return NOTHING
    body: RawBody = {name: values[name] for name in NEW if values[name]}
    try:
        async with api.visitor() as maat:
            made = await maat.create_user(body)
    except Failure as error:
        return {"problem": refused_state(error)}
    words = notice(
        "User made", f"{isolated(made['name'])} is a {made['role']} of {isolated(made['tenant'])}."
    )
    return {"problem": None, "password": "", "changed": clicks, "notices": words}


async def open_user(*, pressed: Pressed | None) -> Changes:
    """Show one user's present role and state in the dialog."""
    if not pressed:
        return NOTHING
    return {
        "title": pressed["user"],
        "role": pressed["role"],
        "state": pressed["state"],
        "password": "",
        "problem": None,
    }


async def act_on_user(
    api: Api, *, saves: int | None, removes: int | None, pressed: Pressed | None, values: FormValues
) -> Changes:
    """Save what was changed of the user, or remove them."""
    if not pressed or not (saves or removes):
        return NOTHING
    named = pressed["user"]
    try:
        if is_press_of("admin-user-remove"):
            async with api.visitor() as maat:
                await maat.remove_user(named)
            words = notice("User removed", named)
        else:
            await _save(api, named, pressed, values)
            words = notice("User changed", named)
    except Failure as error:
        return {"problem": refused_state(error)}
    return {"opened": False, "problem": None, "changed": pressed["at"], "notices": words}


async def _save(api: Api, named: str, pressed: Pressed, values: FormValues) -> None:
    changes: RawBody = {}
    if values["role"] != pressed["role"]:
        changes["role"] = values["role"]
    if values["state"] != pressed["state"]:
        changes["active"] = values["state"] == "active"
    async with api.visitor() as maat:
        if changes:
            version = (await maat.user(named))["version"]
            await maat.change_user(named, changes, version=version)
        if values["password"]:
            await maat.set_password(named, values["password"])


def user_table(users: Sequence[UserOut], *, may: Sequence[str], more: bool) -> Component:
    """The users. `may`: the roles of those who may be changed."""
    if not users:
        return empty_state(
            "No user of this name",
            "Search for another part of a name.",
            action=leads("All users", "/admin?tab=accounts"),
        )
    names = ("Name", "Tenant", "Role", "Kind", "State", "Signs in by", "Last signed in", "")
    head = html.Thead(html.Tr([html.Th(name) for name in names]))
    table = html.Table(
        [head, html.Tbody([_row(user, may=user["role"] in may) for user in users])],
        className="plain-table",
    )
    note = f"The first {SHOWN_AT_ONCE}: search for others by name." if more else ""
    return html.Div([table, html.Div(note, className="hint")])


def _row(user: UserOut, *, may: bool) -> html.Tr:
    state = "active" if user["active"] else "off"
    change = dmc.Button(
        "Change",
        variant="subtle",
        size="compact-xs",
        **click_target("admin-pressed", user=user["name"], role=user["role"], state=state),
        **aria(f"Change {user['name']}"),
    )
    cells: list[str | Component] = [
        cut_name(user["name"]),
        cut_name(user["tenant"]),
        user["role"].replace("_", " "),
        user["kind"],
        "active" if user["active"] else "not active",
        ", ".join(user["signs_in_by"]) or "–",
        "never" if user["signed_in_at"] is None else clock(user["signed_in_at"]),
        change if may else "",
    ]
    return html.Tr([html.Td(cell) for cell in cells])
