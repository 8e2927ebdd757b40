"""Tokens on the page of administration: those of users whom one manages."""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, Output, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN
from frontend.callbacks import Changes, answer
from frontend.components.cards import card, error_state, scrolls, skeleton
from frontend.components.next_step import leads
from frontend.components.tokens import token_form, token_table
from frontend.pages.account import register_tokens
from maat.vocabulary import UserKind

MAY_MANAGE = "tokens:manage"
SHOWN_AT_ONCE = 200


def cards() -> html.Div:
    return html.Div(
        [
            card("Tokens", scrolls("admin-tokens", skeleton(120), label="Tokens"), mb=12),
            html.Div(
                card("New token of a service account", token_form("admin", for_service=True)),
                id="admin-token-form",
            ),
        ],
        id="admin-tokens-part",
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_tokens, api),
        output={
            "tokens": Output("admin-tokens", "children"),
            "part": Output("admin-tokens-part", "style"),
            "users": Output("admin-token-user", "data"),
            "scopes": Output("admin-token-scopes", "data"),
        },
        inputs={
            "_changed": Input("admin-token-changed", "data"),
            "_users": Input("admin-changed", "data"),
        },
    )
    register_tokens(app, api, "admin", fields=("user", "name", "days", "scopes"))


async def show_tokens(api: Api, *, _changed: int, _users: int) -> Changes:
    try:
        async with api.visitor() as maat:
            me = await maat.me()
            if MAY_MANAGE not in me["permissions"]:
                return {"part": HIDDEN}
            tokens = await maat.tokens(limit=SHOWN_AT_ONCE)
            services = await maat.users(kind=UserKind.SERVICE, active=True)
    except Failure as error:
        return {"tokens": error_state(error), "part": SHOWN}
    return {
        "tokens": token_table(
            tokens,
            press_store="admin-token-pressed",
            whose=True,
            way=leads("Make a token", "/account"),
        ),
        "part": SHOWN,
        "users": [{"value": one["name"], "label": one["name"]} for one in services],
        "scopes": me["permissions"],
    }
