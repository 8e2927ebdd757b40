"""The papers by name, in the order in which they are listed. A further paper is a line here."""

from __future__ import annotations

from collections.abc import Mapping

from maat.papers.bsbf import BSBF
from maat.papers.items import Item, Paper
from maat.papers.pal import PAL
from maat.papers.pollux import POLLUX
from maat.papers.sia import SIA
from maat.scheduling.errors import UnknownNameError

PAPERS: Mapping[str, Paper] = {paper.name: paper for paper in (SIA, POLLUX, BSBF, PAL)}


def paper_of(name: str) -> Paper:
    """Return a paper. Raises UnknownNameError, which names those that there are."""
    if name not in PAPERS:
        raise UnknownNameError(
            "is no paper that Maat knows",
            field="paper",
            value=name,
            remedy=f"Use one of: {', '.join(PAPERS)}.",
        )
    return PAPERS[name]


def item_of(paper: Paper, key: str) -> Item:
    """Return an item of a paper. Raises UnknownNameError, which names those that there are."""
    known = {key: item for item in paper.items for key in (item.key, *item.also)}
    if key not in known:
        raise UnknownNameError(
            f"is no item of {paper.name}",
            field="item",
            value=key,
            remedy=f"Use one of: {', '.join(known)}.",
        )
    return known[key]
