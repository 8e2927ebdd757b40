"""The cluster map: one cell per GPU, nodes as rows, coloured by GPU type, with the job that holds it. One heatmap trace, whatever the size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from zlib import crc32

import plotly.graph_objects as go

from frontend.figures.base import empty_figure, figure
from frontend.theme import gpu_colour, gpu_order, mix, palette, readable_on

SHADES = 3
FREE, DRAINED = 0, 1
NAMED_CELLS = 160
_CHARACTERS = 5


def cluster_map_figure(cells: Sequence[Mapping[str, Any]], *, scheme: str | None) -> go.Figure:
    """Heatmap: GPU number on its node x node; colour = type of the GPU in use, shaded by job so that neighbours differ; grey = free.

    `layout.meta.jobs` holds the job of every cell, for the script that dims the others under the pointer.
    """
    if not cells:
        return empty_figure(scheme, "This cluster has no node", "Add nodes: POST /api/v1/clusters/{id}/nodes.")
    rows = _rows(cells)
    types = gpu_order(str(cell["gpu_type"]) for cell in cells)
    shade = _shades(cells)
    width = max(len(gpus) for gpus in rows.values())
    grids: dict[str, list[list[Any]]] = {"z": [], "hover": [], "job": []}
    for gpus in rows.values():
        line = [*gpus, *[None] * (width - len(gpus))]
        grids["z"].append([None if cell is None else _level(cell, types, shade) for cell in line])
        grids["hover"].append(["" if cell is None else _hover(cell) for cell in line])
        grids["job"].append([None if cell is None else cell["job_id"] for cell in line])
    labels = [_row_label(node, str(gpus[0]["gpu_type"])) for node, gpus in rows.items()]
    drawn = figure(
        scheme,
        x="GPU on its node",
        y="Node · GPU type",
    )
    levels = 2 + SHADES * len(types)
    drawn.add_trace(
        go.Heatmap(
            z=grids["z"],
            x=list(range(width)),
            y=labels,
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
    if len(cells) <= NAMED_CELLS:
        drawn.update_layout(
            annotations=[note for row, gpus in zip(labels, rows.values(), strict=True) for note in _names(row, gpus, types, shade, scheme)]
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
    """Job -> shade: by its id, so that it keeps its shade from round to round; the next one where the job at its left has the same."""
    shade: dict[str, int] = {}
    for left, cell in zip([None, *cells], cells, strict=False):
        job = cell["job_id"]
        if job is None or job in shade:
            continue
        own = crc32(str(job).encode()) % SHADES
        neighbour = left["job_id"] if left is not None and left["node"] == cell["node"] else None
        shade[job] = (own + 1) % SHADES if neighbour is not None and shade[neighbour] == own else own
    return shade


def _level(cell: Mapping[str, Any], types: Sequence[str], shade: Mapping[str, int]) -> int:
    if cell["job_id"] is not None:
        return 2 + SHADES * types.index(str(cell["gpu_type"])) + shade[str(cell["job_id"])]
    return DRAINED if cell["drained"] else FREE


def _bands(types: Sequence[str], scheme: str | None) -> list[str]:
    """Level -> colour: free, drained, then the shades of each type."""
    colours = palette(scheme)
    bands = [colours.free, colours.drained]
    for name in types:
        base = gpu_colour(name)
        bands += [base, mix(base, colours.card, 0.28), mix(base, "#000000" if scheme != "dark" else "#ffffff", 0.22)]
    return bands


def _scale(types: Sequence[str], scheme: str | None) -> list[tuple[float, str]]:
    """The bands as a colour scale of equal steps."""
    bands = _bands(types, scheme)
    return [(edge, colour) for index, colour in enumerate(bands) for edge in (index / len(bands), (index + 1) / len(bands))]


def _row_label(node: str, gpu_type: str) -> str:
    return escape(node) if node.lower().startswith(gpu_type.lower()) else f"{escape(node)} · {escape(gpu_type)}"


def _names(
    row: str, gpus: Sequence[Mapping[str, Any]], types: Sequence[str], shade: Mapping[str, int], scheme: str | None
) -> list[dict[str, Any]]:
    """The job's name across the cells that it holds side by side, its end kept where it is long: names of one series differ there."""
    bands = _bands(types, scheme)
    notes, start = [], 0
    for end in range(1, len(gpus) + 1):
        if end < len(gpus) and _holder(gpus[end]) == _holder(gpus[start]):
            continue
        if _holder(gpus[start]):
            room = _CHARACTERS * (end - start) - 1
            name = _holder(gpus[start])
            notes.append(
                {
                    "x": (start + end - 1) / 2,
                    "y": row,
                    "text": escape(name if len(name) <= room else "…" + name[-(room - 1) :]),
                    "showarrow": False,
                    "font": {"size": 11, "color": readable_on(bands[_level(gpus[start], types, shade)])},
                }
            )
        start = end
    return notes


def _holder(cell: Mapping[str, Any]) -> str:
    if cell["job_id"] is None:
        return "out" if cell["drained"] else ""
    return str(cell["job_name"] or cell["job_id"])


def _hover(cell: Mapping[str, Any]) -> str:
    holder = escape(str(cell["job_name"] or cell["job_id"])) if cell["job_id"] is not None else ("drained" if cell["drained"] else "free")
    tenant = f"<br>tenant {escape(str(cell['tenant']))}" if cell.get("tenant") else ""
    return f"{escape(str(cell['node']))} · GPU {cell['gpu']} · {escape(str(cell['gpu_type']))}<br>{holder}{tenant}"
