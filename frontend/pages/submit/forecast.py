"""The forecast beside the submit form: when the job would start and end, and whom it would slow."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, refused_state
from frontend.components.forecast import allocations, rests_on, slowed_lines, words
from frontend.components.operations import progress
from frontend.pages.submit.given import Given, form_sources, given_job, without_secrets
from maat.api.forecasts import ForecastOut, grounds_in_words
from maat.client import calls

BEAT_MILLISECONDS = 400
_NAME = "new job"
_HINT = "When it would start and end if it were submitted now, and whom it would slow down."
_CANCELLED = "The forecast was cancelled."
_UNKNOWN = (
    "It cannot be foretold: nobody knows how much work it has. Give “Work (effective samples)”, "
    "or wait until the job has run for a while."
)


class Asked(TypedDict):
    """The question that is being answered."""

    forecast: str
    operation: str


def forecast_card() -> Component:
    buttons = [
        dmc.Button("Forecast", id="submit-forecast-ask", variant="default"),
        dmc.Button(
            "Cancel",
            id="submit-forecast-cancel",
            variant="subtle",
            style={"display": "none"},
        ),
    ]
    return card(
        "Forecast",
        [
            html.Div(html.Div(_HINT, className="hint"), id="submit-forecast", role="status"),
            dmc.Group(buttons, gap=8, mt=12),
            dcc.Store(id="submit-forecast-asked"),
            dcc.Interval(id="submit-forecast-beat", interval=BEAT_MILLISECONDS, disabled=True),
        ],
    )


def register(app: Dash, api: Api) -> None:
    output = {
        "told": Output("submit-forecast", "children", allow_duplicate=True),
        "asked": Output("submit-forecast-asked", "data", allow_duplicate=True),
        "still": Output("submit-forecast-beat", "disabled", allow_duplicate=True),
        "cancel": Output("submit-forecast-cancel", "style", allow_duplicate=True),
    }
    answer(
        app,
        partial(ask, api),
        output=output,
        inputs={"clicks": Input("submit-forecast-ask", "n_clicks")},
        state={"given": form_sources(State)},
        prevent_initial_call=True,
        running=[(Output("submit-forecast-ask", "loading"), True, False)],
    )
    answer(
        app,
        partial(follow, api),
        output=output,
        inputs={
            "_beat": Input("submit-forecast-beat", "n_intervals"),
            "_cancel": Input("submit-forecast-cancel", "n_clicks"),
        },
        state={"asked": State("submit-forecast-asked", "data")},
        prevent_initial_call=True,
    )


async def ask(api: Api, *, clicks: int | None, given: Given) -> Changes:
    """Ask for the job of the form; what is wrong with it is said here as when it is submitted."""
    if not clicks:
        return NOTHING
    job = given_job(given, name=_NAME)
    if job.wrong:
        first = next(iter(job.wrong.values()))
        return _over(html.Div(f"Fill in the form first: {first}", className="hint"))
    body = without_secrets(job.body)
    try:
        async with api.visitor() as maat:
            found = await maat.ask_forecast({"job": body})
    except Failure as error:
        return _over(refused_state(error))
    return {
        "told": html.Div("Playing the cluster on …", className="hint"),
        "asked": Asked(forecast=found["id"], operation=found["operation_id"]),
        "still": False,
        "cancel": {},
    }


async def follow(api: Api, *, _beat: object, _cancel: object, asked: Asked | None) -> Changes:
    """Show how far it is, and below it the answer as far as it is known."""
    if asked is None:
        return {"still": True}
    try:
        async with api.visitor() as maat:
            if ctx.triggered_id == "submit-forecast-cancel":
                await maat.cancel_operation(asked["operation"])
            operation = await maat.send(calls.operation(asked["operation"]))
            how_far = progress(operation, failed="The forecast failed")
            if operation["state"] == "failed":
                return _over(how_far)
            found = await maat.forecast(asked["forecast"])
    except Failure as error:
        return _over(refused_state(error))
    if operation["state"] in ("queued", "running"):
        return {"told": html.Div([how_far, *(parts_of(found) if found["job"] else ())])}
    return _over(html.Div(parts_of(found)))


def _over(content: Component | None) -> Changes:
    return {"told": content, "asked": None, "still": True, "cancel": {"display": "none"}}


def parts_of(found: ForecastOut) -> list[Component]:
    """The times of the job, what it would hold, and who would end later."""
    times = found["job"]
    if times is None:
        cancelled = found["state"] == "cancelled"
        return [html.Div(_CANCELLED if cancelled else _UNKNOWN, className="hint")]
    draws = found["draws"] or 0
    return [
        html.Div(words(times, draws), className="sentence"),
        html.Div(grounds_in_words(times["basis"], times["precedents"]), className="hint"),
        allocations(times),
        html.B("Who ends later or earlier"),
        slowed_lines(found["slowed"] or [], draws),
        *(html.Div(note, className="hint") for note in found["notes"] or ()),
        html.Div(f"{rests_on(draws)}, as of now.", className="hint"),
    ]
