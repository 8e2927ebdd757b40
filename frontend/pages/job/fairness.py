"""The part of an ended job's page that says how it fared against itself alone."""

from __future__ import annotations

from functools import partial

from dash import Dash, Input, Output, State, html
from dash.development.base_component import Component, ComponentType

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, definition, facts, skeleton
from frontend.components.states import gpu_chip
from frontend.formatting import duration, number
from frontend.pages.fairness_parts import why
from maat.api.fairness import JobFairnessOut
from maat.client import ApiError
from maat.vocabulary import FairnessState

_WHAT = (
    "rho is the job's JCT over its JCT alone on an equal share of the cluster, by the throughput "
    "and efficiency that were measured of it. Above 1, an equal share would have been better. "
    "The page Fairness has the formula."
)
OPEN = (FairnessState.WAITING, FairnessState.WORKING)


def fairness_card() -> Component:
    return html.Div(
        card(
            "Finish-time fairness",
            html.Div(skeleton(60), id="job-fairness"),
            aside=definition("finish-time fairness", text_id="job-fairness-definition"),
        ),
        id="job-fairness-card",
        style=HIDDEN,
    )


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show, api),
        output={
            "told": Output("job-fairness", "children"),
            "definition": Output("job-fairness-definition", "children"),
            "style": Output("job-fairness-card", "style"),
        },
        inputs={"_live": Input("live", "data"), "over": Input("job-over", "data")},
        state={"job_id": State("job-id", "data"), "told": State("job-fairness", "children")},
    )


async def show(api: Api, *, _live: object, over: bool, job_id: str, told: object) -> Changes:
    """Show it once the job is over, until it is known."""
    if not over or isinstance(told, list):
        return NOTHING
    try:
        async with api.visitor() as maat:
            found = await maat.job_fairness(job_id)
    except Failure as error:
        if isinstance(error, ApiError) and error.status in (403, 404):
            return {"style": HIDDEN}
        return NOTHING
    waits = found["state"] in OPEN
    content = html.Div(found["sentence"], className="hint") if waits else parts_of(found)
    return {"told": content, "definition": _WHAT, "style": {}}


def parts_of(found: JobFairnessOut) -> list[Component]:
    """What is known, as a list: it is asked for no more."""
    if found["rho"] is None:
        return [html.Div(found["sentence"], className="hint")]
    alone: list[Component] = [
        html.Div([gpu_chip(kind), html.Span(duration(seconds))], className="on-a-line")
        for kind, seconds in (found["isolated_seconds"] or {}).items()
    ]
    pairs: list[tuple[str, ComponentType]] = [
        ("rho", number(found["rho"])),
        ("JCT", duration(found["jct_seconds"])),
        ("Alone, on average", duration(found["baseline_seconds"])),
        ("Alone, by type", html.Div(alone)),
        ("Active jobs, on average", number(found["contention"])),
        ("Formula", f"{found['rule']}, version {found['formula_version']}"),
    ]
    return [
        html.Div(found["sentence"]),
        facts(pairs),
        html.Div(why(found["why"]), className="hint"),
    ]
