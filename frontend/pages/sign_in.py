"""The page where people sign in; everybody may see it."""

from __future__ import annotations

from functools import partial
from urllib.parse import parse_qsl, urlencode

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html

from frontend.addresses import add_page
from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN, submits
from frontend.callbacks import Changes, answer, in_browser
from frontend.components.cards import error_state, page_title
from frontend.routing import QueryValue, query_value
from maat.client import calls

# Of a sign-in at the provider: what happened, in the words of who reads it.
REFUSED = {
    "cancelled": "The provider did not sign you in. Try again, or ask who runs it.",
    "expired": "This sign-in took too long, or began in another browser. Begin again.",
    "provider": "The provider gives no usable answer. Try again in a moment, or ask an "
    "administrator of Maat.",
    "token": "The provider's answer could not be trusted, so nobody was signed in. Tell an "
    "administrator of Maat.",
    "unknown": "The provider knows you, and Maat does not let you in. Ask an administrator "
    "of Maat.",
    "bad_name": "The provider gives you a name that Maat does not take. Ask an administrator "
    "of Maat.",
    "name_taken": "Maat has another user of your name. Ask an administrator of Maat.",
}


def layout(
    refused: QueryValue = None,
    **_query: object,
) -> html.Div:
    told = REFUSED.get(query_value(refused) or "", "")
    return html.Div(
        html.Div(
            [
                page_title("Sign in"),
                dmc.Paper(
                    [html.Div(id="sign-in-ways"), _form(told), _without_signing_in()],
                    className="card",
                ),
            ],
            className="sign-in",
        ),
        id="sign-in-page",
    )


def _form(told: str) -> html.Div:
    return html.Div(
        [
            dmc.TextInput(id="sign-in-name", label="Name", value="", autoComplete="username"),
            dmc.PasswordInput(
                id="sign-in-password", label="Password", value="", autoComplete="current-password"
            ),
            html.Div(told, id="sign-in-problem", className="form-error", role="alert"),
            dmc.Button("Sign in", id="sign-in-button", n_clicks=0, fullWidth=True),
        ],
        className="form-stack",
        **submits("sign-in-button"),
    )


def _without_signing_in() -> html.Div:
    """The way of who runs Maat on this machine; hidden elsewhere."""
    return html.Div(
        [
            html.Div("or", className="hint middle"),
            dmc.Button(
                "Continue as the local administrator",
                id="sign-in-local-button",
                n_clicks=0,
                variant="default",
                fullWidth=True,
            ),
            html.Div(id="sign-in-local-problem", className="form-error", role="alert"),
        ],
        id="sign-in-local",
        className="form-stack",
        style=HIDDEN,
    )


def register(app: Dash, api: Api) -> None:
    add_page(__name__, path="/sign-in", title="Sign in", layout=layout)
    answer(
        app,
        partial(show_ways, api),
        output={
            "ways": Output("sign-in-ways", "children"),
            "local": Output("sign-in-local", "style"),
        },
        inputs={"_page": Input("sign-in-page", "id")},
        state={"search": State("here", "search")},
    )
    in_browser(app, "focusOn", Output("sign-in-page", "title"), Input("sign-in-name", "id"))
    in_browser(
        app,
        "signIn",
        Output("sign-in-problem", "children"),
        Input("sign-in-button", "n_clicks"),
        State("sign-in-name", "value"),
        State("sign-in-password", "value"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "goOnLocally",
        Output("sign-in-local-problem", "children"),
        Input("sign-in-local-button", "n_clicks"),
        prevent_initial_call=True,
    )


async def show_ways(api: Api, *, _page: str, search: str | None) -> Changes:
    """Offer the provider, if there is one, or say why nobody can sign in at this address.

    Who runs Maat on this machine is offered to go on without signing in.
    """
    try:
        async with api.visitor() as maat:
            ways = await maat.send(calls.sign_in_ways())
    except Failure as error:
        return {"ways": error_state(error), "local": HIDDEN}
    local = SHOWN if ways["local"] else HIDDEN
    if ways["problem"]:
        told = html.Div(ways["problem"], className="address-note", role="alert")
        return {"ways": told, "local": local}
    if not ways["oidc"]:
        return {"ways": None, "local": local}
    address = f"/api/v1/sign-in/oidc?{urlencode({'next': _next_of(search)})}"
    link = html.A(ways["oidc"], href=address, className="button-link primary wide")
    offered = html.Div([link, html.Div("or", className="hint middle")])
    return {"ways": offered, "local": local}


def _next_of(search: str | None) -> str:
    """Return the page to come back to; the service checks that it is one of Maat's."""
    given = dict(parse_qsl((search or "").lstrip("?")))
    return given.get("next", "/")
