"""One sweep: its progress while it runs, a figure of merit against what is varied, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.addresses import add_page, among
from frontend.api import Api, Failure, said
from frontend.components import conditions, fairness_rule
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    facts,
    graph,
    link_button,
    missing,
    scrolls,
    skeleton,
)
from frontend.components.fairness_rule import RULES
from frontend.components.operations import actions, cancel_stores, progress, register_cancel
from frontend.components.parameter_fields import told_parameters
from frontend.components.states import state_chip
from frontend.figures.base import error_figure
from frontend.figures.sweep import METRICS, axis_title, metric_title, sweep_figure, value_text
from frontend.formatting import number, percent
from frontend.routing import aria, cluster_output, cluster_store, in_browser, one, register_cluster
from frontend.runs import named_measurements, replayed_cluster
from maat.client import ApiError, calls

HEIGHT = 420


def layout(sweep_id: Any = "", metric: Any = None, rule: Any = None, **_query: Any) -> html.Div:
    chosen = one(metric)
    choice = dmc.Select(
        id="sweep-metric",
        data=[{"value": name, "label": label} for name, (label, _) in METRICS.items()],
        value=chosen if chosen in METRICS else next(iter(METRICS)),
        allowDeselect=False,
        size="xs",
        w=190,
        **aria("Figure of merit"),
    )
    return html.Div(
        [
            dcc.Store(id="sweep-id", data=one(sweep_id) or ""),
            cluster_store("sweep"),
            *cancel_stores("sweep"),
            dmc.Group(
                [
                    html.Div(skeleton(28), id="sweep-head", style={"minWidth": "320px"}),
                    html.Div(id="sweep-actions"),
                ],
                justify="space-between",
                className="page-head",
            ),
            html.Div(id="sweep-progress"),
            html.Div(
                [
                    card(
                        "Sensitivity",
                        [
                            graph("sweep-figure", height=HEIGHT),
                            html.Div(id="sweep-caption", className="caption"),
                        ],
                        aside=dmc.Group(
                            [
                                choice,
                                html.Span("ρ by", className="caption"),
                                fairness_rule.selector("sweep-rule", rule),
                            ],
                            gap=8,
                        ),
                        className="span-12",
                    ),
                    card(
                        "Means over the seeds",
                        scrolls("sweep-table", skeleton(140), label="Means over the seeds"),
                        className="span-12",
                    ),
                    card("What was simulated", html.Div(id="sweep-request"), className="span-12"),
                ],
                className="columns",
                id="sweep-body",
            ),
        ]
    )


def register(app: Dash, api: Api) -> None:
    register_cluster(app, "sweep")
    add_page(
        __name__,
        path_template="/sweeps/<sweep_id>",
        name="Sweep",
        title="Sweep",
        layout=layout,
        takes={
            "metric": among("figure of merit", METRICS),
            "rule": among("rule of fairness", RULES),
        },
    )
    register_cancel(app, api, "sweep", calls.sweep, stays="Points that have ended stay.")
    fairness_rule.keep_in_address(app, "sweep-rule")
    in_browser(
        app,
        "metricInUrl",
        Output("sweep-metric", "id"),
        Input("sweep-metric", "value"),
        prevent_initial_call=True,
    )

    @app.callback(
        cluster_output("sweep"),
        Output("sweep-head", "children"),
        Output("sweep-actions", "children"),
        Output("sweep-progress", "children"),
        Output("sweep-figure", "figure"),
        Output("sweep-caption", "children"),
        Output("sweep-table", "children"),
        Output("sweep-request", "children"),
        Output("sweep-body", "style"),
        Input("live", "data"),
        Input("scheme", "data"),
        Input("sweep-metric", "value"),
        Input("sweep-cancelling", "data"),
        Input("sweep-rule", "value"),
        State("sweep-id", "data"),
    )
    async def show(
        _live: Any,
        scheme: str | None,
        metric: str,
        _cancelling: Any,
        chosen_rule: str | None,
        sweep_id: str,
    ) -> tuple[Any, ...]:
        if not scheme:
            return (no_update,) * 9
        rule = fairness_rule.asked(chosen_rule)
        try:
            async with api.visitor() as maat:
                sweep = await maat.send(calls.sweep(sweep_id, fairness_rule=rule))
                operation = await maat.operation(sweep["operation_id"])
        except Failure as error:
            return _failed(error, scheme)
        head = dmc.Group(
            [
                html.H1(sweep["name"] or sweep_id, className="page-title"),
                state_chip(sweep["state"]),
            ],
            gap=12,
        )
        buttons = actions("sweep", operation, "New sweep", "/sweeps")
        drawn = sweep_figure(sweep, metric, scheme=scheme, height=HEIGHT)
        told = progress(operation, failed="A point failed")
        words = f"{caption(sweep)} {fairness_rule.meaning(rule)}"
        cluster = replayed_cluster(sweep["request"])
        return (
            cluster,
            head,
            buttons,
            told,
            drawn,
            words,
            table(sweep),
            request_facts(sweep),
            {},
        )


def caption(sweep: Mapping[str, Any]) -> str:
    """What a bar of the figure means."""
    if len(sweep["seeds"]) < 2:
        return "One seed: nothing is known of the spread."
    return f"Mean over up to {len(sweep['seeds'])} seeds; bars: one sample standard deviation each way."


def table(sweep: Mapping[str, Any]) -> Any:
    """Settings x figures of merit, each with its spread."""
    if not sweep["rows"]:
        return empty_state(
            "No point has ended yet", "Each stands here as soon as a worker has played it."
        )
    spread = len(sweep["seeds"]) > 1
    axes = [html.Th(axis_title(axis), className="number") for axis in sweep["axes"]]
    head = html.Tr(
        [
            *axes,
            html.Th("Seeds", className="number"),
            *[
                html.Th(metric_title(metric, sweep["fairness_rule"]), className="number")
                for metric in METRICS
            ],
        ]
    )
    rows = []
    for row in sweep["rows"]:
        settings = [
            html.Td(value_text(row["settings"][axis["name"]]), className="number")
            for axis in sweep["axes"]
        ]
        figures = [
            html.Td(_cell(row, metric, spread=spread), className="number") for metric in METRICS
        ]
        rows.append(
            html.Tr([*settings, html.Td(str(len(row["seeds"])), className="number"), *figures])
        )
    return html.Table([html.Thead(head), html.Tbody(rows)], className="plain-table many-columns")


def _cell(row: Mapping[str, Any], metric: str, *, spread: bool) -> str:
    show = percent if metric == "unfair_fraction" else number
    mean = show(row["mean"].get(metric))
    return (
        f"{mean} ± {show(row['spread'].get(metric))}" if spread and metric in row["mean"] else mean
    )


def request_facts(sweep: Mapping[str, Any]) -> html.Dl:
    request = sweep["request"]
    trace = ", ".join(
        f"{name} {value}" for name, value in request["trace"].items() if value is not None
    )
    seeds = ", ".join(str(seed) for seed in sweep["seeds"])
    return facts(
        [
            ("Trace", trace),
            ("Cluster", request["cluster"]),
            ("Policy", request["policy"]),
            ("Placer", request.get("placer") or "the one that suits the policy"),
            *told_parameters(request),
            ("Fidelity", request["fidelity"]),
            ("Seeds", seeds),
            *conditions.told(request, named_measurements(sweep.get("measurements") or ())),
        ]
    )


def _failed(error: Exception, scheme: str) -> tuple[Any, ...]:
    """A sweep that there is none of has no panels."""
    if isinstance(error, ApiError) and error.status == 404:
        state = missing(
            "No such sweep",
            "It may belong to another tenant, or the link is mistyped.",
            "All sweeps",
            "/sweeps",
        )
        return no_update, "", None, state, no_update, "", "", "", {"display": "none"}
    title, remedy = said(error)
    drawn = error_figure(scheme, title, remedy, height=HEIGHT)
    head = html.H1(title, className="page-title")
    return (
        no_update,
        head,
        link_button("All sweeps", "/sweeps"),
        None,
        drawn,
        "",
        error_state(error),
        "",
        {},
    )
