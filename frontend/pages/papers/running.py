"""Reproductions that run: how far each is, item by item as they end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.components.cards import card
from frontend.components.reproduce import cancel_button, cancelling, progress_bar, runs_words
from frontend.components.states import FINAL_STATES, state_chip
from frontend.formatting import plural
from frontend.papers import item_address, item_name, own_words, paper_name, size_of
from maat.api.papers import ReproducedItemOut, ReproductionOut


def running(
    live: Sequence[ReproductionOut], *, cancelling: Collection[str], may_run: bool
) -> list[Component]:
    """Return a card for each. `cancelling`: the operations that were asked to stop."""
    return [
        _card(each, is_cancelling=each["operation_id"] in cancelling, may_run=may_run)
        for each in live
    ]


def words_of(reproduction: ReproductionOut) -> str:
    """`Sia, quick: 3 of 19 items made`, or the only item's name."""
    items = reproduction["items"]
    size = size_of(quick=reproduction["quick"])
    own = own_words(reproduction["measurements"])
    head = f"{paper_name(reproduction['paper'])}, {size} {own}".strip()
    if len(items) == 1:
        return f"{head}: {item_name(items[0]['key'])}"
    ended = sum(item["state"] in FINAL_STATES for item in items)
    return f"{head}: {ended} of {plural(len(items), 'item')} ended"


def _card(reproduction: ReproductionOut, *, is_cancelling: bool, may_run: bool) -> Component:
    words, done, total = words_of(reproduction), reproduction["done"], reproduction["total"]
    far = runs_words(reproduction["state"], done, total)
    aside: list[Component] = [html.Span(far, className="caption")]
    if is_cancelling:
        aside.append(cancelling())
    elif may_run:
        aside.append(cancel_button(reproduction["operation_id"], words))
    line = dmc.Group(
        [html.Span(words), html.Div(aside, className="actions")], justify="space-between"
    )
    chips = [_chip(reproduction, item) for item in reproduction["items"]]
    items = html.Div(chips, className="chips") if len(chips) > 1 else None
    return card(None, [line, progress_bar(done, total), items])


def _chip(reproduction: ReproductionOut, item: ReproducedItemOut) -> Component:
    """An item's state; once it was made, the way to it."""
    far = runs_words(item["state"], item["done"], item["total"])
    chip = html.Span(
        state_chip(item["state"], item_name(item["key"])),
        title=item["failed"] or f"{item['state']}: {far}",
    )
    if item["state"] != "succeeded":
        return chip
    return dcc.Link(chip, href=item_address(reproduction["paper"], item["key"], reproduction["id"]))
