"""The cluster map: one cell per GPU, nodes as rows, coloured by GPU type, with the job that holds it. One heatmap trace, whatever the size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from frontend.figures.base import empty_figure, figure
from frontend.theme import gpu_colour, gpu_order, mix, palette

SHADES = 3
FREE, DRAINED = 0, 1
NAMED_CELLS = 160
_CHARACTERS = 11


def cluster_map_figure(cells: Sequence[Mapping[str, Any]], *, scheme: str | None, height: int | None = None) -> go.Figure:
    """Heatmap: GPU number on its node x node; colour = type of the GPU in use, shaded by job so that neighbours differ; grey = free.

    `layout.meta.jobs` holds the job of every cell, for the script that dims the others under the pointer.
    """
    if not cells:
        return empty_figure(scheme, "This cluster has no node", "Add nodes: POST /api/v1/clusters/{id}/nodes.", height=height)
    rows = _rows(cells)
    types = gpu_order(str(cell["gpu_type"]) for cell in cells)
    shade = _shades(cells)
    width = max(len(gpus) for gpus in rows.values())
    grids: dict[str, list[list[Any]]] = {"z": [], "text": [], "hover": [], "job": []}
    for gpus in rows.values():
        line = [*gpus, *[None] * (width - len(gpus))]
        grids["z"].append([None if cell is None else _level(cell, types, shade) for cell in line])
        grids["text"].append(["" if cell is None else _name(cell) for cell in line])
        grids["hover"].append(["" if cell is None else _hover(cell) for cell in line])
        grids["job"].append([None if cell is None else cell["job_id"] for cell in line])
    labels = [f"{escape(node)} · {gpus[0]['gpu_type']}" for node, gpus in rows.items()]
    drawn = figure(scheme, x="GPU on its node", y="Node · GPU type", height=height or max(220, 28 * len(rows) + 70))
    levels = 2 + SHADES * len(types)
    drawn.add_trace(
        go.Heatmap(
            z=grids["z"],
            x=list(range(width)),
            y=labels,
            text=grids["text"],
            texttemplate="%{text}" if len(cells) <= NAMED_CELLS else None,
            textfont={"size": 11},
            customdata=grids["job"],
            hovertext=grids["hover"],
            hovertemplate="%{hovertext}<extra></extra>",
            hoverongaps=False,
            colorscale=_scale(types, scheme),
            zmin=-0.5,
            zmax=levels - 0.5,
            showscale=False,
            xgap=2,
            ygap=2,
        )
    )
    drawn.update_xaxes(dtick=1, showline=False, fixedrange=True, range=[-0.5, width - 0.5])
    drawn.update_yaxes(autorange="reversed", showgrid=False, fixedrange=True, type="category")
    drawn.update_layout(hovermode="closest", margin={"t": 8})
    return drawn


def _rows(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Node -> its GPUs, nodes of one type together in the fixed order of types."""
    nodes: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        nodes.setdefault(str(cell["node"]), []).append(cell)
    rank = {name: index for index, name in enumerate(gpu_order(str(cell["gpu_type"]) for cell in cells))}
    return dict(sorted(nodes.items(), key=lambda item: rank[str(item[1][0]["gpu_type"])]))


def _shades(cells: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Job -> shade, in order of appearance, so that jobs side by side differ."""
    shade: dict[str, int] = {}
    for cell in cells:
        if cell["job_id"] is not None:
            shade.setdefault(str(cell["job_id"]), len(shade) % SHADES)
    return shade


def _level(cell: Mapping[str, Any], types: Sequence[str], shade: Mapping[str, int]) -> int:
    if cell["job_id"] is not None:
        return 2 + SHADES * types.index(str(cell["gpu_type"])) + shade[str(cell["job_id"])]
    return DRAINED if cell["drained"] else FREE


def _scale(types: Sequence[str], scheme: str | None) -> list[tuple[float, str]]:
    """Discrete bands: free, drained, then the shades of each type."""
    colours = palette(scheme)
    bands = [colours.free, colours.drained]
    for name in types:
        base = gpu_colour(name)
        bands += [base, mix(base, colours.card, 0.28), mix(base, "#000000" if scheme != "dark" else "#ffffff", 0.22)]
    return [(edge, colour) for index, colour in enumerate(bands) for edge in (index / len(bands), (index + 1) / len(bands))]


def _name(cell: Mapping[str, Any]) -> str:
    if cell["job_id"] is None:
        return "drained" if cell["drained"] else ""
    name = str(cell["job_name"] or cell["job_id"])
    return escape(name if len(name) <= _CHARACTERS else name[: _CHARACTERS - 1] + "…")


def _hover(cell: Mapping[str, Any]) -> str:
    holder = escape(str(cell["job_name"] or cell["job_id"])) if cell["job_id"] is not None else ("drained" if cell["drained"] else "free")
    tenant = f"<br>tenant {escape(str(cell['tenant']))}" if cell.get("tenant") else ""
    return f"{escape(str(cell['node']))} · GPU {cell['gpu']} · {escape(str(cell['gpu_type']))}<br>{holder}{tenant}"
