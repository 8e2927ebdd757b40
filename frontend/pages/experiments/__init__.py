"""The forms of auto-scaling and of hyper-parameter search, and the list of experiments."""

from __future__ import annotations

from dash import Dash, Input, Output

from frontend.addresses import add_page
from frontend.api import Api
from frontend.callbacks import in_browser
from frontend.pages.experiments import callbacks
from frontend.pages.experiments.forms import FORMS, takes_of_address
from frontend.pages.experiments.layout import layout


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/experiments",
        name="Experiments",
        title="Experiments",
        order=8,
        layout=layout,
        takes=takes_of_address(),
    )
    in_browser(
        app,
        "kindInUrl",
        Output("experiments-kind", "id"),
        Input("experiments-kind", "value"),
        prevent_initial_call=True,
    )
    callbacks.register_list(app, api)
    for form in FORMS.values():
        callbacks.register_form(app, api, form)
