"""Whether an item can be made now: what `maat reproduce --list` says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from maat.papers.data import Data, place_of
from maat.papers.items import Item, Paper
from maat.papers.own import WORDS, OwnMeasurements
from maat.scheduling.errors import InputError
from maat.vocabulary import MeasurementKind


class Standing(StrEnum):
    """POSSIBLE: now; DATA: the folder lacks published data; HARDWARE: it needs real GPUs.

    OTHER: one's own measurements cannot stand in for anything in it.
    """

    POSSIBLE = "possible now"
    DATA = "needs data"
    HARDWARE = "needs hardware"
    OTHER = "takes other data"


def standing_of(item: Item, data: Data) -> Standing:
    """Return whether an item can be made with these data."""
    if item.hardware is not None:
        return Standing.HARDWARE
    if _not_taken(item, data):
        return Standing.OTHER
    return Standing.DATA if lacking_of(item.needs, data) else Standing.POSSIBLE


def lacking_of(names: Sequence[str], data: Data) -> list[str]:
    """Return which of the named data the folder lacks, as `sia trace {}/philly/workload-1`."""
    lacking = []
    for named in names:
        name, part = place_of(named)
        if not data.has(name, part):
            lacking.append(name.format(part))
    return lacking


def why_not(item: Item, data: Data) -> str | None:
    """Return why an item cannot be made, with what helps; None: it can."""
    if item.hardware is not None:
        return item.hardware
    not_taken = _not_taken(item, data)
    if not_taken:
        titles = " and ".join(each.title for each in not_taken)
        return f"The {titles} cannot stand in for anything in it. {_taken(item)}"
    lacking = lacking_of(item.needs, data)
    if not lacking:
        return None
    where = "no folder is given" if data.folder is None else f"not in {data.folder}"
    return (
        f"It needs published data: {', '.join(lacking)} ({where}). "
        "docs/reproduce.md says where they come from, and how to give them."
    )


def _not_taken(item: Item, data: Data) -> list[OwnMeasurements]:
    return [each for each in data.own if each.kind not in item.takes]


def _taken(item: Item) -> str:
    names = [WORDS[kind] for kind in item.takes]
    return f"It takes {' and '.join(names)}." if names else "It takes no measurements of one's own."


def check_takes(paper: Paper, items: Sequence[Item], own: Sequence[OwnMeasurements]) -> None:
    """Raise InputError if one of the items does not take one of these measurements."""
    for each in own:
        for item in items:
            if each.kind not in item.takes:
                raise InputError(
                    f"cannot stand in for anything in {paper.name} {item.key}",
                    field=each.kind.value,
                    value=each.name,
                    remedy=remedy_of(paper, each.kind),
                )


def remedy_of(paper: Paper, kind: MeasurementKind) -> str:
    """Name the items of a paper that take measurements of a kind."""
    taking = [item.key for item in paper.items if kind in item.takes]
    if not taking:
        return f"Leave it out: no item of {paper.name} takes it."
    return f"Leave it out, or make one of: {', '.join(taking)}."


def as_rows(papers: Sequence[Paper], data: Data) -> list[Mapping[str, Any]]:
    """Return a row of `--list` for each item: what it shows, whether it can be made, its cost."""
    return [
        {
            "paper": paper.name,
            "item": item.key,
            "also": list(item.also),
            "title": item.title,
            "standing": standing_of(item, data).value,
            "because": why_not(item, data),
            "emulated": item.emulated,
            "stands_in": lacking_of(item.uses, data),
            "quick_cpu_minutes": item.cpu_minutes[0],
            "whole_cpu_minutes": item.cpu_minutes[1],
        }
        for paper in papers
        for item in paper.items
    ]
