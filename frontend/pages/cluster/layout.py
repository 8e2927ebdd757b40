"""The page of the cluster before its data comes."""

from __future__ import annotations

from dash import dcc, html

from frontend.components import past_rounds
from frontend.components.cards import card, page_title, scrolls, skeleton
from frontend.components.cluster_map import cluster_map, map_search, nodes_grid
from frontend.components.drain_dialog import drain_dialog
from frontend.components.replay import replay_link
from frontend.pages.cluster.forgetting import forget_dialog, pressed_store
from frontend.pages.cluster.gpu_scores import GPU_SCORES
from frontend.pages.cluster.model_reports import MODEL_REPORTS
from frontend.pages.cluster.reported_tables import reported_place
from frontend.pages.cluster.reservations import remove_dialog, reservation_dialog, reservations_card
from frontend.pages.cluster.slowdowns import SLOWDOWN_PAIRS
from frontend.pages.cluster.what_if_fields import what_if_card
from frontend.routing import QueryValue, query_value


def layout(
    round: QueryValue = None,
    q: QueryValue = None,
    drain: QueryValue = None,
    add: QueryValue = None,
    **query: QueryValue,
) -> html.Div:
    drawn = cluster_map(
        "cluster",
        height="max(420px, calc(100vh - 248px))",
        smallest_pixels=10,
        search=query_value(q),
    )
    free = scrolls("cluster-free", skeleton(100), label="Free GPUs")
    return html.Div(
        [
            page_title(
                "Cluster",
                replay_link(),
                html.Div(id="cluster-actions"),
                note=html.Span(id="cluster-note", className="caption"),
            ),
            html.Div(id="cluster-asked", className="address-note"),
            html.Div(id="cluster-no-round"),
            html.Div(id="cluster-verdict", className="verdict sentence", role="status"),
            html.Div(
                [
                    card(
                        "Who holds which GPU",
                        [drawn, past_rounds.stepper(query_value(round))],
                        aside=map_search("cluster", query_value(q)),
                        className="span-8",
                    ),
                    html.Div(
                        [card("Free GPUs", free), reservations_card()],
                        className="span-4 form-stack level",
                    ),
                    *map(reported_place, (GPU_SCORES, SLOWDOWN_PAIRS, MODEL_REPORTS)),
                    what_if_card(drain, add, **query),
                    html.Div(
                        card("Nodes", nodes_grid("cluster-nodes", height="420px")),
                        id="cluster-nodes-card",
                        className="span-12 read-only",
                    ),
                ],
                className="columns",
            ),
            reservation_dialog(),
            remove_dialog(),
            forget_dialog(),
            pressed_store(),
            drain_dialog("cluster"),
            dcc.Store(id="cluster-pressed"),
            dcc.Store(id="cluster-acted"),
        ]
    )
