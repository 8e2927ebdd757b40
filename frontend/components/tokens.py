"""Tokens as a table, and the form that makes one, on the pages of accounts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import aria, click_target, submits
from frontend.components.cards import empty_state
from frontend.components.names import cut_name
from frontend.formatting import clock
from frontend.forms import FormValues
from maat.api.accounts import TokenMadeOut, TokenOut
from maat.client.calls import RawBody

DAYS = (("1", "1 day"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "never"))


def token_table(
    tokens: Sequence[TokenOut], *, press_store: str, whose: bool, way: Component
) -> Component:
    """The tokens, newest first. `whose`: with a column of users. `way`: to the first token."""
    if not tokens:
        return empty_state(
            "No tokens",
            "Programs and the command line sign in with a token.",
            action=way,
        )
    names = [*(["User"] if whose else []), "Name", "Begins with", "May", "Expires", "Last used", ""]
    rows = [_row(token, press_store=press_store, whose=whose) for token in tokens]
    head = html.Thead(html.Tr([html.Th(name) for name in names]))
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def _row(token: TokenOut, *, press_store: str, whose: bool) -> html.Tr:
    revoke = dmc.Button(
        "Revoke",
        variant="subtle",
        size="compact-xs",
        **click_target(press_store, token=token["id"], name=token["name"]),
        **aria(f"Revoke the token {token['name']}"),
    )
    scopes = token["scopes"]
    may = "all its user may" if scopes is None else ", ".join(scopes) or "nothing"
    cells: list[str | Component] = [
        *([cut_name(token["user"])] if whose else []),
        token["name"],
        html.Code(f"{token['prefix']}…"),
        may,
        "never" if token["expires_at"] is None else clock(token["expires_at"]),
        "never" if token["last_used_at"] is None else clock(token["last_used_at"]),
        _standing(token, revoke),
    ]
    return html.Tr([html.Td(cell) for cell in cells])


def _standing(token: TokenOut, revoke: Component) -> str | Component:
    """What a token is worth; one that is suspended may come back, so it can be revoked too."""
    if token["state"] == "suspended":
        return html.Span(["suspended", revoke])
    return revoke if token["state"] == "active" else token["state"]


def token_form(prefix: str, *, for_service: bool) -> html.Div:
    """Fields of a new token. `for_service`: with the service account that it is for."""
    user = dmc.Select(
        id=f"{prefix}-token-user",
        label="Service account",
        data=[],
        searchable=True,
        placeholder="whose token",
    )
    return html.Div(
        [
            html.Div(id=f"{prefix}-token-problem"),
            html.Div(
                [
                    *([user] if for_service else []),
                    dmc.TextInput(
                        id=f"{prefix}-token-name", label="Name", value="", placeholder="laptop"
                    ),
                    dmc.Select(
                        id=f"{prefix}-token-days",
                        label="Expires after",
                        data=[{"value": days, "label": words} for days, words in DAYS],
                        value="90",
                        allowDeselect=False,
                    ),
                ],
                className="form-row wide",
            ),
            dmc.MultiSelect(
                id=f"{prefix}-token-scopes",
                label="May only",
                data=[],
                value=[],
                placeholder="all its user may",
                clearable=True,
                searchable=True,
            ),
            dmc.Group([dmc.Button("Make token", id=f"{prefix}-token-make", n_clicks=0)], mt=4),
            html.Div(id=f"{prefix}-token-made"),
            dcc.Store(id=f"{prefix}-token-pressed"),
            dcc.Store(id=f"{prefix}-token-changed", data=0),
        ],
        className="form-stack",
        **submits(f"{prefix}-token-make"),
    )


def token_body(values: FormValues) -> RawBody:
    """The fields as the API's body."""
    body: RawBody = {"name": (values["name"] or "").strip()}
    if values.get("user"):
        body["user"] = values["user"]
    if values["scopes"]:
        body["scopes"] = values["scopes"]
    if values["days"]:
        body["expires_at"] = (datetime.now(UTC) + timedelta(days=int(values["days"]))).isoformat()
    return body


def made_token(made: TokenMadeOut) -> html.Div:
    """A new token, shown once."""
    return html.Div(
        [
            html.Div(f"The token {made['name']} is shown only now:", className="state-title"),
            html.Code(made["secret"], className="secret", tabIndex=0),
            html.Div(
                "Keep it like a password: who has it can do what its user may.", className="hint"
            ),
        ],
        className="told",
        role="status",
    )
