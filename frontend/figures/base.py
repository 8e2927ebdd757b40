"""Parts of every figure: axes, messages, step lines, labels of lines, the limit of points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap

import plotly.graph_objects as go

from frontend.figures.texts import escape
from frontend.theme import legible, palette, template

MAX_POINTS = 2000
MAX_LABELLED_LINES = 4
LABEL_SHARE = 0.12  # of the y axis: a label's line on the lowest chart
MESSAGE_CHARACTERS = 46  # of a line of a message: it fits a phone
LINE_CHARACTERS = 24  # of the name of a run beside its row


def figure(scheme: str | None, *, x: str, y: str, height: int | None = None) -> go.Figure:
    """An empty figure whose axes are titled, with units."""
    drawn = go.Figure(layout={"template": template(scheme), "height": height, "uirevision": "keep"})
    drawn.update_xaxes(title_text=x)
    drawn.update_yaxes(title_text=y)
    return drawn


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
    drawn.add_annotation(
        text=(
            f"{escape(title)}<br><span style='color:{colours.muted};font-size:12px'>{lines}</span>"
        ),
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
    scheme: str | None, title: str, remedy: str, *, height: int | None = None
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
    drawn.update_xaxes(range=list(x))
    if len(ends) > MAX_LABELLED_LINES:
        drawn.update_layout(showlegend=True, margin={"t": 40})
        return
    placed: list[float] = []
    for name, (end, y, colour) in sorted(ends.items(), key=lambda item: item[1][1]):
        at = y
        if placed and span > 0:
            at = max(at, placed[-1] + span * LABEL_SHARE)
        placed.append(at)
        drawn.add_annotation(
            text=escape(name),
            x=end,
            y=at,
            xanchor="left",
            yanchor="middle",
            xshift=6,
            showarrow=False,
            font={"size": 12, "color": legible(colour, scheme)},
        )
    longest = max((len(name) for name in ends), default=0)
    drawn.update_layout(margin={"r": max(72, 20 + 7 * longest)})


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
    if x is not None:
        drawn.add_vline(
            x=x,
            line=line,
            annotation_text=text,
            annotation_position="bottom right",
            annotation_font={"size": 12, "color": colours.muted},
        )
    if y is not None:
        drawn.add_hline(
            y=y,
            line=line,
            annotation_text=text,
            annotation_position="top left",
            annotation_font={"size": 12, "color": colours.muted},
        )
