"""The cards of a simulation's page, before data comes."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.components import fairness_rule
from frontend.components.cards import card, definition, graph, many_charts, scrolls, skeleton
from frontend.components.operations import cancel_stores
from frontend.pages.simulation import contest, side_by_side
from frontend.routing import QueryValue, cluster_store, query_value, query_values, title_store

HEIGHT = 320


def layout(
    simulation_id: QueryValue = "",
    rule: QueryValue = None,
    first: QueryValue = None,
    second: QueryValue = None,
    job: QueryValue = None,
    **_query: object,
) -> html.Div:
    head = [
        html.Div(skeleton(28), id="simulation-head", style={"minWidth": "320px"}),
        html.Div(id="simulation-actions"),
    ]
    body = [
        *contest.contest_cards(),
        html.Div(id="simulation-drawn", className="caption span-12"),
        *_job_cards(rule),
        *_over_time_cards(),
        *_hours_cards(),
        side_by_side.pairs_card(query_value(first), query_value(second)),
        _contention_card(),
        side_by_side.allocations_card(query_values(job)),
        side_by_side.job_series_card(),
        *_run_cards(),
    ]
    return html.Div(
        [
            dcc.Store(id="simulation-id", data=query_value(simulation_id) or ""),
            dcc.Store(id="simulation-seen", data=""),
            cluster_store("simulation"),
            title_store("simulation"),
            *cancel_stores("simulation"),
            dmc.Group(head, justify="space-between", className="page-head"),
            html.Div(id="simulation-verdict", className="verdict", role="status"),
            html.Div(id="simulation-left-out", className="hint"),
            html.Div(id="simulation-progress"),
            side_by_side.asked_note(query_value(first), query_value(second), query_values(job)),
            html.Div(body, className="columns", id="simulation-body"),
        ]
    )


def _job_cards(rule: QueryValue) -> list[Component]:
    """Completion times and fairness over all jobs, and the jobs that fared worst."""
    completion = [
        graph("simulation-jct", height=HEIGHT),
        html.Div(id="simulation-unfinished", className="caption"),
    ]
    fairness = [
        graph("simulation-rho", height=HEIGHT),
        html.Div(id="simulation-rule-words", className="caption"),
    ]
    chooser = dmc.Group(
        [
            fairness_rule.selector("simulation-rule", rule),
            definition("rho", text_id="define-rho"),
        ],
        gap=8,
    )
    return [
        card(
            "Job completion time",
            completion,
            aside=definition("JCT", text_id="define-jct"),
            className="span-6",
        ),
        card("Finish-time fairness", fairness, aside=chooser, className="span-6"),
        card(
            "Least fair to",
            scrolls("simulation-fairness", skeleton(140), label="Least fair to"),
            aside=definition("unfair", text_id="define-fairness"),
            className="span-12",
        ),
    ]


def _over_time_cards() -> list[Component]:
    """What the cluster did over time, how long jobs waited in it, and what its places cost them."""
    return [
        card(
            title,
            graph(f"simulation-{name}", height=HEIGHT),
            aside=html.Span(says, className="caption"),
            className=span,
        )
        for name, title, says, span in (
            ("gpus", "GPUs in use", "of one run by type, of several in all", "span-6"),
            ("efficiency", "Statistical efficiency", "mean over the jobs that train", "span-6"),
            ("waits", "Waits", "all waiting of a job, not only the first", "span-4"),
            ("slowdowns", "Slowdown by placement", "L × max V by job", "span-4"),
            ("nodes", "Nodes in service", "failures and repairs", "span-4"),
        )
    ]


def _hours_cards() -> list[Component]:
    """GPU-hours by type and by model, and the time of a decision."""
    says = "means over the jobs of a model; every model has its own scale"
    return [
        card(
            "GPU-hours by type",
            graph("simulation-hours", height=HEIGHT),
            aside=definition("GPU-hours", text_id="define-hours"),
            className="span-6",
        ),
        card(
            "Decision time",
            graph("simulation-decisions", height=HEIGHT),
            aside=definition("decision time", text_id="define-decisions"),
            className="span-6",
        ),
        card(
            "GPU-hours by model and type",
            many_charts("simulation-model-hours"),
            aside=html.Span(says, className="caption"),
            className="span-12",
        ),
    ]


def _contention_card() -> Component:
    return card(
        "Contention",
        graph("simulation-contention", height=side_by_side.HEIGHT),
        aside=definition("contention", text_id="define-contention"),
        className="span-6",
    )


def _run_cards() -> list[Component]:
    """The table of all runs, and what was asked for."""
    table = [
        scrolls("simulation-table", skeleton(140), label="Runs"),
        html.Div(id="simulation-notes", className="caption"),
    ]
    return [
        card("Runs", table, className="span-12"),
        card("What was simulated", html.Div(id="simulation-request"), className="span-12"),
    ]
