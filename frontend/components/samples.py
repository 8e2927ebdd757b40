"""One of each kind of what pages are made of, drawn once out of sight in idle time.

Browsers compile what runs: the first grid, chart and fields of a visit take up to twice as long as
the next. assets/samples.js has them drawn before a page needs them.
"""

from __future__ import annotations

from functools import cache
from typing import TypedDict

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import UNHEARD
from frontend.components.grid import RIGHT, Column, grid

NO_NAME = "–"  # nobody reads it, and nobody who looks for a field by its name finds it
_DATA = [{"value": "a", "label": NO_NAME}, {"value": "b", "label": NO_NAME}]
_TIMES = ("2026-01-01T00:00:00", "2026-01-01T01:00:00", "2026-01-01T02:00:00")


class Sample(TypedDict):
    """`drawn`: CSS selector of what is there once the part is drawn; a page that has it needs none.

    Empty: it is drawn in each visit, and at once.
    """

    part: Component
    drawn: str


@cache
def samples() -> list[Component]:
    """The samples, each of which is drawn in a task of its own, and the place for one."""
    kinds: list[Sample] = [
        {"part": _fields(), "drawn": ""},
        {"part": _choices(), "drawn": ""},
        {"part": _grid(), "drawn": ".ag-row"},
        {"part": _chart(), "drawn": ".main-svg"},
    ]
    place = html.Div(id="sample", className="out-of-sight", **UNHEARD)
    return [dcc.Store(id="samples", data=kinds), place]


def _fields() -> html.Div:
    named = dmc.TextInput(label=NO_NAME, description=NO_NAME)
    return html.Div(
        [
            dmc.Paper(dmc.Group([named, dmc.Button(NO_NAME)])),
            dmc.NumberInput(label=NO_NAME, value=1, min=1),
            dmc.Checkbox(label=NO_NAME),
            dmc.CheckboxGroup(dmc.Checkbox(value="a"), label=NO_NAME, value=["a"]),
            dmc.Switch(label=NO_NAME),
            dmc.SegmentedControl(data=_DATA, value="a"),
            dmc.Collapse(html.Div(NO_NAME), opened=False),
            dmc.Skeleton(height=10),
        ]
    )


def _choices() -> html.Div:
    return html.Div(
        [
            dmc.Select(label=NO_NAME, data=_DATA, value="a"),
            dmc.MultiSelect(label=NO_NAME, data=_DATA, value=["a"]),
            dmc.TagsInput(label=NO_NAME, data=["a"], value=["a"]),
            dmc.Autocomplete(label=NO_NAME, data=["a"], value="a"),
            dmc.DatePickerInput(label=NO_NAME, type="range"),
            dmc.Modal(NO_NAME, title=NO_NAME, opened=False),
        ]
    )


def _grid() -> html.Div:
    columns: list[Column] = [
        {"field": "name", "cellRenderer": "MaatLink", "cellRendererParams": {"cutInMiddle": True}},
        {"field": "state", "cellRenderer": "MaatState", "sortable": True},
        {"field": "have", "cellRenderer": "MaatGpus", "tooltipField": "have"},
        {"field": "share", "cellRenderer": "MaatProgress"},
        {"field": "count", **RIGHT, "flex": 1},
    ]
    row = {"name": NO_NAME, "state": NO_NAME, "have": NO_NAME, "colour": "#000000", "share": 0.5}
    rows = [{**row, "count": number} for number in range(12)]
    return grid("sample-grid", columns, height="400px", rowData=rows, columnSize="autoSize")


def _chart() -> dcc.Graph:
    line = {"type": "scatter", "mode": "lines", "stackgroup": "one", "line": {"shape": "hv"}}
    kinds = (line, line, {"type": "bar"})
    data = [{**kind, "x": _TIMES, "y": [1, 3, 2], "name": NO_NAME} for kind in kinds]
    axis = {"title": {"text": NO_NAME}}
    layout = {"xaxis": axis, "yaxis": axis, "hovermode": "x unified", "showlegend": True}
    return dcc.Graph(figure={"data": data, "layout": layout}, config={"displayModeBar": False})
