"""Parts of an item's page: what it says, its table, its files, and why there is nothing yet."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import Props, aria
from frontend.components.cards import card, empty_state, folded
from frontend.components.reproduce import (
    cancel_button,
    cancelling,
    progress_bar,
    runs_words,
)
from frontend.components.states import FINAL_STATES
from frontend.formatting import ABSENT, clock, number, plural
from frontend.pages.papers.made import report_links
from frontend.papers import (
    QUICK,
    cost_of,
    difference_words,
    item_address,
    item_name,
    item_names,
    own_words,
    paper_name,
    size_of,
)
from maat.api.operations import OperationOut
from maat.api.papers import PaperItemOut, ReproducedItemDetail, ReproducedRowOut, ReproductionOut
from maat.client.calls import PREFIX

MOST_BESIDE = 12  # rows without a published value that stand among those with one
_MEASURED = ("Published", "Ours", "Difference", "± over runs", "Runs")


def title_of(paper: str, item: PaperItemOut) -> str:
    return f"{paper_name(paper)}, {item_names(item)}: {item['title']}"


def own_lines(
    paper: str,
    item: PaperItemOut,
    shown: ReproductionOut | None,
    notes: Sequence[str] = (),
) -> list[Component]:
    """Say of which uploads the shown result is, and lead to the newest that is of uploads.

    `notes`: of the result: whence the uploads are, and which records of a trace are left out.
    """
    lines: list[Component] = []
    if shown is not None and shown["measurements"]:
        words = f"This is {own_words(shown['measurements'])}, not of published data."
        told = [html.Div(line) for line in (words, *notes)]
        lines.append(html.Div(told, className="told"))
    newest, shown_id = item["newest"], None if shown is None else shown["id"]
    if newest is None or newest["reproduction_id"] == shown_id or newest["state"] != "succeeded":
        return lines
    if newest["measurements"]:
        words = f"Last made {own_words(newest['measurements'])}: show it"
        address = item_address(paper, item["key"], newest["reproduction_id"])
        lines.append(html.Div(dcc.Link(words, href=address)))
    return lines


def progress(
    reproduction: ReproductionOut,
    item: ReproducedItemDetail,
    operation: OperationOut | None,
    *,
    may_run: bool,
) -> Component | None:
    """How far the item is while it waits or runs; why, if it was not made; else nothing."""
    if item["state"] == "failed":
        reason = item["failed"] or "No reason was kept."
        alert: Component = dmc.Alert(reason, title="It was not made", color="red", mb=12)
        return alert
    if item["state"] in FINAL_STATES:
        return None
    done, total = item["done"], item["total"]
    far = runs_words(item["state"], done, total)
    aside: list[Component] = [html.Span(far, className="caption")]
    if operation is not None and operation["cancel_requested"]:
        aside.append(cancelling())
    elif may_run:
        aside.append(cancel_button(reproduction["operation_id"], item_name(item["key"])))
    others = len(reproduction["items"]) - 1
    size = size_of(quick=reproduction["quick"])
    words = f"Being made, {size} {own_words(reproduction['measurements'])}".strip() + (
        f", with {plural(others, 'other item')}" if others else ""
    )
    line = dmc.Group(
        [html.Span(words), html.Div(aside, className="actions")], justify="space-between"
    )
    return card(None, [line, progress_bar(done, total)], mb=12)


def not_made(item: PaperItemOut, *, may_run: bool, runs: bool) -> Component | None:
    """Why there is nothing to see, and what helps. `runs`: it is being made."""
    if item["because"]:
        return card(None, empty_state(f"It {item['standing']}", item["because"]))
    if runs:
        return None
    remedy = (
        f"Quick, it takes {cost_of([item], QUICK)}."
        if may_run
        else ("Who may run simulations can reproduce it.")
    )
    return card(None, empty_state("Not made yet", remedy))


def table(item: ReproducedItemDetail) -> list[Component]:
    """Published, ours, and how they differ, over how many runs; a row for each measure.

    Where the paper prints some of many values, the others are folded.
    """
    labels, rows = item["labels"], item["rows"]
    printed = [row for row in rows if row["published"] is not None]
    others = [row for row in rows if row["published"] is None]
    if not printed or len(others) <= MOST_BESIDE:
        return [_table(labels, rows)]
    title = f"{plural(len(others), 'value')} that the paper does not print"
    more = folded(title, _table(labels, others), box_id="reproduced-more")
    return [_table(labels, printed), more]


def _table(labels: Sequence[str], rows: Sequence[ReproducedRowOut]) -> Component:
    head = html.Tr(
        [
            *(html.Th(label[:1].upper() + label[1:]) for label in labels),
            html.Th("Measure"),
            *(html.Th(words, className="number") for words in _MEASURED),
        ]
    )
    return html.Table(
        [html.Thead(head), html.Tbody([_row(labels, row) for row in rows])],
        className="plain-table many-columns compared",
    )


def _row(labels: Sequence[str], row: ReproducedRowOut) -> html.Tr:
    """Return a row; on a phone it is a block, in which each number stands below its head."""
    numbers = (
        row["published"] or ABSENT,
        number(row["ours"]),
        difference_words(row),
        ABSENT if row["spread"] is None else number(row["spread"], 2),
        number(row["runs"]),
    )
    return html.Tr(
        [
            *(
                html.Td(cell, **_head(label))
                for label, cell in zip(labels, row["of"], strict=False)
            ),
            html.Td(row["measure"], className="measure"),
            *(
                html.Td(cell, className="number", **_head(head))
                for head, cell in zip(_MEASURED, numbers, strict=True)
            ),
        ]
    )


def _head(words: str) -> Props:
    return {"data-head": words}


def notes(item: ReproducedItemDetail, reproduction: ReproductionOut) -> list[Component]:
    """What stood in for published data, on what it ran, when, and what it cost."""
    spent = item["cpu_minutes"]
    lines = [*item["notes"]]
    if item["emulated"]:
        lines.append("It ran on emulated devices; the paper's ran on real ones.")
    quick = "quick: fewer traces and seeds than the paper has" if reproduction["quick"] else "whole"
    cost = f"; its simulations took {number(spent, 2)} CPU minutes" if spent else ""
    lines.append(f"Made {clock(item['finished_at'])} (UTC), {quick}{cost}.")
    return [html.Li(line) for line in lines]


def files(reproduction: ReproductionOut, key: str) -> list[Component]:
    """Return the item and the report it belongs to as files to save."""
    of_item = f"{PREFIX}/reproductions/{reproduction['id']}/items/{key}"
    name = f"{reproduction['paper']}-{key}"
    own: Sequence[tuple[str, str, str]] = (
        ("CSV", f"{of_item}/csv", f"{name}.csv"),
        ("JSON", of_item, f"{name}.json"),
    )
    return [
        *(
            html.A(
                label,
                href=href,
                download=saved,
                **aria(f"Save {item_name(key)} as {label}"),
            )
            for label, href, saved in own
        ),
        *report_links(reproduction["id"], reproduction["paper"]),
    ]
