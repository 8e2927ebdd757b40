"""Who looks at the pages: their name in the header, what the navigation offers them, the way out.

The service decides what they may do; the pages hide what it would refuse.
"""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import Changes, answer
from frontend.routing import in_browser
from maat.client import ApiError

MAY_ADMINISTER = "users:read"
HIDDEN, SHOWN = {"display": "none"}, {"display": ""}
SIGNED_OUT = 401
SIGN_IN = "/sign-in"


def visitor_parts() -> list[Component]:
    """The link to the account, and the button that signs out, both hidden until it is known who."""
    account = dcc.Link("", href="/account", id="visitor", className="visitor", style=HIDDEN)
    out = html.Button(
        "Sign out",
        id="sign-out",
        className="sign-out",
        n_clicks=0,
        style=HIDDEN,
    )
    return [account, out]


def visitor_stores() -> list[Component]:
    stores = ("signed-out", "signed-out-since", "visitor-known")
    return [dcc.Store(id=name) for name in stores]


def register_visitor(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_visitor, api),
        output={
            "name": Output("visitor", "children"),
            "title": Output("visitor", "title"),
            "link": Output("visitor", "style"),
            "out": Output("sign-out", "style"),
            "admin": Output({"nav": "admin", "to": "/admin"}, "style"),
            "over": Output("signed-out", "data"),
        },
        inputs={"path": Input("here", "pathname")},
    )
    in_browser(
        app,
        "signOut",
        Output("sign-out", "title"),
        Input("sign-out", "n_clicks"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "signedOut",
        Output("visitor-known", "data"),
        Input("signed-out", "data"),
        Input("signed-out-since", "data"),
        State("here", "pathname"),
    )


async def show_visitor(api: Api, *, path: str | None) -> Changes:
    """Say who looks at this page, and offer what they may."""
    if path == SIGN_IN:
        return {"link": HIDDEN, "out": HIDDEN, "admin": HIDDEN}
    try:
        async with api.visitor() as maat:
            me = await maat.me()
    except Failure as error:
        hidden: Changes = {"link": HIDDEN, "out": HIDDEN, "admin": HIDDEN}
        return {**hidden, "over": is_signed_out(error)}
    return {
        "name": me["user"],
        "title": f"{me['role'].replace('_', ' ')} of {me['tenant']}",
        "link": SHOWN,
        "out": SHOWN if me["by"] == "session" else HIDDEN,
        "admin": SHOWN if MAY_ADMINISTER in me["permissions"] else HIDDEN,
        "over": False,
    }


def is_signed_out(error: Exception) -> bool:
    """Return whether the service no longer knows who asks."""
    return isinstance(error, ApiError) and error.status == SIGNED_OUT
