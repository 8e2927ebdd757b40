"""Figures of several panels: side by side, one above the other, in a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from maat.figures.theme import template

PANEL_WIDTH, PANEL_HEIGHT = 460, 420
ABOVE_TITLES, BELOW_AXES = 40, 100  # pixels of a grid of panels


def side_by_side(*panels: go.Figure) -> go.Figure:
    """Return one figure with a panel for each, from left to right; a legend name is shown once."""
    drawn = make_subplots(rows=1, cols=len(panels), horizontal_spacing=0.12 / len(panels) + 0.04)
    for column, panel in enumerate(panels, start=1):
        _add(drawn, panel, row=1, column=column, index=column)
    return _finished(drawn, panels, rows=1, columns=len(panels))


def stacked(*panels: go.Figure) -> go.Figure:
    """Return one figure with a panel for each, from above to below, on one shared x axis."""
    drawn = make_subplots(rows=len(panels), cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for row, panel in enumerate(panels, start=1):
        _add(drawn, panel, row=row, column=1, index=row)
        if row < len(panels):
            drawn.update_xaxes(title_text="", row=row, col=1)
    return _finished(drawn, panels, rows=len(panels), columns=1)


def grid(panels: Mapping[str, go.Figure], *, columns: int = 3) -> go.Figure:
    """Return one figure with a titled panel for each, row by row."""
    rows = -(-len(panels) // columns)
    drawn = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=list(panels),
        horizontal_spacing=0.09,
        vertical_spacing=0.34 / rows,
    )
    for place, panel in enumerate(panels.values()):
        row, column = divmod(place, columns)
        _add(drawn, panel, row=row + 1, column=column + 1, index=place)
    finished = _finished(drawn, tuple(panels.values()), rows=rows, columns=columns)
    height = 330 * rows + ABOVE_TITLES
    return finished.update_layout(
        width=330 * columns,
        height=height,
        margin={"t": 40 + ABOVE_TITLES},
        legend_y=1 + ABOVE_TITLES / (330 * rows - BELOW_AXES),
    )


def _add(drawn: go.Figure, panel: go.Figure, *, row: int, column: int, index: int) -> None:
    shown = {trace.name for trace in drawn.data if trace.showlegend is not False}
    for trace in panel.data:
        copy = type(trace)(trace)
        if copy.name is not None:
            copy.update(legendgroup=copy.name)
            if copy.name in shown or panel.layout.showlegend is False:
                copy.update(showlegend=False)
        if getattr(copy, "stackgroup", None):
            copy.update(stackgroup=f"{copy.stackgroup} {index}")
        drawn.add_trace(copy, row=row, col=column)
    drawn.update_xaxes(_axis(panel.layout.xaxis), row=row, col=column)
    drawn.update_yaxes(_axis(panel.layout.yaxis), row=row, col=column)


def _axis(axis: Any) -> dict[str, Any]:
    """Return what a panel's axis says, without where it stood."""
    kept: dict[str, Any] = axis.to_plotly_json()
    return {key: value for key, value in kept.items() if key not in ("anchor", "domain", "matches")}


def _finished(
    drawn: go.Figure, panels: tuple[go.Figure, ...], *, rows: int, columns: int
) -> go.Figure:
    barmode = next((p.layout.barmode for p in panels if p.layout.barmode), None)
    drawn.update_layout(
        template=panels[0].layout.template or template(None),
        barmode=barmode,
        showlegend=any(panel.layout.showlegend is not False for panel in panels),
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        width=PANEL_WIDTH * columns if columns > 1 else None,
        height=(PANEL_HEIGHT if rows == 1 else 180 * rows + 100),
        margin={"t": 70},
    )
    return drawn
