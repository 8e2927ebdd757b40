"""One job: why it waits or what it holds, its GPUs over time, and what happened to it."""

from __future__ import annotations

from dash import Dash

from frontend.addresses import add_page
from frontend.api import Api
from frontend.pages.job import (
    actions,
    belief,
    callbacks,
    editing,
    fairness,
    flags,
    forecast,
    remedies,
    run,
)
from frontend.pages.job.layout import layout
from frontend.routing import register_cluster, register_title


def register(app: Dash, api: Api) -> None:
    register_cluster(app, "job")
    register_title(app, "job")
    add_page(
        __name__, path_template="/jobs/<job_id>", name="Job", title="Job", layout=layout, takes={}
    )
    callbacks.register(app, api)
    actions.register(app, api)
    flags.register(app, api)
    editing.register(app, api)
    remedies.register(app, api)
    run.register(app, api)
    belief.register(app, api)
    fairness.register(app, api)
    forecast.register(app, api)
