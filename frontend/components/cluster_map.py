"""The place of the cluster map on a page, and its updates. assets/cluster_map.js draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.attributes import aria
from frontend.callbacks import in_browser
from frontend.components.grid import RIGHT, Column, grid
from frontend.figures.cluster_map import Faults, Known, map_changes, message
from maat.api.clusters import GpuOut

NODE_COLUMNS: list[Column] = [
    {
        "field": "name",
        "headerName": "Node",
        "width": 130,
        "minWidth": 96,
        "sortable": True,
        "tooltipField": "name",
    },
    {
        "field": "gpu_type",
        "headerName": "GPU type",
        "width": 110,
        "sortable": True,
        "cellRenderer": "MaatGpus",
    },
    {"field": "gpu_count", "headerName": "GPUs", "width": 76, "sortable": True, **RIGHT},
    {"field": "held", "headerName": "In use", "width": 84, "sortable": True, **RIGHT},
    {"field": "drained", "headerName": "Drained", "width": 92, "sortable": True, **RIGHT},
    {
        "field": "stretches",
        "headerName": "Held by",
        "flex": 3,
        "minWidth": 180,
        "cellRenderer": "MaatHolders",
        "cellDataType": False,
    },
    {
        "field": "fault",
        "headerName": "Fault",
        "headerTooltip": "Why the node cannot be used",
        "hide": True,  # while no node has one: assets/cluster_map.js
        "flex": 1,
        "minWidth": 120,
        "tooltipField": "fault",
    },
    {
        "field": "drained",
        "colId": "service",
        "headerName": "Service",
        "width": 92,
        "cellRenderer": "MaatDrain",
    },
]


def cluster_map(
    prefix: str, *, height: str, smallest_pixels: int, search: str | None = None
) -> html.Div:
    """An empty map of this height with the stores that fill it; `map_changes` fills `-drawing`.

    A square is as large as the height allows. If it would be smaller than `smallest_pixels`, the
    map scrolls. `search`: only nodes with this text in their name, type, jobs or tenants show.
    """
    smallest: dict[str, Any] = {"data-smallest": smallest_pixels, "data-sought": search or ""}
    drawn = html.Div(
        id=f"{prefix}-map",
        className="gpu-map loading",
        style={"height": height},
        role="group",
        **aria("Cluster map"),
        **smallest,
    )
    return html.Div(
        [
            drawn,
            dcc.Store(id=f"{prefix}-drawing"),
            dcc.Store(id=f"{prefix}-known"),
            dcc.Store(id=f"{prefix}-map-id", data=f"{prefix}-map"),
        ]
    )


def drawing_of(
    cells: Sequence[GpuOut],
    known: Known | None,
    *,
    scheme: str,
    faults: Faults | None = None,
    none: tuple[str, str] = ("No node yet", "Jobs get GPUs as soon as it has some."),
) -> object:
    """What to put into the store for a browser that has drawn `known`.

    `none`: what is said of a cluster without nodes, and what to do.
    """
    if not cells:
        return message(*none, way=("Add nodes", "/admin?tab=clusters"))
    changes = map_changes(cells, known, scheme=scheme, faults=faults)
    return no_update if changes is None else changes


def nodes_grid(grid_id: str, *, height: str) -> html.Div:
    """A table of the nodes: the map in words, with the buttons to take nodes out of service."""
    return grid(grid_id, NODE_COLUMNS, height=height, getRowId="params.data.name")


def map_search(prefix: str, text: str | None) -> html.Div:
    """The field that searches a map, and what it found."""
    field = dmc.TextInput(
        id=f"{prefix}-map-search",
        value=text or "",
        placeholder="Job, node, GPU type or tenant",
        size="xs",
        w=220,
        **aria("Search the map"),
    )
    found = html.Span(id=f"{prefix}-map-found", className="caption", role="status")
    return html.Div([found, field], className="map-search")


def register_map_search(app: Dash, prefix: str) -> None:
    """Show the nodes that the search finds, as large as they then fit; the address has its text."""
    in_browser(
        app,
        "findOnMap",
        Output(f"{prefix}-map-found", "children"),
        Input(f"{prefix}-map-search", "value"),
        Input(f"{prefix}-known", "data"),
        State(f"{prefix}-map-id", "data"),
        prevent_initial_call=True,
    )


def register_cluster_map(app: Dash, prefix: str, *, grid_id: str | None = None) -> None:
    """Draw what comes into the store; with a grid, its rows too."""
    known = Output(f"{prefix}-known", "data")
    in_browser(
        app,
        "drawMap",
        [known, Output(grid_id, "rowData"), Output(grid_id, "rowTransaction")]
        if grid_id
        else known,
        Input(f"{prefix}-drawing", "data"),
        State(f"{prefix}-map-id", "data"),
        prevent_initial_call=True,
    )
