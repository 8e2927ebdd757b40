"""The papers and Maat's own studies by name, in their order. A further one is a line here."""

from __future__ import annotations

from collections.abc import Mapping

from maat.papers.bsbf import BSBF
from maat.papers.comparison import COMPARISON
from maat.papers.fidelity import FIDELITY
from maat.papers.items import Item, Paper
from maat.papers.pal import PAL
from maat.papers.pollux import POLLUX
from maat.papers.sia import SIA
from maat.scheduling.errors import UnknownNameError

PAPERS: Mapping[str, Paper] = {paper.name: paper for paper in (SIA, POLLUX, BSBF, PAL)}
STUDIES: Mapping[str, Paper] = {study.name: study for study in (FIDELITY, COMPARISON)}
REPORTS: Mapping[str, Paper] = {**PAPERS, **STUDIES}


def paper_of(name: str) -> Paper:
    """Return a paper or a study. Raises UnknownNameError, which names those that there are."""
    if name not in REPORTS:
        raise UnknownNameError(
            "is no paper that Maat knows",
            field="paper",
            value=name,
            remedy=f"Use one of: {', '.join(REPORTS)}.",
        )
    return REPORTS[name]


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
