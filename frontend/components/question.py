"""A question what would happen, followed until it is answered: progress, a first answer, Cancel.

A page puts `question_buttons` and `question_answer` into its layout, and asks with a callback that
has the outputs `told_outputs(prefix)` and answers with `begun` or `over`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, Props
from frontend.callbacks import Changes, answer
from frontend.components.cards import refused_state
from frontend.components.operations import progress
from maat.api.forecasts import ForecastOut
from maat.client import calls

BEAT_MILLISECONDS = 400
CANCELLED = "The forecast was cancelled."
CANCELLED_EARLY = "It was cancelled: this is what was known until then."
Show: TypeAlias = Callable[[ForecastOut], Sequence[Component]]


class Asked(TypedDict):
    """The question that is being answered."""

    forecast: str
    operation: str


def question_buttons(prefix: str, *, ask: str) -> Component:
    asks: Props = {"data-asks": ""}
    buttons = [
        dmc.Button(ask, id=f"{prefix}-ask", variant="default", **asks),
        dmc.Button("Cancel", id=f"{prefix}-cancel", variant="subtle", style=HIDDEN),
    ]
    row: Component = dmc.Group(buttons, gap=8, mt=12)
    return row


def question_answer(prefix: str, *, hint: str) -> html.Div:
    """The place of the answer, and what follows the question. `hint`: before it is asked."""
    return html.Div(
        [
            html.Div(
                "The form has changed since this was asked: ask again.",
                id=f"{prefix}-changed",
                className="sentence changed-since",
                hidden=True,
            ),
            html.Div(html.Div(hint, className="hint"), id=prefix, role="status"),
            dcc.Store(id=f"{prefix}-asked"),
            dcc.Interval(id=f"{prefix}-beat", interval=BEAT_MILLISECONDS, disabled=True),
        ]
    )


def told_outputs(prefix: str) -> dict[str, Output]:
    """What `begun` and `over` change."""
    return {
        "told": Output(prefix, "children", allow_duplicate=True),
        "asked": Output(f"{prefix}-asked", "data", allow_duplicate=True),
        "still": Output(f"{prefix}-beat", "disabled", allow_duplicate=True),
        "cancel": Output(f"{prefix}-cancel", "style", allow_duplicate=True),
    }


def asking(prefix: str) -> list[tuple[Output, object, object]]:
    """What shows that the button has been pressed, while the question is on its way."""
    return [(Output(f"{prefix}-ask", "loading"), True, False)]


def register_question(app: Dash, api: Api, prefix: str, show: Show) -> None:
    """Follow what was asked. `show`: the answer as far as it is known; nothing before the first."""
    answer(
        app,
        partial(follow, api, prefix, show),
        output=told_outputs(prefix),
        inputs={
            "_beat": Input(f"{prefix}-beat", "n_intervals"),
            "_cancel": Input(f"{prefix}-cancel", "n_clicks"),
        },
        state={"asked": State(f"{prefix}-asked", "data")},
        prevent_initial_call=True,
    )


async def follow(
    api: Api, prefix: str, show: Show, *, _beat: object, _cancel: object, asked: Asked | None
) -> Changes:
    """Show how far it is, and below it the answer as far as it is known."""
    if asked is None:
        return {"still": True}
    try:
        async with api.visitor() as maat:
            if ctx.triggered_id == f"{prefix}-cancel":
                await maat.cancel_operation(asked["operation"])
            operation = await maat.send(calls.operation(asked["operation"]))
            how_far = progress(operation, failed="The forecast failed")
            if operation["state"] == "failed":
                return over(how_far)
            found = await maat.forecast(asked["forecast"])
    except Failure as error:
        return over(refused_state(error))
    if operation["state"] in ("queued", "running"):
        return {"told": html.Div([how_far, *(show(found) if found["draws"] else ())])}
    early = operation["state"] == "cancelled" and found["draws"]
    note = [html.Div(CANCELLED_EARLY, className="hint")] if early else []
    return over(html.Div([*note, *show(found)]))


def begun(asked: ForecastOut) -> Changes:
    return {
        "told": html.Div("Playing the cluster on …", className="hint"),
        "asked": Asked(forecast=asked["id"], operation=asked["operation_id"]),
        "still": False,
        "cancel": {},
    }


def over(content: Component | None) -> Changes:
    """Show this, and follow no question any more."""
    return {"told": content, "asked": None, "still": True, "cancel": HIDDEN}
