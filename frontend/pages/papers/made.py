"""Reproductions that have ended, newest first, with their reports as files."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import aria
from frontend.components.cards import empty_state
from frontend.components.states import state_chip
from frontend.formatting import clock
from frontend.papers import item_address, item_name, own_words, paper_name, size_of
from maat.api.papers import ReproductionOut
from maat.client.calls import PREFIX

FORMS = (("html", "HTML"), ("md", "Markdown"))
_HEADS = ("Paper", "Items", "Runs of", "State", "Begun (UTC)", "Report")


def made_table(ended: Sequence[ReproductionOut]) -> Component:
    if not ended:
        return empty_state(
            "No reproduction has ended yet",
            "Choose an item above, or all of a paper: its report stays here.",
        )
    head = html.Thead(html.Tr([html.Th(words) for words in _HEADS]))
    return html.Table([head, html.Tbody([_row(each) for each in ended])], className="plain-table")


def _row(reproduction: ReproductionOut) -> html.Tr:
    cells = (
        paper_name(reproduction["paper"]),
        _items(reproduction),
        f"{size_of(quick=reproduction['quick'])} {own_words(reproduction['measurements'])}".strip(),
        state_chip(reproduction["state"]),
        clock(reproduction["created_at"]),
        _files(reproduction),
    )
    return html.Tr([html.Td(cell) for cell in cells])


def _items(reproduction: ReproductionOut) -> Component | str:
    """Return the way to the only item, or how many of several were made."""
    items = reproduction["items"]
    if len(items) == 1:
        address = item_address(reproduction["paper"], items[0]["key"], reproduction["id"])
        return dcc.Link(item_name(items[0]["key"]), href=address)
    return f"{_made(reproduction)} of {len(items)} made"


def _made(reproduction: ReproductionOut) -> int:
    return sum(item["state"] == "succeeded" for item in reproduction["items"])


def _files(reproduction: ReproductionOut) -> html.Div:
    if not _made(reproduction):
        return html.Div()
    return html.Div(report_links(reproduction["id"], reproduction["paper"]), className="legend")


def report_links(reproduction_id: str, paper: str) -> list[html.A]:
    """Return the reports of all that a reproduction made, to save."""
    return [
        html.A(
            label,
            href=f"{PREFIX}/reproductions/{reproduction_id}/report/{form}",
            download=f"{paper}.{form}",
            **aria(f"Save the report of {paper_name(paper)} as {label}"),
        )
        for form, label in FORMS
    ]
