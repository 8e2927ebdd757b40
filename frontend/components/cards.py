"""Cards, tiles, facts, and the designed states of a panel: empty, failed, loading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component, ComponentType

from frontend.api import error_message
from frontend.attributes import aria
from frontend.components.once_seen import OnceSeen
from maat.client import ApiError

FORBIDDEN = 403

GRAPH_CONFIG: Any = {
    "displayModeBar": False,
    "displaylogo": False,
    "responsive": True,
    "scrollZoom": False,
}


def card(
    title: str | None,
    children: ComponentType,
    *,
    aside: Component | None = None,
    className: str = "",
    mb: int | None = None,
) -> Component:
    """A titled panel with a hairline."""
    head = (
        [
            dmc.Group(
                [html.H2(title, className="card-title"), *([aside] if aside is not None else [])],
                justify="space-between",
                gap=8,
                className="card-head",
            )
        ]
        if title
        else []
    )
    panel: Component = dmc.Paper(
        [*head, *(children if isinstance(children, list) else [children])],
        className=f"card {className}".strip(),
        withBorder=True,
        mb=mb,
    )
    return panel


def definition(of: str, *, text_id: str) -> dmc.Popover:
    """A button that opens the meaning of a figure; the figure fills the element `text_id`."""
    button: Any = {
        "component": "button",
        "type": "button",
        "className": "define-button",
        "w": 24,
        **aria(f"What {of} means"),
    }
    waiting = "It comes with the first run that finishes."
    text = html.Div(waiting, id=text_id, className="define-text")
    return dmc.Popover(
        [dmc.PopoverTarget("i", boxWrapperProps=button), dmc.PopoverDropdown(text)],
        width="min(360px, calc(100vw - 32px))",
        position="bottom-end",
        withArrow=True,
        shadow="sm",
    )


def many_charts(graph_id: str) -> html.Div:
    """The place of a chart that has several side by side: on a phone it scrolls sideways."""
    return html.Div(graph(graph_id), className="side-by-side")


def graph(graph_id: str, *, height: int | str | None = None) -> html.Div:
    """A chart's place, in pixels or as a CSS length; without a height the figure brings its own.

    assets/chart_words.js reads the drawn chart and states it in words and as a table too.
    """
    style = (
        {} if height is None else {"height": f"{height}px" if isinstance(height, int) else height}
    )
    waiting = {"data": [], "layout": {"meta": {"state": "waiting"}}}  # assets/graph_later.js
    drawn = dcc.Graph(id=graph_id, figure=waiting, config=GRAPH_CONFIG, style=style)
    table = html.Div(
        className="chart-table", tabIndex=0, role="region", **aria("The chart as a table")
    )
    own_height = " own-height" if height is None else ""
    return html.Div(
        [drawn, _chart_tools(), table, _again()],
        className=f"graph loading{own_height}",
        style=style,
    )


def _chart_tools() -> html.Div:
    """The buttons of a chart; assets/chart_tools.js and chart_words.js carry them out."""
    named = (("all", "All", "Show all of the axis"), ("csv", "CSV", "Save the chart's data as CSV"))
    buttons = [_tool(text, words, **{"data-tool": tool}) for tool, text, words in named]
    buttons.append(_tool("PNG", "Save the chart as a picture", **{"data-tool": "png"}))
    opens = {"aria-pressed": "false"}
    toggle = _tool("Table", "Show the chart as a table", className="chart-toggle", **opens)
    return html.Div([*buttons, toggle], className="chart-tools")


def _tool(text: str, words: str, *, className: str = "chart-tool", **more: Any) -> html.Button:
    return html.Button(text, type="button", className=className, title=words, **aria(words), **more)


def scrolls(content_id: str, content: ComponentType = None, *, label: str) -> html.Div:
    """A place with a name for a table wider than the page, which scrolls by pointer and by keys."""
    return html.Div(
        content, id=content_id, className="scroll-x", tabIndex=0, role="region", **aria(label)
    )


def tile(label: str, value: str, note: str | None = None, *, href: str | None = None) -> Component:
    """A figure to read at a glance: what it is, the number, what it is measured against."""
    content = [
        html.Div(label, className="tile-label"),
        html.Div(value, className="tile-value"),
        html.Div(note or "\u00a0", className="tile-note"),
    ]
    body = dmc.Paper(content, className="card tile", withBorder=True)
    return dcc.Link(body, href=href, className="tile-link") if href else body


def failed_tile(label: str, error: Exception) -> Component:
    """A tile whose figure could not be loaded, and a button that asks for it again."""
    title, remedy = error_message(error)
    content = [
        html.Div(label, className="tile-label"),
        html.Div(["⚠ ", title], className="tile-note", title=remedy),
        _again(),
    ]
    body = dmc.Paper(content, className="card tile", withBorder=True)
    return html.Div(body, role="alert")


def facts(pairs: Sequence[tuple[str, ComponentType]]) -> html.Dl:
    """Names and values in two columns."""
    return html.Dl(
        [part for name, value in pairs for part in (html.Dt(name), html.Dd(value))],
        className="facts",
    )


def skeleton(height: int) -> dmc.Skeleton:
    return dmc.Skeleton(height=height, radius="sm")


def empty_state(title: str, remedy: ComponentType, *, action: Component | None = None) -> html.Div:
    """Nothing here, why, and what to do."""
    return html.Div(
        [
            html.Div(title, className="state-title"),
            html.Div(remedy, className="state-remedy"),
            *([action] if action is not None else []),
        ],
        className="panel-state",
        role="status",
    )


def folded(
    title: str, content: ComponentType, *, box_id: str, is_open: bool = False
) -> html.Details:
    """A folded part of a page; a search of the browser finds its text."""
    return html.Details(
        [html.Summary(title), html.Div(content, className="form-stack")],
        id=box_id,
        className="folded",
        open=is_open,
    )


def folded_fields(
    title: str, fields: ComponentType, *, box_id: str, is_open: bool = False
) -> html.Details:
    """A folded part of a form; callbacks read and fill its fields while it is folded."""
    return folded(title, OnceSeen(fields), box_id=box_id, is_open=is_open)


def missing(title: str, remedy: str, words: str, href: str) -> Component:
    """Shown instead of a page whose thing does not exist: the likely reason and a way on."""
    return card(
        None, empty_state(title, remedy, action=link_button(words, href, variant="primary"))
    )


def error_state(error: Exception) -> html.Div:
    """What could not be loaded, what to do, and a button that asks for it again.

    Who lacks the right for it is led to what the account may do: to ask again would not help.
    """
    if isinstance(error, ApiError) and error.status == FORBIDDEN:
        way = dcc.Link("What you may do", href="/account", className="button-link")
        return _failed(error, way)
    return _failed(error, _again())


def refused_state(error: Exception) -> html.Div:
    """Why what was asked for is not done, and what to do: the button that asked is still there."""
    return _failed(error)


def _failed(error: Exception, *more: Component) -> html.Div:
    """The text comes from the service's problem document."""
    title, remedy = error_message(error)
    return html.Div(
        [
            html.Div(["⚠ ", title], className="state-title"),
            html.Div(remedy, className="state-remedy"),
            *more,
        ],
        className="panel-state failed",
        role="alert",
    )


def _again() -> html.Button:
    """assets/again.js knows it by its class."""
    return html.Button("Try again", className="button-link again", type="button")


def page_title(title: str, *actions: Component, note: Component | None = None) -> dmc.Group:
    return dmc.Group(
        [
            dmc.Group(
                [html.H1(title, className="page-title"), *([note] if note is not None else [])],
                gap=12,
            ),
            dmc.Group(list(actions), gap=8),
        ],
        justify="space-between",
        className="page-head",
    )


def link_button(text: str, href: str, *, variant: str = "default") -> dcc.Link:
    """A link that looks like a button. It leads to the cluster that is shown."""
    return dcc.Link(
        text, href=href, className=f"button-link {variant}", id={"to": href, "words": text}
    )
