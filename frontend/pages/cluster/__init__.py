"""The cluster, GPU by GPU: which job holds which, what is free together, drained nodes.

And what if it were another: nodes drained or added, another policy or placer.
"""

from __future__ import annotations

from dash import Dash

from frontend.addresses import add_page, anything, counting
from frontend.api import Api
from frontend.pages.cluster import callbacks, reservations, what_if, what_if_fields
from frontend.pages.cluster.forgetting import register_forgetting
from frontend.pages.cluster.gpu_scores import register_gpu_scores
from frontend.pages.cluster.layout import layout
from frontend.pages.cluster.model_reports import register_model_reports
from frontend.pages.cluster.slowdowns import register_slowdowns

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
    register_gpu_scores(app, api)
    register_slowdowns(app, api)
    register_model_reports(app, api)
    register_forgetting(app, api)
