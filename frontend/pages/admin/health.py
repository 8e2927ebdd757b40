"""What Maat needs and has, on the page of administration: what is missing, and the remedy."""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, Output, dcc, html

from frontend.api import Api, Failure
from frontend.callbacks import Changes, answer
from frontend.components.cards import card, error_state
from maat.client import ApiError

EVERY_MILLISECONDS = 15_000
NOT_READY = 503


def cards() -> html.Div:
    return html.Div(
        [
            card("Health", html.Div(id="admin-health", role="status"), mb=12),
            dcc.Interval(id="admin-health-tick", interval=EVERY_MILLISECONDS),
        ]
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_health, api),
        output={"health": Output("admin-health", "children")},
        inputs={"_tick": Input("admin-health-tick", "n_intervals")},
    )


async def show_health(api: Api, *, _tick: object) -> Changes:
    try:
        async with api.visitor() as maat:
            found = await maat.ready()
    except Failure as error:
        if not isinstance(error, ApiError) or error.status != NOT_READY or not error.errors:
            return {"health": error_state(error)}
        rows = [html.Li([html.B(f"{one.field}: "), one.sentence]) for one in error.errors]
        return {"health": html.Div([html.Div("⚠ Something is missing:"), html.Ul(rows)])}
    return {"health": f"✓ All is there: {', '.join(found['checked'])}."}
