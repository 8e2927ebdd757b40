"""One simulation: its progress while it runs, then the comparison of its runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from frontend.api import Api, Failure, said
from frontend.components.cards import card, error_state, facts, graph, link_button, skeleton
from frontend.components.notices import notice, refusal
from frontend.components.states import state_chip
from frontend.figures.base import error_figure
from frontend.figures.simulation import contention_figure, fairness_figure, gpu_hours_figure, jct_figure
from frontend.formatting import ABSENT, number
from frontend.routing import add_page, aria, one
from maat.client import ApiError, AsyncClient, calls

HEIGHT = 270
OVER = frozenset({"succeeded", "failed", "cancelled"})
FIGURES = (jct_figure, fairness_figure, gpu_hours_figure, contention_figure)

# Field of a run's summary, heading with unit, digits, whether less is better.
COMPARED = (
    ("avg_jct_hours", "Mean JCT (h)", 3, True),
    ("median_jct_hours", "Median JCT (h)", 3, True),
    ("p99_jct_hours", "p99 JCT (h)", 3, True),
    ("makespan_hours", "Makespan (h)", 3, True),
    ("gpu_hours_per_job", "GPU-hours per job", 3, True),
    ("restarts_per_job", "Restarts per job", 2, True),
    ("contention_mean", "Mean contention", 3, True),
    ("policy_seconds_median", "Policy time (s)", 2, True),
)


def layout(simulation_id: Any = "", **_query: Any) -> html.Div:
    return html.Div(
        [
            dcc.Store(id="simulation-id", data=one(simulation_id) or ""),
            dcc.Store(id="simulation-seen", data=""),
            dmc.Group(
                [html.Div(skeleton(28), id="simulation-head", style={"minWidth": "320px"}), html.Div(id="simulation-actions")],
                justify="space-between",
                className="page-head",
            ),
            html.Div(id="simulation-progress"),
            html.Div(
                [
                    card("Comparison", html.Div(skeleton(140), id="simulation-table", className="scroll-x"), className="span-12"),
                    card("Job completion time", graph("simulation-jct", height=HEIGHT), className="span-6"),
                    card(
                        "Finish-time fairness",
                        graph("simulation-rho", height=HEIGHT),
                        aside=html.Span("right of ρ = 1: worse off than alone on its share", className="caption"),
                        className="span-6",
                    ),
                    card("GPU-hours by type", graph("simulation-hours", height=HEIGHT), className="span-6"),
                    card("Contention", graph("simulation-contention", height=HEIGHT), className="span-6"),
                    card("What was simulated", html.Div(id="simulation-request"), className="span-12"),
                ],
                className="columns",
            ),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(__name__, path_template="/simulations/<simulation_id>", name="Simulation", title="Simulation", layout=layout)

    @app.callback(
        Output("simulation-head", "children"),
        Output("simulation-actions", "children"),
        Output("simulation-progress", "children"),
        Output("simulation-table", "children"),
        Output("simulation-request", "children"),
        Output("simulation-jct", "figure"),
        Output("simulation-rho", "figure"),
        Output("simulation-hours", "figure"),
        Output("simulation-contention", "figure"),
        Output("simulation-seen", "data"),
        Input("live", "data"),
        Input("scheme", "data"),
        State("simulation-id", "data"),
        State("simulation-seen", "data"),
    )
    async def show(_live: Any, scheme: str | None, simulation_id: str, seen: str) -> tuple[Any, ...]:
        """Progress on every beat; results only when another run has finished, or the colours changed."""
        if not scheme or (seen.startswith("over") and ctx.triggered_id == "live"):
            return (no_update,) * 10
        try:
            async with api.visitor() as maat:
                simulation = await maat.send(calls.simulation(simulation_id))
                operation = await maat.operation(simulation["operation_id"])
                done = [run for run in simulation["runs"] if run["state"] == "succeeded"]
                mark = ("over:" if operation["state"] in OVER else "running:") + str(len(done)) + scheme
                results = await _results(maat, simulation_id, done) if mark != seen else None
        except Failure as error:
            return _failed(error, scheme)
        head = dmc.Group([html.H1(simulation["name"] or simulation_id, className="page-title"), state_chip(operation["state"])], gap=12)
        actions = (
            [link_button("New simulation", "/simulate")]
            if operation["state"] in OVER
            else dmc.Button("Cancel", id="simulation-cancel", variant="default", size="xs")
        )
        figures = [no_update] * 4 if results is None else [draw(results, scheme=scheme, height=HEIGHT) for draw in FIGURES]
        return head, actions, _progress(operation), _table(simulation["runs"]), _request(simulation["request"]), *figures, mark

    @app.callback(
        Output("notices", "sendNotifications", allow_duplicate=True),
        Input("simulation-cancel", "n_clicks"),
        State("simulation-id", "data"),
        prevent_initial_call=True,
    )
    async def cancel(clicks: int | None, simulation_id: str) -> Any:
        if not clicks:
            return no_update
        try:
            async with api.visitor() as maat:
                simulation = await maat.send(calls.simulation(simulation_id))
                await maat.send(calls.cancel_operation(simulation["operation_id"]))
        except Failure as error:
            return refusal(error)
        return notice("Cancelling", "What has finished stays.")


async def _results(maat: AsyncClient, simulation_id: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Run -> result, in the order of the runs."""
    answers = await asyncio.gather(*(maat.send(calls.run_result(simulation_id, run["id"])) for run in runs))
    return dict(zip(run_names(runs), answers, strict=True))


