"""Views of the job list that a visitor keeps by name: filters, order, columns and cluster.

They are kept in the browser (assets/views.js). A view is an address, which others can be given.
"""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.attributes import HIDDEN, aria, submits
from frontend.callbacks import in_browser
from frontend.components.dialogs import dialog


def view_fields() -> list[Component]:
    """The chooser of a view, hidden while there is none, and the button that keeps one."""
    chooser = dmc.Select(
        id="jobs-view",
        data=[],
        value=None,
        placeholder="My views",
        size="xs",
        w=150,
        style=HIDDEN,
        comboboxProps={"transitionProps": {"duration": 0}},
        **aria("My views"),
    )
    return [chooser, dmc.Button("Keep view", id="jobs-view-ask", variant="default", size="xs")]


def views_dialog() -> dmc.Modal:
    name = dmc.Autocomplete(
        id="jobs-view-name",
        data=[],
        value="",
        label="Name of the view",
        placeholder="my pending jobs",
        comboboxProps={"transitionProps": {"duration": 0}},
    )
    buttons = [
        dmc.Button("Delete", id="jobs-view-delete", variant="default", disabled=True),
        dmc.Button("Keep", id="jobs-view-keep"),
    ]
    told = (
        "Filters, order, columns and cluster are kept in this browser under a name. The address of "
        "this page has all of them: send it to share the view."
    )
    form = html.Div(
        [html.P(told), name, dmc.Group(buttons, justify="flex-end")],
        className="form-stack",
        **submits("jobs-view-keep"),
    )
    return dialog("jobs-view-dialog", "Keep this view", [form, dcc.Store(id="jobs-views", data=0)])


def register(app: Dash) -> None:
    in_browser(
        app,
        "offerViews",
        Output("jobs-view", "data"),
        Output("jobs-view", "value"),
        Output("jobs-view", "style"),
        Output("jobs-view-name", "data"),
        Input("jobs-views", "data"),
        Input("jobs-filters", "data"),
        Input("jobs-grid", "getRowsRequest"),
        Input("cluster-select", "value"),
        Input("jobs-columns-shown", "data"),
        State("jobs-view", "value"),
    )
    in_browser(
        app,
        "openView",
        Output("jobs-view", "id"),
        Input("jobs-view", "value"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "askView",
        Output("jobs-view-dialog", "opened"),
        Output("jobs-view-name", "value"),
        Input("jobs-view-ask", "n_clicks"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "knownView",
        Output("jobs-view-delete", "disabled"),
        Output("jobs-view-keep", "disabled"),
        Input("jobs-view-name", "value"),
        Input("jobs-views", "data"),
    )
    in_browser(app, "keepView", *_outcome(), *_press_of("keep"), prevent_initial_call=True)
    in_browser(app, "deleteView", *_outcome(), *_press_of("delete"), prevent_initial_call=True)


def _outcome() -> list[Output]:
    return [
        Output("jobs-views", "data", allow_duplicate=True),
        Output("jobs-view-dialog", "opened", allow_duplicate=True),
    ]


def _press_of(button: str) -> list[Input | State]:
    return [Input(f"jobs-view-{button}", "n_clicks"), State("jobs-view-name", "value")]
