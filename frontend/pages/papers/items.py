"""The items of the papers: how many can be made, what each shows, costs, and was made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dash import dcc, html
from dash.development.base_component import Component, ComponentType

from frontend.attributes import Props
from frontend.components.cards import card, tile
from frontend.components.reproduce import reproduce_buttons, runs_words
from frontend.components.states import FINAL_STATES, state_chip
from frontend.formatting import clock
from frontend.papers import (
    QUICK,
    cost_of,
    item_address,
    item_names,
    minutes,
    own_words,
    paper_name,
    possible,
    size_of,
    whole_words,
)
from maat.api.papers import NewestOut, PaperItemOut, PaperOut, PapersOut


@dataclass(frozen=True)
class Offer:
    """What the reader may reproduce. `most_whole`: runs of a whole one; `own`: uploads by kind."""

    may_run: bool
    most_whole: int
    own: Mapping[str, str]


_LOOKS = {
    "possible now": ("✓", "green"),
    "needs data": ("◔", "yellow"),
    "needs hardware": ("✗", "gray"),
    "takes other data": ("✗", "gray"),
}
_HEADS = ("Item", "Shows", "Now", "CPU min, quick / whole", "Last result", "")
_KINDS = ("", "shows", "now", "number", "last-result", "ways")


def tiles(papers: Sequence[PaperOut], chosen: str | None) -> list[Component]:
    """Return how much of each paper can be made and was made; each leads to its items alone."""
    return [
        tile(
            paper_name(paper["name"]),
            f"{len(possible(paper['items']))} of {len(paper['items'])}",
            f"can be made now, {_made(paper)} made so far",
            href="/papers" if paper["name"] == chosen else f"/papers?paper={paper['name']}",
        )
        for paper in papers
    ]


def _made(paper: PaperOut) -> int:
    return sum(item["newest_made"] is not None for item in paper["items"])


def data_note(papers: PapersOut, *, may_run: bool) -> list[Component]:
    """Say what stands in for published data, and who may reproduce."""
    lines = []
    if papers["data_problem"]:
        lines.append(papers["data_problem"])
    elif not papers["has_data"]:
        lines.append(
            "The service has no published data: models of the catalog and generated traces stand "
            "in where they can. An operator names the folder as MAAT_DATA."
        )
    if not may_run:
        lines.append("Your account may look; one that may run simulations can reproduce.")
    return [html.Div(line, className="told-line") for line in lines]


def sections(
    papers: PapersOut,
    chosen: str | None,
    *,
    may_run: bool,
    own: Mapping[str, str] | None = None,
) -> list[Component]:
    """Return a card for each paper, or for the chosen one. `own`: the chosen uploads by kind."""
    shown = [paper for paper in papers["papers"] if chosen in (None, paper["name"])]
    offer = Offer(may_run, papers["most_whole_runs"], own or {})
    return [_section(paper, offer) for paper in shown]


def _section(paper: PaperOut, offer: Offer) -> Component:
    can, name = possible(paper["items"]), paper_name(paper["name"])
    buttons: list[Component] = []
    if offer.may_run and can:
        buttons = reproduce_buttons(
            paper["name"], can, is_whole_paper=True, most_whole=offer.most_whole, own=offer.own
        )
    whole = f"; {whole_words(can, offer.most_whole)}" if offer.most_whole else ""
    words = f"quick: {cost_of(can, QUICK)}{whole}"
    cost = html.Span(words, className="caption") if buttons else None
    aside = html.Div([cost, *buttons], className="actions")
    kinds = _KINDS if buttons else (*_KINDS[:-1], "")
    heads = zip(_HEADS, kinds, strict=True)
    head = html.Thead(html.Tr([html.Th(words, className=kind) for words, kind in heads]))
    rows = [_row(paper["name"], item, kinds, offer) for item in paper["items"]]
    table = html.Table([head, html.Tbody(rows)], className="plain-table stacks items")
    title = html.Div(paper["title"], className="caption")
    return card(name, [title, html.Div(table, className="scroll-x")], aside=aside)


def _row(paper: str, item: PaperItemOut, kinds: Sequence[str], offer: Offer) -> html.Tr:
    """`kinds`: the class of each column."""
    link = dcc.Link(item_names(item), href=item_address(paper, item["key"], **offer.own))
    cells: list[ComponentType] = [
        [item["title"], *_below(item)],
        standing_chip(item["standing"]),
        _cost(item, offer),
        last_result(item),
        _buttons(paper, item, offer),
    ]
    return html.Tr(
        [
            html.Th(link, scope="row"),
            *(
                html.Td(content, className=f"wraps {kind}", **_before(head))
                for head, kind, content in zip(_HEADS[1:], kinds[1:], cells, strict=True)
            ),
        ]
    )


def _cost(item: PaperItemOut, offer: Offer) -> list[str | Component]:
    """Return CPU minutes, quick and whole, and the runs of a whole one."""
    words = f"{minutes(item['quick_cpu_minutes'])} / {minutes(item['whole_cpu_minutes'])}"
    if not item["whole_runs"]:
        return [words]
    return [words, html.Div(whole_words([item], offer.most_whole), className="caption")]


def _before(head: str) -> Props:
    """Return what a phone shows before a cell, where each stands on a line of its own."""
    return {"data-head": head}


def _below(item: PaperItemOut) -> list[Component]:
    """Return why an item cannot be made, and on what it runs, below what it shows.

    The item's page says the rest of why it cannot be made, as does the line's title.
    """
    lines: list[Component] = []
    if item["because"]:
        why, _, rest = item["because"].partition(". ")
        sentence = f"{why}." if rest else why
        lines.append(html.Div(sentence, className="caption", title=item["because"]))
    if item["emulated"]:
        words = "On emulated devices; the paper's ran on real ones."
        lines.append(html.Div(words, className="caption"))
    return lines


def standing_chip(standing: str) -> html.Span:
    """Whether an item can be made now: glyph, words, hue."""
    glyph, hue = _LOOKS.get(standing, ("?", "gray"))
    return html.Span(
        [html.Span(glyph, className="state-glyph"), standing], className=f"state state-{hue}"
    )


def last_result(item: PaperItemOut) -> list[Component]:
    """Return how far the newest reproduction is, or how and when it ended."""
    newest, made = item["newest"], item["newest_made"]
    if newest is None:
        return [html.Span("not made yet", className="caption")]
    lines: list[Component] = [result_chip(newest)]
    if made is not None and newest["state"] != "succeeded":
        lines.append(html.Div(f"made {_when(made)}", className="caption"))
    return lines


def result_chip(newest: NewestOut) -> html.Span:
    """`● 3 of 5 runs`, `✓ quick, 28 Nov 10:00:00`."""
    state = newest["state"]
    if state not in FINAL_STATES:
        return state_chip(state, runs_words(state, newest["done"], newest["total"]))
    words = _when(newest)
    return state_chip(state, words if state == "succeeded" else f"{state}, {words}")


def _when(newest: NewestOut) -> str:
    words = [size_of(quick=newest["quick"]), own_words(newest["measurements"])]
    when = [] if newest["finished_at"] is None else [clock(newest["finished_at"])]
    return ", ".join([" ".join(filter(None, words)), *when])


def _buttons(paper: str, item: PaperItemOut, offer: Offer) -> html.Div:
    is_live = item["newest"] is not None and item["newest"]["state"] not in FINAL_STATES
    if not offer.may_run or is_live or item["because"] is not None:
        return html.Div()
    buttons = reproduce_buttons(paper, [item], most_whole=offer.most_whole, own=offer.own)
    return html.Div(buttons, className="actions")
