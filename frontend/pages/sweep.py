"""One sweep: its progress, a figure of merit against what is varied, and the numbers."""

from __future__ import annotations

from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, among
from frontend.api import Api, Failure, error_message
from frontend.attributes import HIDDEN, aria
from frontend.callbacks import NOTHING, Changes, answer, in_browser
from frontend.components import conditions, fairness_rule
from frontend.components.again import sweep_again
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
from frontend.figures.sweep import (
    METRICS,
    axis_title,
    metric_title,
    row_id,
    sweep_figure,
    value_text,
)
from frontend.figures.sweep_words import verdict
from frontend.formatting import number, percent
from frontend.pages.simulation.tables import MOST_NOTES
from frontend.routing import (
    QueryValue,
    cluster_output,
    cluster_store,
    query_value,
    register_cluster,
    register_title,
    title_output,
    title_store,
)
from frontend.runs import left_out_words, named_measurements, replayed_cluster
from maat.api.sweeps import RowOut, SweepDetail
from maat.client import ApiError, calls
from maat.figures.base import error_figure
from maat.vocabulary import FairnessRule

HEIGHT = 420


SWEEP = "sweep"
TAKES = {
    "metric": among("figure of merit", METRICS),
    "rule": among("rule of fairness", RULES),
}
# What a failed answer empties.
PARTS = ("verdict", "caption", "table", "request")


def layout(
    sweep_id: QueryValue = "",
    metric: QueryValue = None,
    rule: QueryValue = None,
    **_query: object,
) -> html.Div:
    head = [
        html.Div(skeleton(28), id="sweep-head", style={"minWidth": "320px"}),
        html.Div(id="sweep-actions"),
    ]
    body = [
        _sensitivity_card(query_value(metric), rule),
        card(
            "Means over the seeds",
            scrolls("sweep-table", skeleton(140), label="Means over the seeds"),
            className="span-12",
        ),
        card("What was simulated", html.Div(id="sweep-request"), className="span-12"),
    ]
    return html.Div(
        [
            dcc.Store(id="sweep-id", data=query_value(sweep_id) or ""),
            cluster_store(SWEEP),
            title_store(SWEEP),
            *cancel_stores(SWEEP),
            dmc.Group(head, justify="space-between", className="page-head"),
            html.Div(id="sweep-verdict", className="verdict sentence", role="status"),
            html.Div(id="sweep-progress"),
            html.Div(body, className="columns", id="sweep-body"),
        ]
    )


def _sensitivity_card(metric: str | None, rule: QueryValue) -> Component:
    """The figure, with the choice of what it shows."""
    choice = dmc.Select(
        id="sweep-metric",
        data=[{"value": name, "label": label} for name, (label, _) in METRICS.items()],
        value=metric if metric in METRICS else next(iter(METRICS)),
        allowDeselect=False,
        size="xs",
        w=190,
        **aria("Figure of merit"),
    )
    rules = [
        html.Span("rho by", className="caption"),
        fairness_rule.selector("sweep-rule", rule),
    ]
    content = [
        graph("sweep-figure", height=HEIGHT),
        html.Div(id="sweep-caption", className="caption"),
    ]
    return card(
        "Sensitivity", content, aside=dmc.Group([choice, *rules], gap=8), className="span-12"
    )


def register(app: Dash, api: Api) -> None:
    register_cluster(app, SWEEP)
    register_title(app, SWEEP)
    add_page(
        __name__,
        path_template="/sweeps/<sweep_id>",
        name="Sweep",
        title="Sweep",
        layout=layout,
        takes=TAKES,
    )
    register_cancel(app, api, SWEEP, calls.sweep, stays="Points that have ended stay.")
    fairness_rule.keep_in_address(app, "sweep-rule")
    in_browser(
        app,
        "metricInUrl",
        Output("sweep-metric", "id"),
        Input("sweep-metric", "value"),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(show, api),
        output={
            "cluster": cluster_output(SWEEP),
            "title": title_output(SWEEP),
            **{
                name: Output(f"sweep-{name}", "children")
                for name in ("head", "actions", "progress", *PARTS)
            },
            "figure": Output("sweep-figure", "figure"),
            "body": Output("sweep-body", "style"),
        },
        inputs={
            "_live": Input("live", "data"),
            "scheme": Input("scheme", "data"),
            "metric": Input("sweep-metric", "value"),
            "_cancelling": Input("sweep-cancelling", "data"),
            "chosen_rule": Input("sweep-rule", "value"),
        },
        state={"sweep_id": State("sweep-id", "data")},
    )


