"""What the parts of a figure stand for: every point, bar and cell may lead to an address.

The address is the `customdata` of its point. assets/chart_links.js opens it by click, marks all
that stands for the same wherever it is drawn on the page, and puts it into the chart's table.

An address that begins with `?` is of the page itself: it changes these parameters. One with `#`
ends at that part of the page; one that is nothing else changes no address, and marks that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode

import plotly.graph_objects as go

from frontend.others import is_other

Addresses: TypeAlias = "Sequence[str | None] | Sequence[Sequence[str | None]]"


def leads_to(trace: Any, addresses: Addresses) -> Any:
    """Give the points of a trace their addresses; None where a point leads nowhere.

    A heatmap takes rows of addresses. Returns the trace.
    """
    trace.update(customdata=list(addresses))
    return trace


def job_address(job_id: str) -> str | None:
    """The page of a job; None of another tenant's job, which has no page here."""
    return None if is_other(job_id) else f"/jobs/{job_id}"


def round_address(number: int) -> str:
    return f"/rounds/{number}"


def cluster_address(round_number: int) -> str:
    """The cluster as that round left it."""
    return f"/cluster?round={round_number}"


def run_address(run_id: str) -> str:
    """On a simulation's page: this run, job by job against another."""
    return f"?{urlencode({'first': run_id})}#compare-pairs"


def part_address(element_id: str) -> str:
    """This part of the page, such as the row of a table that tells the figures of a point."""
    return f"#{element_id}"


def simulated_job_address(name: str) -> str:
    """On a simulation's page: the allocations of this job."""
    return f"?{urlencode({'job': name})}#compare-allocations"


def zooms(drawn: go.Figure) -> go.Figure:
    """Let a span of the x axis be chosen by dragging over it. Returns the figure.

    All such charts of a page show the same span, which stands in the address. A double click shows
    everything again.
    """
    drawn.update_layout(dragmode="zoom", meta={**(drawn.layout.meta or {}), "zooms": True})
    drawn.update_yaxes(fixedrange=True)
    return drawn
