"""The forecast beside the submit form: when the job would start and end, and whom it would slow."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state
from frontend.components.forecast import allocations, slowed_lines, words
from frontend.components.operations import progress
from frontend.forms import FormValues
from frontend.pages.submit.fields import field_id
from frontend.pages.submit.model import (
    FIELDS,
    Capacity,
    Model,
    body_of,
    named_model,
    unfinished,
)
from maat.api.forecasts import ForecastOut
from maat.client import calls

BEAT_MILLISECONDS = 400
_NAME = "new job"
_HINT = "When it would start and end if it were submitted now, and whom it would slow down."


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
        className="span-12",
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
        state={
            "values": {name: State(field_id(name), "value") for name in FIELDS},
            "preemptible": State("submit-preemptible", "checked"),
            "cluster_id": State("cluster-select", "value"),
            "models": State("submit-models", "data"),
            "capacity": State("submit-capacity", "data"),
        },
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


async def ask(
    api: Api,
    *,
    clicks: int | None,
    values: FormValues,
    preemptible: bool,
    cluster_id: str | None,
    models: list[Model],
    capacity: Capacity | None,
) -> Changes:
    """Ask for the job of the form; what is wrong with it is said here as when it is submitted."""
    if not clicks:
        return NOTHING
    values = {**values, "name": values["name"] or _NAME}
    model = named_model(models, values["model"])
    wrong = unfinished(values, model, capacity)
    if wrong:
        first = next(iter(wrong.values()))
        return _over(html.Div(f"Fill in the form first: {first}", className="hint"))
    own_batch = None if model is None else model["initial_batch_size"]
    body = body_of(values, preemptible=preemptible, cluster_id=cluster_id, own_batch=own_batch)
    try:
        async with api.visitor() as maat:
            found = await maat.ask_forecast({"job": body})
    except Failure as error:
        return _over(error_state(error))
    return {
        "told": html.Div("Playing the cluster on …", className="hint"),
        "asked": Asked(forecast=found["id"], operation=found["operation_id"]),
        "still": False,
        "cancel": {},
    }


async def follow(api: Api, *, _beat: object, _cancel: object, asked: Asked | None) -> Changes:
    """Show how far it is, and the answer once there is one."""
    if asked is None:
        return {"still": True}
    try:
        async with api.visitor() as maat:
            if ctx.triggered_id == "submit-forecast-cancel":
                await maat.cancel_operation(asked["operation"])
            operation = await maat.send(calls.operation(asked["operation"]))
            if operation["state"] in ("queued", "running"):
                return {"told": progress(operation, failed="The forecast failed")}
            if operation["state"] == "failed":
                return _over(progress(operation, failed="The forecast failed"))
            found = await maat.forecast(asked["forecast"])
    except Failure as error:
        return _over(error_state(error))
    return _over(html.Div(parts_of(found)))


def _over(content: Component | None) -> Changes:
    return {"told": content, "asked": None, "still": True, "cancel": {"display": "none"}}


def parts_of(found: ForecastOut) -> list[Component]:
    """The times of the job, what it would hold, and who would end later."""
    times = found["job"]
    if times is None:
        return [html.Div("The forecast was cancelled.", className="hint")]
    return [
        html.Div(words(times), className="sentence"),
        allocations(times),
        html.B("Who is slowed"),
        slowed_lines(found["slowed"] or []),
        html.Div(f"From {found['draws']} draws, as of now.", className="hint"),
    ]
