"""Who looks at the pages: their name in the header, what the navigation offers them, the way out.

The service decides what they may do; the pages hide what it would refuse.
"""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN, described_by
from frontend.callbacks import Changes, answer, in_browser
from maat.api.service import MeOut
from maat.client import ApiError

MAY_ADMINISTER = "users:read"
SIGNED_OUT = 401
SIGN_IN = "/sign-in"


# What one does on a page, and the permission for it.
NEEDED = {
    "/submit": ("submit jobs", "jobs:submit"),
    "/simulate": ("run simulations", "simulations:run"),
    "/sweeps": ("run sweeps", "simulations:run"),
    "/experiments": ("run experiments", "simulations:run"),
    "/measurements": ("upload measurements", "measurements:write"),
}


class Told(TypedDict):
    """What the frame says of a visitor, by the names of the outputs of `show_visitor`."""

    name: str
    title: str
    link: dict[str, str]
    out: dict[str, str]


def visitor_parts(me: MeOut | None) -> list[Component]:
    """The link to the account, and the button that signs out, both hidden until it is known who."""
    told = _told_of(me) if me else Told(name="", title="", link=HIDDEN, out=HIDDEN)
    account = dcc.Link(
        told["name"],
        href="/account",
        id="visitor",
        className="visitor",
        title=told["title"],
        style=told["link"],
    )
    out = html.Button(
        "Sign out",
        id="sign-out",
        className="sign-out",
        n_clicks=0,
        style=told["out"],
    )
    return [account, out]


def visitor_stores(*, known: bool) -> list[Component]:
    """`known`: whether the frame says already who looks at it."""
    signed_out = dcc.Store(id="signed-out", data=False if known else None)
    return [signed_out, *(dcc.Store(id=name) for name in ("signed-out-since", "visitor-known"))]


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
            "rights": Output("rights-note", "children"),
            "over": Output("signed-out", "data"),
        },
        inputs={"path": Input("here", "pathname")},
        prevent_initial_call=True,  # who it is came with the HTML, or `here` learns its path
    )
    in_browser(
        app,
        "holdBack",
        Output({"with-right": ALL}, "disabled"),
        Output({"with-right": ALL}, "title"),
        Input("rights-note", "children"),
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
        prevent_initial_call=True,
    )


async def show_visitor(api: Api, *, path: str | None) -> Changes:
    """Say who looks at this page, and offer what they may."""
    if path == SIGN_IN:
        return {"link": HIDDEN, "out": HIDDEN, "admin": HIDDEN, "rights": ""}
    try:
        async with api.visitor() as maat:
            me = await maat.me()
    except Failure as error:
        hidden: Changes = {"link": HIDDEN, "out": HIDDEN, "admin": HIDDEN}
        return {**hidden, "over": is_signed_out(error)}
    return {
        **_told_of(me),
        "admin": SHOWN if MAY_ADMINISTER in me["permissions"] else HIDDEN,
        "rights": rights_words(me, path),
        "over": False,
    }


def rights_words(me: MeOut | None, path: str | None) -> str:
    """Say before a form is filled in that the service will refuse it; nothing if it will not."""
    doing, permission = NEEDED.get((path or "").rstrip("/"), ("", ""))
    if me is None or not permission or permission in me["permissions"]:
        return ""
    role = me["role"].replace("_", " ")
    return (
        f"You may look here, and not {doing}: the role {role} does not have the permission "
        f"{permission}. Ask who administers Maat."
    )


def rights_note(me: MeOut | None, path: str | None) -> html.Div:
    """Says what the visitor may not do on this page; empty where they may."""
    words = rights_words(me, path)
    return html.Div(words, id="rights-note", className="stale-note", role="status")


def with_right(button: dmc.Button) -> html.Fieldset:
    """Hold a button back where the note above says that the service would refuse what it does."""
    box_id = {"with-right": button.id}
    return html.Fieldset(button, id=box_id, className="with-right", **described_by("rights-note"))


def _told_of(me: MeOut) -> Told:
    return Told(
        name=me["user"],
        title=f"{me['role'].replace('_', ' ')} of {me['tenant']}",
        link=SHOWN,
        out=SHOWN if me["by"] == "session" else HIDDEN,
    )


def is_signed_out(error: Exception) -> bool:
    """Return whether the service no longer knows who asks."""
    return isinstance(error, ApiError) and error.status == SIGNED_OUT
