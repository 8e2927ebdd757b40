"""What each restart of a job cost, and whether it has paid, as the service judged it.

A restart stands still for a while. It pays once the work that the new GPUs do more than those
before has made up for the work of that while. What other jobs gained by it is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dash import dcc, html
from dash.development.base_component import Component

from frontend.formatting import ABSENT, clock, column, duration, gpus, number
from frontend.routing import path_to
from maat.api.job_answers import AllocationSpanOut, MoveWorthOut
from maat.api.move_words import move_words, moves_verdict

MOST_SHOWN = 30
HOW = (
    "Samples were counted on the GPUs before and after, and are worth what they were at the noise "
    "scale of the move: that a job learns more per sample as it trains is no gain of a move. A "
    "restart has paid once the job is ahead of where it would be on the GPUs it had before. Gains "
    "of others do not count."
)


@dataclass(frozen=True)
class Restart:
    """A restart: the spans before and after it, and what the service says that it was worth."""

    before: AllocationSpanOut
    after: AllocationSpanOut
    worth: MoveWorthOut

    @property
    def gpu_seconds(self) -> float:
        """What was held while it stood still."""
        return self.worth["stood_seconds"] * self.after["gpu_count"]


def restarts_of(spans: Sequence[AllocationSpanOut]) -> list[Restart]:
    """Return the restarts between spans of training, oldest first. `spans` are in order."""
    lived = [span for span in spans if not span["for_profile"]]
    return [
        Restart(one, two, two["move"]) for one, two in pairwise(lived) if two["move"] is not None
    ]


def ledger(restarts: Sequence[Restart], cluster_id: str) -> list[Component]:
    """The verdict in words, then a row for each restart, newest first."""
    if not restarts:
        return []
    heads = (
        ("Cluster time", ""),
        ("Round", ""),
        ("GPUs", ""),
        ("Verdict", ""),
        ("Stood still", "number"),
        ("GPU-hours", "number"),
        ("Samples/s", "number"),
        ("Pays after", "number"),
        ("Ran", "number"),
    )
    head = html.Thead(html.Tr([html.Th(text, className=kind) for text, kind in heads]))
    newest = list(reversed(restarts))[:MOST_SHOWN]
    hours = column([one.gpu_seconds / 3600 for one in newest])
    pairs = zip(newest, hours, strict=True)
    rows = html.Tbody([_row(one, held, cluster_id) for one, held in pairs])
    cut = [html.Div(f"The newest {MOST_SHOWN} of {len(restarts)}.", className="hint")]
    return [
        html.Div(moves_verdict([one.after for one in restarts]), className="sentence"),
        html.Table([head, rows], className="plain-table many-columns"),
        *(cut if len(restarts) > MOST_SHOWN else []),
        html.Div(HOW, className="hint"),
    ]


def _row(restart: Restart, held_hours: str, cluster_id: str) -> html.Tr:
    after, worth = restart.after, restart.worth
    way = path_to(f"/rounds/{after['round_number']}", cluster=cluster_id)
    before = "none" if worth["unknown"] == "held-none" else _allocation_text(restart.before)
    rates = (worth["before_samples_per_second"], worth["after_samples_per_second"])
    numbers = (
        duration(worth["stood_seconds"]),
        held_hours,
        f"{number(rates[0])} → {number(rates[1])}",
        duration(worth["pays_after_seconds"]) if worth["net_seconds"] is not None else ABSENT,
        duration(worth["ran_seconds"]),
    )
    return html.Tr(
        [
            html.Td(clock(after["from_at"])),
            html.Td(dcc.Link(str(after["round_number"]), href=way)),
            html.Td(f"{before} → {_allocation_text(after)}"),
            html.Td(move_words(worth)),
            *(html.Td(text, className="number") for text in numbers),
        ]
    )


def _allocation_text(span: AllocationSpanOut) -> str:
    return gpus(span["gpu_count"], span["gpu_type"])