def run_names(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The policy; with placer or seed where runs would else have one name."""
    placers = len({run["placer"] for run in runs}) > len({run["policy"] for run in runs})
    seeds = len({run["seed"] for run in runs}) > 1
    names: list[str] = []
    for run in runs:
        name = run["policy"] + (f" + {run['placer']}" if placers else "") + (f", seed {run['seed']}" if seeds else "")
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
    return names


def _progress(operation: Mapping[str, Any]) -> Any:
    if operation["state"] == "failed":
        problem = operation["error"] or {}
        return dmc.Alert(
            str(problem.get("detail") or operation["message"] or "No reason was kept."),
            title=str(problem.get("title") or "The simulation failed"),
            color="red",
            mb=12,
        )
    if operation["state"] in OVER:
        return None
    share = operation["done"] / operation["total"] if operation["total"] else 0.0
    words = (
        f"{number(operation['done'])} of {number(operation['total'])} {operation['unit']}" if operation["total"] else "waits for a worker"
    )
    return card(
        None,
        [
            dmc.Group(
                [html.Span(operation["message"] or operation["state"]), html.Span(words, className="caption")], justify="space-between"
            ),
            dmc.Progress(value=share * 100, size="sm", mt=6, **aria("Progress")),
        ],
        mb=12,
    )


def _table(runs: Sequence[Mapping[str, Any]]) -> Any:
    """Runs x figures of merit; the best of each column is marked."""
    shown = [(field, head, digits, less) for field, head, digits, less in COMPARED if any(field in (run["summary"] or {}) for run in runs)]
    best = {field: _best(runs, field, less=less) for field, _, _, less in shown}
    head = html.Thead(html.Tr([html.Th("Run"), html.Th("State"), *[html.Th(text, className="number") for _, text, _, _ in shown]]))
    rows = []
    for name, run in zip(run_names(runs), runs, strict=True):
        summary = run["summary"] or {}
        cells = [
            _cell(summary.get(field), digits, best=summary.get(field) is not None and summary.get(field) == best[field])
            for field, _, digits, _ in shown
        ]
        failure = str((run["error"] or {}).get("detail") or "")
        rows.append(html.Tr([html.Td(name), html.Td(html.Span(state_chip(run["state"]), title=failure)), *cells]))
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def _best(runs: Sequence[Mapping[str, Any]], field: str, *, less: bool) -> float | None:
    values = [run["summary"][field] for run in runs if run["summary"] and run["summary"].get(field) is not None]
    best = (min if less else max)(values, default=None)
    return best if len(values) > 1 and values.count(best) == 1 else None


def _cell(value: Any, digits: int, *, best: bool) -> html.Td:
    text = number(value, digits) if isinstance(value, int | float) else ABSENT
    return html.Td([text, html.Span(" ◂ best", className="caption")] if best else text, className="number")


def _request(request: Mapping[str, Any]) -> html.Dl:
    trace = {name: value for name, value in request["trace"].items() if name != "text"}
    return facts(
        [
            ("Trace", ", ".join(f"{name} {value}" for name, value in trace.items())),
            ("Cluster", request["cluster"]),
            ("Fidelity", request.get("fidelity") or ABSENT),
        ]
    )


def _failed(error: Exception, scheme: str) -> tuple[Any, ...]:
    title, remedy = said(error)
    if isinstance(error, ApiError) and error.status == 404:
        title, remedy = "No such simulation", "It may have been deleted, or belongs to another tenant."
    figure = error_figure(scheme, title, remedy, height=HEIGHT)
    return (
        html.H1(title, className="page-title"),
        link_button("All simulations", "/simulate"),
        None,
        error_state(error),
        "",
        figure,
        figure,
        figure,
        figure,
        "over:failed",
    )