async def show(
    api: Api,
    *,
    _live: object,
    scheme: str | None,
    metric: str,
    _cancelling: object,
    chosen_rule: str | None,
    sweep_id: str,
) -> Changes:
    if not scheme:
        return NOTHING
    rule = fairness_rule.asked(chosen_rule)
    try:
        async with api.visitor() as maat:
            sweep = await maat.send(calls.sweep(sweep_id, fairness_rule=rule))
            operation = await maat.operation(sweep["operation_id"])
    except Failure as error:
        return failed(error, scheme)
    name = sweep["name"] or sweep_id
    title = html.H1(name, className="page-title")
    return {
        "title": f"{name} · Sweep",
        "cluster": replayed_cluster(sweep["request"]),
        "head": dmc.Group([title, state_chip(sweep["state"])], gap=12),
        "actions": actions(
            SWEEP, operation, "New sweep", "/sweeps", same=sweep_again(sweep["request"])
        ),
        "progress": progress(operation, failed="A point failed"),
        "verdict": verdict(sweep, metric),
        "figure": sweep_figure(sweep, metric, scheme=scheme, height=HEIGHT),
        "caption": captions(sweep, rule),
        "table": table(sweep),
        "request": request_facts(sweep),
        "body": {},
    }


def captions(sweep: SweepDetail, rule: FairnessRule) -> list[Component]:
    """What a bar and rho mean, and what a reader of the figures should know beside."""
    words = (caption(sweep), fairness_rule.meaning(rule), left_out_words(sweep["request"]))
    return [html.Div(line) for line in (" ".join(words), *sweep["notes"][:MOST_NOTES])]


def caption(sweep: SweepDetail) -> str:
    """What a bar of the figure means."""
    if len(sweep["seeds"]) < 2:
        return "One seed: nothing is known of the spread."
    seeds = len(sweep["seeds"])
    return f"Mean over up to {seeds} seeds; bars: one sample standard deviation each way."


def table(sweep: SweepDetail) -> Component:
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
    for index, row in enumerate(sweep["rows"]):
        settings = [
            html.Td(value_text(row["settings"][axis["name"]]), className="number")
            for axis in sweep["axes"]
        ]
        figures = [
            html.Td(_cell(row, metric, spread=spread), className="number") for metric in METRICS
        ]
        seeds = html.Td(str(len(row["seeds"])), className="number")
        rows.append(html.Tr([*settings, seeds, *figures], id=row_id(index)))
    return html.Table([html.Thead(head), html.Tbody(rows)], className="plain-table many-columns")


def _cell(row: RowOut, metric: str, *, spread: bool) -> str:
    show = percent if metric == "unfair_fraction" else number
    mean = show(row["mean"].get(metric))
    return (
        f"{mean} ± {show(row['spread'].get(metric))}" if spread and metric in row["mean"] else mean
    )


def request_facts(sweep: SweepDetail) -> html.Dl:
    request = sweep["request"]
    seeds = ", ".join(str(seed) for seed in sweep["seeds"])
    return facts(
        [
            ("Trace", conditions.trace_words(request["trace"])),
            ("Cluster", request["cluster"]),
            ("Policy", request["policy"]),
            ("Placer", request.get("placer") or "the one that suits the policy"),
            *told_parameters(request),
            ("Fidelity", request["fidelity"]),
            ("Seeds", seeds),
            *conditions.describe(request, named_measurements(sweep.get("measurements") or ())),
        ]
    )


def failed(error: Exception, scheme: str) -> Changes:
    """Return what to show of a failure. A sweep that does not exist has no panels."""
    empty = dict.fromkeys(PARTS, "")
    if isinstance(error, ApiError) and error.status == 404:
        absent = missing(
            "No such sweep",
            "It may belong to another tenant, or the link is mistyped.",
            "All sweeps",
            "/sweeps",
        )
        return {**empty, "head": "", "actions": None, "progress": absent, "body": HIDDEN}
    title, remedy = error_message(error)
    return {
        **empty,
        "head": html.H1(title, className="page-title"),
        "actions": link_button("All sweeps", "/sweeps"),
        "progress": None,
        "figure": error_figure(scheme, title, remedy, height=HEIGHT),
        "table": error_state(error),
        "body": {},
    }
