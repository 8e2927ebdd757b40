"""What a simulation's page shows of the service's answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import dash_mantine_components as dmc
import plotly.graph_objects as go
from dash import Dash, Input, Output, State, ctx, html

from frontend.api import Api, Failure, error_message
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components import conditions, fairness_rule
from frontend.components.again import simulation_again
from frontend.components.cards import error_state, facts, link_button, missing
from frontend.components.operations import actions, progress
from frontend.components.states import FINAL_STATES, state_chip
from frontend.figures.over_time import (
    efficiency_figure,
    gpus_figure,
    nodes_figure,
    slowdowns_figure,
    waits_figure,
)
from frontend.figures.simulation import (
    contention_figure,
    fairness_figure,
    gpu_hours_figure,
    jct_figure,
)
from frontend.figures.spending import decision_time_figure, model_hours_figure
from frontend.formatting import ABSENT
from frontend.loading import failed_figure, loaded
from frontend.pages.simulation import side_by_side
from frontend.pages.simulation.layout import HEIGHT
from frontend.pages.simulation.tables import (
    drawn_runs,
    drawn_words,
    fairness_words,
    least_fair,
    notes,
    runs_table,
    unfinished_words,
)
from frontend.routing import cluster_output, title_output
from frontend.runs import left_out_words, named_measurements, replayed_cluster, run_names
from maat.api.operations import OperationOut
from maat.api.simulation_answers import FiguresOut, RunOut, SimulationOut
from maat.client import ApiError, AsyncClient, calls
from maat.figures.base import error_figure
from maat.vocabulary import FairnessRule

FIGURES: Mapping[str, Callable[..., go.Figure]] = {
    "simulation-jct": partial(jct_figure, height=HEIGHT),
    "simulation-rho": partial(fairness_figure, height=HEIGHT),
    "simulation-hours": partial(gpu_hours_figure, height=HEIGHT),
    "simulation-contention": partial(contention_figure, height=side_by_side.HEIGHT),
    "simulation-gpus": partial(gpus_figure, height=HEIGHT),
    "simulation-efficiency": partial(efficiency_figure, height=HEIGHT),
    "simulation-waits": partial(waits_figure, height=HEIGHT),
    "simulation-slowdowns": partial(slowdowns_figure, height=HEIGHT),
    "simulation-nodes": partial(nodes_figure, height=HEIGHT),
    "simulation-decisions": partial(decision_time_figure, height=HEIGHT),
    "simulation-model-hours": model_hours_figure,
}
# The element that awaits a definition, and which of the result's definitions it joins.
DEFINED = {
    "define-comparison": ("comparison",),
    "define-jct": ("jct",),
    "define-rho": ("rho",),
    "define-fairness": ("worst_rho", "unfair_fraction", "rho"),
    "define-hours": ("comparison",),
    "define-decisions": ("policy_seconds",),
    "define-contention": ("comparison",),
}
# Texts and tables that a failed answer empties.
PARTS = ("table", "request", "drawn", "left-out", "notes", "unfinished", "rule-words", "fairness")


def register(app: Dash, api: Api) -> None:
    parts = ("head", "actions", "progress", *PARTS)
    answer(
        app,
        partial(show, api),
        output={
            "cluster": cluster_output("simulation"),
            "title": title_output("simulation"),
            "body": Output("simulation-body", "style"),
            **{name: Output(f"simulation-{name}", "children") for name in parts},
            "figures": {figure_id: Output(figure_id, "figure") for figure_id in FIGURES},
            "definitions": {text_id: Output(text_id, "children") for text_id in DEFINED},
            "seen": Output("simulation-seen", "data"),
        },
        inputs={
            "_live": Input("live", "data"),
            "scheme": Input("scheme", "data"),
            "_cancelling": Input("simulation-cancelling", "data"),
            "chosen_rule": Input("simulation-rule", "value"),
        },
        state={
            "simulation_id": State("simulation-id", "data"),
            "seen": State("simulation-seen", "data"),
        },
    )


async def show(
    api: Api,
    *,
    _live: object,
    scheme: str | None,
    _cancelling: object,
    chosen_rule: str | None,
    simulation_id: str,
    seen: str,
) -> Changes:
    """Show the progress on every beat.

    The results change only when another run has finished, or the colours or the rule of fairness
    have changed.
    """
    if not scheme or (seen.startswith("over") and ctx.triggered_id == "live"):
        return NOTHING
    rule = fairness_rule.asked(chosen_rule)
    try:
        async with api.visitor() as maat:
            simulation = await maat.send(calls.simulation(simulation_id))
            operation = await maat.operation(simulation["operation_id"])
            done = [run for run in simulation["runs"] if run["state"] == "succeeded"]
            drawn = drawn_runs(done)
            mark = _mark(operation, done, scheme, rule)
            found = None
            if mark != seen:
                found = await loaded(_figures(maat, simulation_id, drawn, rule))
    except Failure as error:
        return failed(error, scheme)
    progressed = {**_progress(simulation, operation), "drawn": drawn_words(drawn, done)}
    if found is None:
        return progressed
    if found.failure:
        figure = failed_figure(scheme, height=HEIGHT)(found.failure)
        return {**progressed, "figures": dict.fromkeys(FIGURES, figure), "seen": "failed"}
    return {**progressed, **_results(found(), drawn, scheme, rule), "seen": mark}


def _mark(operation: OperationOut, done: Sequence[RunOut], scheme: str, rule: FairnessRule) -> str:
    """Return what the results depend on, as a text that changes with it."""
    state = "over" if operation["state"] in FINAL_STATES else "running"
    return f"{state}:{len(done)}{scheme}{rule}"


async def _figures(
    maat: AsyncClient, simulation_id: str, drawn: Sequence[RunOut], rule: FairnessRule
) -> FiguresOut:
    runs = [run["id"] for run in drawn]
    return await maat.send(calls.figures(simulation_id, runs=runs, fairness_rule=rule))


def _progress(simulation: SimulationOut, operation: OperationOut) -> Changes:
    """Return what a beat shows, whether or not another run has finished."""
    name = simulation["name"] or simulation["id"]
    title = html.H1(name, className="page-title")
    return {
        "title": f"{name} · Simulation",
        "cluster": replayed_cluster(simulation["request"]),
        "body": {},
        "head": dmc.Group([title, state_chip(operation["state"])], gap=12),
        "actions": actions(
            "simulation",
            operation,
            "New simulation",
            "/simulate",
            same=simulation_again(simulation["request"]),
        ),
        "progress": progress(operation, failed="The simulation failed"),
        "table": runs_table(simulation["runs"]),
        "request": _request(simulation),
        "left-out": [
            html.Div(left_out_words(simulation["request"])),
            *notes(simulation["runs"], left_out=True),
        ],
        "notes": notes(simulation["runs"], left_out=False),
    }


def _results(
    found: FiguresOut, drawn: Sequence[RunOut], scheme: str, rule: FairnessRule
) -> Changes:
    runs = dict(zip(run_names(drawn), found["runs"], strict=True)) if drawn else {}
    return {
        "unfinished": unfinished_words(runs),
        "rule-words": fairness_words(rule),
        "fairness": least_fair(runs),
        "figures": {name: draw(runs, scheme=scheme) for name, draw in FIGURES.items()},
        "definitions": _definitions(found["definitions"]),
    }


def _definitions(known: Mapping[str, str]) -> dict[str, str]:
    """Return a text for every button; none before the first run has finished.

    The texts come with the results, because the code that computed them wrote them.
    """
    if not known:
        return {}
    return {
        text_id: "\n\n".join(known[name] for name in names if name in known)
        for text_id, names in DEFINED.items()
    }


def _request(simulation: SimulationOut) -> html.Dl:
    request = simulation["request"]
    traces = request["traces"]
    told = [conditions.trace_words(trace) for trace in traces]
    return facts(
        [
            ("Traces" if len(told) > 1 else "Trace", "; ".join(told)),
            ("Cluster", request["cluster"]),
            ("Fidelity", request.get("fidelity") or ABSENT),
            *conditions.describe(request, named_measurements(simulation["measurements"])),
        ]
    )


def failed(error: Exception, scheme: str) -> Changes:
    """Return what to show of a failure. A simulation that does not exist has no panels."""
    empty = dict.fromkeys(PARTS, "")
    if isinstance(error, ApiError) and error.status == 404:
        absent = missing(
            "No such simulation",
            "It may belong to another tenant, or the link is mistyped.",
            "All simulations",
            "/simulate",
        )
        return {
            **empty,
            "body": HIDDEN,
            "head": "",
            "actions": None,
            "progress": absent,
            "seen": "over:missing",
        }
    title, remedy = error_message(error)
    return {
        **empty,
        "body": {},
        "head": html.H1(title, className="page-title"),
        "actions": link_button("All simulations", "/simulate"),
        "progress": None,
        "table": error_state(error),
        "figures": dict.fromkeys(FIGURES, error_figure(scheme, title, remedy, height=HEIGHT)),
        "seen": "failed",
    }
