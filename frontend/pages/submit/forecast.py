"""The forecast beside the submit form: when the job would start and end, and whom it would slow."""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, refused_state
from frontend.components.forecast import allocations, rests_on, slowed_lines, words
from frontend.components.question import (
    CANCELLED,
    asking,
    begun,
    over,
    question_answer,
    question_buttons,
    register_question,
    told_outputs,
)
from frontend.pages.submit.given import Given, form_sources, given_job, without_secrets
from maat.api.forecasts import ForecastOut, grounds_in_words

PREFIX = "submit-forecast"
_NAME = "new job"
_HINT = "When it would start and end if it were submitted now, and whom it would slow down."
_UNKNOWN = (
    "It cannot be foretold: nobody knows how much work it has. Give “Work (effective samples)”, "
    "or wait until the job has run for a while."
)


def forecast_card() -> Component:
    content = [question_answer(PREFIX, hint=_HINT), question_buttons(PREFIX, ask="Forecast")]
    return card("Forecast", content)


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(ask, api),
        output=told_outputs(PREFIX),
        inputs={"clicks": Input(f"{PREFIX}-ask", "n_clicks")},
        state={"given": form_sources(State)},
        prevent_initial_call=True,
        running=asking(PREFIX),
    )
    register_question(app, api, PREFIX, parts_of)


async def ask(api: Api, *, clicks: int | None, given: Given) -> Changes:
    """Ask for the job of the form; what is wrong with it is said here as when it is submitted."""
    if not clicks:
        return NOTHING
    job = given_job(given, name=_NAME)
    if job.wrong:
        first = next(iter(job.wrong.values()))
        return over(html.Div(f"Fill in the form first: {first}", className="hint"))
    body = without_secrets(job.body)
    try:
        async with api.visitor() as maat:
            found = await maat.ask_forecast({"job": body})
    except Failure as error:
        return over(refused_state(error))
    return begun(found)


def parts_of(found: ForecastOut) -> list[Component]:
    """The times of the job, what it would hold, and who would end later."""
    times = found["job"]
    if times is None:
        cancelled = found["state"] == "cancelled"
        return [html.Div(CANCELLED if cancelled else _UNKNOWN, className="hint")]
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
