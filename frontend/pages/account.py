"""One's own account: who one is, password, browsers that are signed in, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page
from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria, click_target, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser
from frontend.components.cards import (
    card,
    error_state,
    facts,
    page_title,
    refused_state,
    scrolls,
    skeleton,
)
from frontend.components.names import isolated
from frontend.components.next_step import goes_to
from frontend.components.notices import notice, refusal
from frontend.components.own_quota import own_quota_card, register_own_quota
from frontend.components.tokens import made_token, token_body, token_form, token_table
from frontend.formatting import clock
from frontend.forms import FormValues
from maat.api.accounts import SessionOut
from maat.api.service import MeOut
from maat.client import calls

WITHOUT = (
    "You have no password here. Who signs in with a provider changes it there; others ask an "
    "administrator for one."
)
BY = {
    "token": "by a token",
    "session": "in this browser",
    "local": "as the user who runs Maat on this machine, without signing in",
}


class Pressed(TypedDict, total=False):
    """A press of a button that ends a session or revokes a token."""

    at: int
    session: str
    token: str
    name: str


def layout(**_query: object) -> html.Div:
    sessions = scrolls("account-sessions", skeleton(32), label="Browsers that are signed in")
    tokens = scrolls("account-tokens", skeleton(120), label="Your tokens")
    elsewhere = dmc.Button(
        "Sign out elsewhere",
        id="account-elsewhere",
        variant="subtle",
        size="compact-xs",
        n_clicks=0,
    )
    return html.Div(
        [
            page_title(
                "Account",
                dmc.Button(
                    "Sign out",
                    id="account-sign-out",
                    variant="default",
                    n_clicks=0,
                    style=HIDDEN,
                ),
            ),
            html.Div(
                [
                    card("You", html.Div(skeleton(120), id="account-facts"), className="span-6"),
                    card("Password", _password(), className="span-6"),
                    own_quota_card("account-quota", className="span-12"),
                    card("Signed in", sessions, aside=elsewhere, className="span-12"),
                    card("Tokens", tokens, className="span-12"),
                    card(
                        "New token", token_form("account", for_service=False), className="span-12"
                    ),
                ],
                className="columns",
            ),
            dcc.Store(id="account-session-pressed"),
            dcc.Store(id="account-changed", data=0),
        ]
    )


def _password() -> html.Div:
    fields = [
        dmc.PasswordInput(id=f"account-{name}", label=label, value="", autoComplete=complete)
        for name, label, complete in (
            ("old", "Present password", "current-password"),
            ("new", "New password", "new-password"),
            ("again", "New password again", "new-password"),
        )
    ]
    form = html.Div(
        [
            *fields,
            html.Div(id="account-password-said", className="form-said", role="status"),
            dmc.Group([dmc.Button("Change password", id="account-password", n_clicks=0)], mt=4),
        ],
        className="form-stack",
        **submits("account-password"),
    )
    return html.Div(
        [
            html.Div(WITHOUT, id="account-no-password", className="hint"),
            html.Div(form, id="account-password-form", style=HIDDEN),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(__name__, path="/account", title="Account", layout=layout, takes={})
    answer(
        app,
        partial(show_account, api),
        output={
            "facts": Output("account-facts", "children"),
            "sessions": Output("account-sessions", "children"),
            "tokens": Output("account-tokens", "children"),
            "scopes": Output("account-token-scopes", "data"),
            "form": Output("account-password-form", "style"),
            "without": Output("account-no-password", "style"),
            "out": Output("account-sign-out", "style"),
        },
        inputs={
            "_changed": Input("account-changed", "data"),
            "_tokens": Input("account-token-changed", "data"),
        },
    )
    in_browser(
        app,
        "changePassword",
        Output("account-password-said", "children"),
        Input("account-password", "n_clicks"),
        State("account-old", "value"),
        State("account-new", "value"),
        State("account-again", "value"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "signOut",
        Output("account-sign-out", "title"),
        Input("account-sign-out", "n_clicks"),
        prevent_initial_call=True,
    )
    _register_ends(app, api)
    register_own_quota(app, api, "account-quota")
    register_tokens(app, api, "account", fields=("name", "days", "scopes"))


def _register_ends(app: Dash, api: Api) -> None:
    changed = Output("account-changed", "data", allow_duplicate=True)
    answer(
        app,
        partial(end_session, api),
        output={"changed": changed, "notices": NOTICES},
        inputs={"pressed": Input("account-session-pressed", "data")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(end_elsewhere, api),
        output={"changed": changed, "notices": NOTICES},
        inputs={"clicks": Input("account-elsewhere", "n_clicks")},
        prevent_initial_call=True,
    )


def register_tokens(app: Dash, api: Api, prefix: str, *, fields: Sequence[str]) -> None:
    """Register the form of a new token and the buttons that revoke one."""
    changed = Output(f"{prefix}-token-changed", "data", allow_duplicate=True)
    answer(
        app,
        partial(make_token, api),
        output={
            "made": Output(f"{prefix}-token-made", "children"),
            "problem": Output(f"{prefix}-token-problem", "children"),
            "changed": changed,
        },
        inputs={"clicks": Input(f"{prefix}-token-make", "n_clicks")},
        state={"values": {name: State(f"{prefix}-token-{name}", "value") for name in fields}},
        running=[(Output(f"{prefix}-token-make", "loading"), True, False)],
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(revoke_token, api),
        output={"changed": changed, "notices": NOTICES},
        inputs={"pressed": Input(f"{prefix}-token-pressed", "data")},
        prevent_initial_call=True,
    )


async def show_account(api: Api, *, _changed: int, _tokens: int) -> Changes:
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            sessions = (await maat.send(calls.sessions()))["items"]
            tokens = await maat.tokens(user="me")
    except Failure as error:
        return {"facts": error_state(error), "sessions": None, "tokens": None}
    return {
        "facts": _facts(me),
        "sessions": session_table(sessions),
        "tokens": token_table(
            tokens,
            press_store="account-token-pressed",
            whose=False,
            way=goes_to("Make a token", "account-token-name"),
        ),
        "scopes": me["permissions"],
        "form": {"display": "" if me["has_password"] else "none"},
        "without": {"display": "none" if me["has_password"] else ""},
        "out": {"display": "" if me["by"] == "session" else "none"},
    }


async def make_token(api: Api, *, clicks: int | None, values: FormValues) -> Changes:
    if not clicks:
        return NOTHING
    try:
        async with api.visitor() as maat:
            made = await maat.create_token(token_body(values))
    except Failure as error:
        return {"problem": refused_state(error), "made": None}
    return {"problem": None, "made": made_token(made), "changed": clicks}


async def revoke_token(api: Api, *, pressed: Pressed | None) -> Changes:
    if not pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            await maat.revoke_token(pressed["token"])
    except Failure as error:
        return {"notices": refusal(error)}
    words = notice("Token revoked", f"{isolated(pressed['name'])} lets nobody in any more.")
    return {"changed": pressed["at"], "notices": words}


async def end_session(api: Api, *, pressed: Pressed | None) -> Changes:
    if not pressed:
        return NOTHING
    try:
        async with api.visitor() as maat:
            await maat.send(calls.end_session(pressed["session"]))
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": pressed["at"], "notices": notice("Signed out there")}


async def end_elsewhere(api: Api, *, clicks: int | None) -> Changes:
    if not clicks:
        return NOTHING
    try:
        async with api.visitor() as maat:
            ended = (await maat.send(calls.end_other_sessions()))["ended"]
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": -clicks, "notices": notice("Signed out elsewhere", f"{ended} sessions.")}


def _facts(me: MeOut) -> Component:
    return facts(
        [
            ("Name", me["user"]),
            ("Tenant", me["tenant"]),
            ("Role", me["role"].replace("_", " ")),
            ("Known", BY[me["by"]]),
            ("May", ", ".join(me["permissions"]) or "nothing"),
        ]
    )


def session_table(sessions: Sequence[SessionOut]) -> Component:
    if not sessions:
        return html.Div("No browser is signed in as you.", className="hint")
    names = ("Browser", "Signed in", "Last seen", "Ends", "")
    head = html.Thead(html.Tr([html.Th(name) for name in names]))
    return html.Table([head, html.Tbody([_row(one) for one in sessions])], className="plain-table")


def _row(one: SessionOut) -> html.Tr:
    end = dmc.Button(
        "End",
        variant="subtle",
        size="compact-xs",
        **click_target("account-session-pressed", session=one["id"]),
        **aria(f"End the session of {clock(one['created_at'])}"),
    )
    cells = [
        one["browser"] or "unknown",
        clock(one["created_at"]),
        clock(one["last_seen_at"]),
        clock(one["expires_at"]),
        "this one" if one["current"] else end,
    ]
    return html.Tr([html.Td(cell, className="wraps" if cell is cells[0] else "") for cell in cells])
