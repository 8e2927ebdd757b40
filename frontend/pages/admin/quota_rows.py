"""The tables of quotas: one row for each tenant and GPU type, and one for each GPU type."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from frontend.attributes import aria, click_target
from frontend.components.cards import empty_state
from frontend.components.quota_bar import quota_bar
from frontend.components.states import gpu_chip
from frontend.pages.admin.quota_dialog import pressed_for
from maat.api.quotas import QuotaOut, QuotaPage, QuotaTypeOut

_COLUMNS = (
    "Tenant",
    "Weight",
    "GPU type",
    "",
    "In use",
    "Guaranteed",
    "Ceiling",
    "Borrowed",
    "Lent",
)


def quota_table(found: QuotaPage, *, may: bool) -> Component:
    """The quotas, one row for each tenant and GPU type."""
    if not found["items"]:
        return empty_state(
            "No quota", "Every tenant may hold all GPUs, and none is guaranteed any."
        )
    gpus = {one["gpu_type"]: one["gpus"] for one in found["gpu_types"]}
    head = _head(*_COLUMNS[:4], numbers=_COLUMNS[4:], last=("",))
    rows = [_row(one, gpus=gpus.get(one["gpu_type"], 0), may=may) for one in found["items"]]
    more = "These are not all: maat quotas lists the others." if found["next_cursor"] else ""
    table = html.Table([head, html.Tbody(rows)], className="plain-table")
    return html.Div([table, html.Div(more, className="hint")])


def _row(one: QuotaOut, *, gpus: int, may: bool) -> html.Tr:
    change = dmc.Button(
        "Change",
        variant="subtle",
        size="compact-xs",
        **click_target("admin-quota-pressed", **pressed_for(one)),
        **aria(f"Change the quota of {one['tenant']} on {one['gpu_type']}"),
    )
    ceiling = "none" if one["ceiling"] is None else str(one["ceiling"])
    counts = [one["in_use"], one["guaranteed"], ceiling, one["borrowed"], one["lent"]]
    return html.Tr(
        [
            html.Td(one["tenant"]),
            html.Td(f"{one['weight']:g}"),
            html.Td(gpu_chip(one["gpu_type"])),
            html.Td(quota_bar(one, gpus=gpus)),
            *(html.Td(str(count), className="number") for count in counts),
            html.Td(change if may else ""),
        ]
    )


def type_table(types: Sequence[QuotaTypeOut]) -> Component:
    """What there is of each GPU type, and how much of it is promised."""
    names = ("GPU type", "GPUs", "In service", "In use", "Guaranteed to all", "Not guaranteed")
    rows = []
    for one in types:
        given = one["guaranteed"]
        left = "–" if given is None else str(one["gpus"] - given)
        counts = [one["gpus"], one["in_service"], one["in_use"], "–" if given is None else given]
        cells = [html.Td(str(count), className="number") for count in (*counts, left)]
        rows.append(html.Tr([html.Td(gpu_chip(one["gpu_type"])), *cells]))
    head = _head(names[0], numbers=names[1:])
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def _head(*words: str, numbers: Sequence[str], last: Sequence[str] = ()) -> html.Thead:
    """Name the columns; those of numbers stand at the right, as the numbers do."""
    cells = [
        *(html.Th(name) for name in words),
        *(html.Th(name, className="number") for name in numbers),
        *(html.Th(name) for name in last),
    ]
    return html.Thead(html.Tr(cells))
