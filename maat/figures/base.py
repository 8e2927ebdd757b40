"""Parts of every figure: axes, messages, step lines, labels of lines, the limit of points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from maat.figures.texts import escape
from maat.figures.theme import legible, palette, template

MAX_POINTS = 2000
MAX_LABELLED_LINES = 4
LABEL_SHARE = 0.12  # of the y axis: a label's line on the lowest chart
MESSAGE_CHARACTERS = 46  # of a line of a message: it fits a phone
LINE_CHARACTERS = 24  # of the name of a run beside its row
# Pixels of the margins with a legend of one line, and with labels of two.
LEGEND_ABOVE, TWO_LINES_BELOW = 46, 64


def figure(
    scheme: str | None,
    *,
    x: str,
    y: str,
    height: int | None = None,
    traces: Sequence[Any] = (),
    two_lines: bool = False,
) -> go.Figure:
    """A figure whose axes are titled, with units.

    `two_lines`: labels of the x axis have a second line, as the first time of a day has.
    """
    layout = {
        "template": template(scheme),
        "height": height,
        "uirevision": "keep",
        "xaxis": {"title": {"text": x}},
        "yaxis": {"title": {"text": y}},
        "margin": {"b": TWO_LINES_BELOW} if two_lines else {},
    }
    return go.Figure(data=list(traces), layout=layout)


def message_figure(
    scheme: str | None, title: str, remedy: str, *, height: int | None = None, failed: bool = False
) -> go.Figure:
    """Return a figure without axes that says why there is no chart, and what to do."""
    colours = palette(scheme)
    drawn = go.Figure(layout={"template": template(scheme), "height": height})
    drawn.update_layout(margin={"l": 8, "r": 8})  # without axes the words stand in the middle
    lines = "<br>".join(escape(line) for line in wrap(remedy, MESSAGE_CHARACTERS))
    drawn.update_xaxes(visible=False)
    drawn.update_yaxes(visible=False)
    below = f"<br><span style='color:{colours.muted};font-size:12px'>{lines}</span>"
    drawn.add_annotation(
        text=escape(title) + (below if lines else ""),
        font={"size": 14, "color": colours.danger if failed else colours.text},
        showarrow=False,
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
    )
    drawn.update_layout(meta={"state": "error" if failed else "empty"})
    return drawn


def empty_figure(
    scheme: str | None, title: str, remedy: str = "", *, height: int | None = None
) -> go.Figure:
    return message_figure(scheme, title, remedy, height=height)


def error_figure(
    scheme: str | None,
    title: str,
    remedy: str = "Reload the page to try again.",
    *,
    height: int | None = None,
) -> go.Figure:
    return message_figure(scheme, title, remedy, height=height, failed=True)


def thinned(points: Sequence[object], limit: int = MAX_POINTS) -> list[int]:
    """Return the indices of at most `limit` points, the first and the last among them.

    The service reduces its series already; this is a second limit.
    """
    count = len(points)
    if count <= limit:
        return list(range(count))
    return [round(index * (count - 1) / (limit - 1)) for index in range(limit)]


def step_line(
    name: str,
    x: Sequence[object],
    y: Sequence[object],
    *,
    colour: str,
    dash: str = "solid",
    width: float = 2,
    **more: object,
) -> go.Scatter:
    """A line that holds its value until the next round."""
    kept = thinned(x)
    return go.Scatter(
        name=escape(name),
        x=[x[i] for i in kept],
        y=[y[i] for i in kept],
        mode="lines",
        line={"shape": "hv", "color": colour, "width": width, "dash": dash},
        **more,
    )


def label_or_legend(
    drawn: go.Figure,
    scheme: str | None,
    ends: Mapping[str, tuple[object, float, str]],
    *,
    span: float,
    x: tuple[object, object],
) -> None:
    """Name each line at its end if there are few lines, else in a legend.

    Args:
        ends: Name of a line -> its last x, its last y, its colour.
        span: Height of the y axis.
        x: Ends of the x axis. They are set because a label would stretch the axis.
    """
    if len(ends) > MAX_LABELLED_LINES:
        drawn.update_layout(xaxis_range=list(x), showlegend=True, margin_t=LEGEND_ABOVE)
        return
    labels, placed = [], list[float]()
    for name, (end, y, colour) in sorted(ends.items(), key=lambda item: item[1][1]):
        at = y
        if placed and span > 0:
            at = max(at, placed[-1] + span * LABEL_SHARE)
        placed.append(at)
        label = {
            "text": escape(name),
            "x": end,
            "y": at,
            "xanchor": "left",
            "yanchor": "middle",
            "xshift": 6,
            "showarrow": False,
            "font": {"size": 12, "color": legible(colour, scheme)},
        }
        labels.append(label)
    longest = max((len(name) for name in ends), default=0)
    drawn.update_layout(
        annotations=[*drawn.layout.annotations, *labels],
        xaxis_range=list(x),
        margin_r=max(72, 20 + 7 * longest),
    )


def name_runs(drawn: go.Figure, names: Iterable[str]) -> None:
    """Name the rows of a figure by runs; a long name has its policy and its placer on two lines."""
    rows = [escape(name) for name in names]
    lines = [row if len(row) <= LINE_CHARACTERS else row.replace(" + ", "<br>+ ") for row in rows]
    drawn.update_yaxes(tickvals=rows, ticktext=lines)


def whole_ticks(highest: float) -> dict[str, float]:
    """Ticks of an axis that counts: whole numbers only, about five of them."""
    return {"dtick": 1} if highest <= 6 else {}


def rule(
    drawn: go.Figure,
    scheme: str | None,
    *,
    x: float | None = None,
    y: float | None = None,
    text: str,
) -> None:
    """A reference line with its name (rho = 1, capacity)."""
    colours = palette(scheme)
    line = {"color": colours.muted, "width": 1, "dash": "dot"}
    words = {"text": text, "showarrow": False, "font": {"size": 12, "color": colours.muted}}
    shapes, notes = [], []
    if x is not None:
        shapes.append({"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "y domain"})
        notes.append({"x": x, "y": 0, "yref": "y domain"})
    if y is not None:
        shapes.append({"x0": 0, "x1": 1, "xref": "x domain", "y0": y, "y1": y})
        notes.append({"x": 0, "xref": "x domain", "y": y})
    corner = {"xanchor": "left", "yanchor": "bottom"}
    drawn.update_layout(
        shapes=[*drawn.layout.shapes, *({"type": "line", "line": line, **one} for one in shapes)],
        annotations=[*drawn.layout.annotations, *({**words, **corner, **one} for one in notes)],
    )
