"""The cards of a job's page, before data comes."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import dcc, html

from frontend.attributes import HIDDEN
from frontend.components.cards import card, graph, scrolls, skeleton
from frontend.components.dialogs import dialog
from frontend.pages.job.editing import edit_dialog
from frontend.pages.job.fairness import fairness_card
from frontend.pages.job.flags import flags_place
from frontend.pages.job.forecast import forecast_card
from frontend.pages.job.remedies import remedy_dialog
from frontend.pages.job.run import run_cards
from frontend.routing import QueryValue, cluster_store, query_value, title_store


def layout(job_id: QueryValue = "", **_query: object) -> html.Div:
    head = [
        html.Div(skeleton(28), id="job-head", className="job-head"),
        html.Div(id="job-actions"),
    ]
    return html.Div(
        [
            dcc.Store(id="job-id", data=query_value(job_id) or ""),
            cluster_store("job"),
            title_store("job"),
            dcc.Store(id="job-over", data=False),
            dcc.Store(id="job-cancel-pressed"),
            dcc.Store(id="job-pause-pressed"),
            dcc.Store(id="job-changed"),
            dcc.Store(id="job-edit-pressed"),
            dcc.Store(id="job-edit-before"),
            dcc.Store(id="job-edit-known"),
            dmc.Group(head, justify="space-between", className="page-head"),
            html.Div(id="job-missing"),
            html.Div([_cards(), run_cards()], id="job-body"),
            _cancel_dialog(),
            edit_dialog(),
            remedy_dialog(),
        ]
    )


def _cards() -> html.Div:
    left = [
        flags_place(),
        html.Div(skeleton(96), id="job-why"),
        card("Its life", graph("job-timeline", height="100%"), className="fills"),
    ]
    right = [
        forecast_card(),
        card("Now", html.Div(skeleton(180), id="job-now")),
        fairness_card(),
        card("Asked for", html.Div(skeleton(150), id="job-spec")),
    ]
    restarts = scrolls("job-ledger", label="Restarts")
    events = scrolls("job-events", skeleton(120), label="Events")
    return html.Div(
        [
            html.Div(left, className="span-8 form-stack filled"),
            html.Div(right, className="span-4 form-stack level"),
            html.Div(
                card("Restarts: what they cost, and whether they paid", restarts),
                id="job-ledger-card",
                className="span-12",
                style=HIDDEN,
            ),
            card("Events", events, className="span-12"),
        ],
        className="columns",
    )


def _cancel_dialog() -> dmc.Modal:
    warning = (
        "It stops at the next round and gives its GPUs back. Its history stays. "
        "This cannot be undone."
    )
    buttons = [
        dmc.Button("Keep it", id="job-cancel-no", variant="default"),
        dmc.Button("Cancel job", id="job-cancel-yes", color="red", className="danger"),
    ]
    content = [html.P(warning), dmc.Group(buttons, justify="flex-end")]
    return dialog("job-cancel-ask", "Cancel this job?", content)
