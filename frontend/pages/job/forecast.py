"""The part of a job's page that says when it starts and ends."""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, definition, skeleton
from frontend.components.forecast import allocations, rests_on, words
from frontend.formatting import clock
from maat.api.forecasts import JobForecastOut, grounds_in_words

_WHAT = (
    "The cluster is played on from now, many times, with its policy and with what is not known "
    "drawn by chance: the jobs to come, and how fast jobs are. In half of the draws it is not "
    "later than the first time, in nine of ten not later than P90. Times are cluster time."
)


def forecast_card() -> Component:
    return html.Div(
        card(
            "When",
            html.Div(skeleton(40), id="job-forecast"),
            aside=definition("forecast", text_id="job-forecast-definition"),
        ),
        id="job-forecast-card",
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show, api),
        output={
            "told": Output("job-forecast", "children"),
            "definition": Output("job-forecast-definition", "children"),
            "style": Output("job-forecast-card", "style"),
        },
        inputs={"_live": Input("live", "data"), "over": Input("job-over", "data")},
        state={"job_id": State("job-id", "data"), "style": State("job-forecast-card", "style")},
    )


async def show(
    api: Api, *, _live: object, over: bool, job_id: str, style: dict[str, str] | None
) -> Changes:
    """Show it on every beat until the job is over."""
    if over:
        return NOTHING if style == HIDDEN else {"style": HIDDEN}
    try:
        async with api.visitor() as maat:
            found = await maat.job_forecast(job_id)
    except Failure:
        return {"style": HIDDEN}
    if found["state"] == "ended":
        return {"style": HIDDEN}
    return {"told": parts_of(found), "definition": _WHAT, "style": {}}


def parts_of(found: JobForecastOut) -> list[Component]:
    """Start and end in words, the GPUs over time, and how old the forecast is."""
    times = found["times"]
    if times is None:
        return [html.Div(found["sentence"], className="hint")]
    draws = found["draws"] or 0
    made = f"{rests_on(draws)}, as of {clock(found['made_at'])}"
    return [
        html.Div(words(times, draws), className="sentence"),
        html.Div(grounds_in_words(times["basis"], times["precedents"]), className="hint"),
        allocations(times),
        html.Div(f"{made}, after round {found['round_number']}.", className="hint"),
    ]
