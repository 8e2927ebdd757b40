"""Whether an item can be made now: what `maat reproduce --list` says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from maat.papers.data import PLACES, Data
from maat.papers.items import Item, Paper


class Standing(StrEnum):
    """POSSIBLE: now; DATA: the folder lacks published data; HARDWARE: it needs real GPUs."""

    POSSIBLE = "possible now"
    DATA = "needs data"
    HARDWARE = "needs hardware"


def standing_of(item: Item, data: Data) -> Standing:
    """Return whether an item can be made with these data."""
    if item.hardware is not None:
        return Standing.HARDWARE
    return Standing.DATA if lacking_of(item.needs, data) else Standing.POSSIBLE


def lacking_of(names: Sequence[str], data: Data) -> list[str]:
    """Return which of the named data the folder lacks, as `sia trace {}/philly/workload-1`."""
    lacking = []
    for named in names:
        name = next(known for known in PLACES if named == known or named.startswith(f"{known}/"))
        part = named.removeprefix(name).removeprefix("/") or None
        if not data.has(name, part):
            lacking.append(name.format(part))
    return lacking


def why_not(item: Item, data: Data) -> str | None:
    """Return why an item cannot be made, with what helps; None: it can."""
    if item.hardware is not None:
        return item.hardware
    lacking = lacking_of(item.needs, data)
    if not lacking:
        return None
    where = "no folder is given" if data.folder is None else f"not in {data.folder}"
    return (
        f"It needs published data: {', '.join(lacking)} ({where}). "
        "docs/reproduce.md says where they come from, and how to give them."
    )


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
