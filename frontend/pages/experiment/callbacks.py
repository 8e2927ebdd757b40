"""Draws an experiment as it comes, and saves its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html

from frontend.api import Api, Failure, error_message
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.again import experiment_again
from frontend.components.cards import link_button, missing
from frontend.components.notices import refusal
from frontend.components.operations import actions, progress
from frontend.components.states import state_chip
from frontend.figures.experiments import (
    cost_figure,
    efficiency_figure,
    nodes_figure,
    scores_figure,
    trials_figure,
)
from frontend.pages.experiment.layout import BELOW, EXPERIMENT, FIGURES, SAVED, TABLES, UNSHOWN
from frontend.pages.experiment.tables import (
    best_table,
    request_facts,
    runs_csv,
    runs_table,
    searches_csv,
    searches_table,
    trials_csv,
    verdict,
)
from frontend.routing import title_output
from maat.api.experiments import ExperimentDetail
from maat.client import ApiError, calls

DRAWN: Mapping[str, Callable[..., object]] = {
    "nodes": nodes_figure,
    "efficiency": efficiency_figure,
    "cost": cost_figure,
    "trials": trials_figure,
    "scores": scores_figure,
}
LISTED: Mapping[str, Callable[..., object]] = {
    "runs": runs_table,
    "searches": searches_table,
    "best": best_table,
}
TEXTS: Mapping[str, Callable[..., str]] = {
    "runs": runs_csv,
    "searches": searches_csv,
    "best": trials_csv,
}
HEAD = ("head", "actions", "progress", "verdict", "request")
# Tables that are not shown: without their skeletons, which move unseen.
_NO_TABLES = dict.fromkeys(LISTED, "")


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show, api),
        output={
            "title": title_output(EXPERIMENT),
            **{name: Output(f"experiment-{name}", "children") for name in (*HEAD, *LISTED)},
            **{name: Output(f"experiment-{name}", "figure") for name in DRAWN},
            **{name: Output(f"experiment-{name}", "style") for name in (*FIGURES, "asked")},
        },
        inputs={
            "_live": Input("live", "data"),
            "scheme": Input("scheme", "data"),
            "_cancelling": Input("experiment-cancelling", "data"),
        },
        state={"experiment_id": State("experiment-id", "data")},
    )
    for name in SAVED:
        answer(
            app,
            partial(save, api, name),
            output={
                "file": Output("experiment-file", "data", allow_duplicate=True),
                "notices": NOTICES,
            },
            inputs={"clicks": Input(f"experiment-{name}-csv", "n_clicks")},
            state={"experiment_id": State("experiment-id", "data")},
            prevent_initial_call=True,
        )


async def show(
    api: Api, *, _live: object, scheme: str | None, _cancelling: object, experiment_id: str
) -> Changes:
    if not scheme:
        return NOTHING
    try:
        async with api.visitor() as maat:
            found = await maat.send(calls.experiment(experiment_id))
            operation = await maat.operation(found["operation_id"])
    except Failure as error:
        return failed(error)
    kind, name = found["kind"], found["name"] or experiment_id
    title = html.H1(name, className="page-title")
    same = experiment_again(kind, found["request"])
    return {
        "title": f"{name} · Experiment",
        "head": dmc.Group([title, state_chip(found["state"])], gap=12),
        "actions": actions(
            EXPERIMENT, operation, "New experiment", f"/experiments?kind={kind}", same=same
        ),
        "progress": progress(operation, failed="A run failed"),
        "verdict": verdict(found),
        "request": request_facts(found),
        **_NO_TABLES,
        **parts_of(found, scheme),
        **{other: {} if other == kind else UNSHOWN for other in FIGURES},
        "asked": BELOW,
    }


def parts_of(found: ExperimentDetail, scheme: str) -> dict[str, object]:
    """Return the figures and tables of its kind."""
    kind, runs = found["kind"], found["runs"]
    return {
        **{name: DRAWN[name](runs, scheme=scheme) for _, name in FIGURES[kind]},
        **{name: LISTED[name](runs) for _, name, _ in TABLES[kind]},
    }


async def save(api: Api, name: str, *, clicks: int | None, experiment_id: str) -> Changes:
    """Send a table of the page as a file."""
    if not clicks:
        return NOTHING
    try:
        async with api.visitor() as maat:
            found = await maat.send(calls.experiment(experiment_id))
    except Failure as error:
        return {"notices": refusal(error)}
    if name not in (table for _, table, _ in TABLES[found["kind"]]):
        return NOTHING
    text = TEXTS[name](found["runs"])
    what = SAVED[name].replace(" ", "-")
    return {"file": {"content": text, "filename": f"{found['id']}-{what}.csv", "type": "text/csv"}}


def failed(error: Exception) -> Changes:
    """Return what to show of a failure."""
    hidden = dict.fromkeys((*FIGURES, "asked"), UNSHOWN)
    empty = {"actions": None, "verdict": "", "request": "", **_NO_TABLES, **hidden}
    if isinstance(error, ApiError) and error.status == 404:
        absent = missing(
            "No such experiment",
            "It may belong to another tenant, or the link is mistyped.",
            "All experiments",
            "/experiments",
        )
        return {**empty, "head": "", "progress": absent}
    title, remedy = error_message(error)
    return {
        **empty,
        "head": html.H1(title, className="page-title"),
        "progress": html.Div(remedy, className="hint"),
        "actions": link_button("All experiments", "/experiments"),
    }
