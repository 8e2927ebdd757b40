"""The cluster, GPU by GPU: which job holds which, what is free together, drained nodes.

And what if it were another: nodes drained or added, another policy or placer.
"""

from __future__ import annotations

from dash import Dash

from frontend.addresses import add_page, anything, counting
from frontend.api import Api
from frontend.pages.cluster import callbacks, reservations, what_if, what_if_fields
from frontend.pages.cluster.forgetting import register_forgetting
from frontend.pages.cluster.gpu_scores import GPU_SCORES, gpu_scores_card
from frontend.pages.cluster.layout import layout
from frontend.pages.cluster.model_reports import MODEL_REPORTS, model_reports_card
from frontend.pages.cluster.reported_tables import register_reported
from frontend.pages.cluster.slowdowns import SLOWDOWN_PAIRS, slowdowns_card

MOST_ROUNDS = 999_999_999


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/cluster",
        name="Cluster",
        title="Cluster",
        order=1,
        layout=layout,
        takes={
            "node": anything,
            "q": anything,
            "round": counting("round", MOST_ROUNDS),
            **what_if_fields.TAKES,
        },
    )
    callbacks.register(app, api)
    reservations.register(app, api)
    what_if.register(app, api)
    register_reported(app, api, GPU_SCORES, gpu_scores_card)
    register_reported(app, api, SLOWDOWN_PAIRS, slowdowns_card)
    register_reported(app, api, MODEL_REPORTS, model_reports_card)
    register_forgetting(app, api)
