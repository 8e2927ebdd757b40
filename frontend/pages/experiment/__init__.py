"""One experiment: its progress, then what its runs cost and how long they took."""

from __future__ import annotations

from dash import Dash

from frontend.addresses import add_page
from frontend.api import Api
from frontend.components.operations import register_cancel
from frontend.pages.experiment import callbacks
from frontend.pages.experiment.layout import EXPERIMENT, layout
from frontend.routing import register_title
from maat.client import calls


def register(app: Dash, api: Api) -> None:
    register_title(app, EXPERIMENT)
    add_page(
        __name__,
        path_template="/experiments/<experiment_id>",
        name="Experiment",
        title="Experiment",
        layout=layout,
        takes={},
    )
    register_cancel(app, api, EXPERIMENT, calls.experiment, stays="Runs that have ended stay.")
    callbacks.register(app, api)
