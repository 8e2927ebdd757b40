"""Which columns the job list shows: the menu that chooses them, and how the address names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.callbacks import in_browser
from frontend.components.grid import Column
from frontend.pages.jobs.rows import COLUMNS, column_id, columns_sorted

NAME = "name"  # always there; in the address it says that no other column is
CHOICES = tuple(column_id(column) for column in COLUMNS)
USUAL = ("state", "model", "want", "have", "progress", "expected", "submitted_at", "tenant")
"""What an address without columns shows. They fit a window of 1280 pixels."""


def chosen_columns(named: Sequence[str]) -> list[str]:
    """Return the columns beside the name that an address asks for, in the order of the list."""
    known = [name for name in CHOICES if name in named]
    return [name for name in known or USUAL if name != NAME]


def named_columns(chosen: Sequence[str]) -> list[str]:
    """Return these columns as the address names them: nothing for the usual ones."""
    if set(chosen) == set(USUAL):
        return []
    return [name for name in CHOICES if name in chosen] or [NAME]


def shown_columns(sort: str | None, chosen: Sequence[str]) -> list[Column]:
    """Return all columns of the grid, with those hidden that are not chosen."""
    return [
        {**column, "hide": column_id(column) not in (NAME, *chosen)}
        for column in columns_sorted(sort)
    ]


def columns_menu(chosen: Sequence[str]) -> Component:
    """The button "Columns", and the boxes that it opens."""
    button: Any = {
        "component": "button",
        "type": "button",
        "id": "jobs-columns-open",
        "className": "button-link columns-button",
    }
    boxes = [
        dmc.Checkbox(value=column_id(column), label=column["headerName"], size="xs")
        for column in COLUMNS
        if column_id(column) != NAME
    ]
    group = dmc.CheckboxGroup(
        html.Div(boxes, className="form-stack"),
        id="jobs-columns",
        label="Columns of the list",
        value=list(chosen),
    )
    usual = html.Button(
        "As usual", id="jobs-columns-usual", type="button", n_clicks=0, className="button-link"
    )
    menu = dmc.Popover(
        [
            dmc.PopoverTarget("Columns", boxWrapperProps=button),
            dmc.PopoverDropdown(html.Div([group, usual], className="form-stack")),
        ],
        position="bottom-start",
        shadow="sm",
        trapFocus=True,
        returnFocus=True,
        keepMounted=True,
        transitionProps={"duration": 0},
    )
    kept = {"all": [name for name in CHOICES if name != NAME], "usual": list(USUAL)}
    stores = [
        dcc.Store(id="jobs-columns-known", data=kept),
        dcc.Store(id="jobs-columns-shown", data=named_columns(chosen)),
    ]
    return html.Div([menu, *stores])


def register(app: Dash) -> None:
    in_browser(
        app,
        "chooseColumns",
        Output("jobs-columns-shown", "data"),
        Input("jobs-columns", "value"),
        State("jobs-columns-known", "data"),
        State("jobs-grid-id", "data"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "usualColumns",
        Output("jobs-columns", "value"),
        Input("jobs-columns-usual", "n_clicks"),
        State("jobs-columns-known", "data"),
        prevent_initial_call=True,
    )
