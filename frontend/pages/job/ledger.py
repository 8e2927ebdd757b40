"""What each restart of a job cost, and whether it has paid: by samples that were counted.

A restart stands still for a while. It pays once the work that the new GPUs do more than those
before has made up for the work of that while. What other jobs gained by it is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from dash import dcc, html
from dash.development.base_component import Component

from frontend.formatting import ABSENT, clock, column, duration, gpu_hours, gpus, number, plural
from frontend.routing import path_to
from maat.api.job_answers import AllocationSpanOut

MOST_SHOWN = 30
HOW = (
    "Samples are effective ones, counted on the GPUs before and after. A restart has paid once the "
    "job is ahead of where it would be on the GPUs it had before. Gains of others do not count."
)


@dataclass(frozen=True)
class Restart:
    """A restart: seconds of cluster time, effective samples/s before and after it.

    `stood`: until it ran again. `ran`: on the new GPUs. `rate_before` is None where the job held no
    GPUs before, `rate_after` where nothing was counted since. `lasts`: it still holds these GPUs.
    """

    at: str
    round_number: int
    before: AllocationSpanOut
    after: AllocationSpanOut
    stood: float
    ran: float
    rate_before: float | None
    rate_after: float | None
    lasts: bool

    @property
    def gpu_seconds(self) -> float:
        """What was held while it stood still."""
        return self.stood * self.after["gpu_count"]

    @property
    def break_even_seconds(self) -> float | None:
        """How long it must run on the new GPUs to pay; None if it never does, or nobody knows."""
        if not self.rate_before or self.rate_after is None or self.rate_after <= self.rate_before:
            return None
        return self.rate_before * self.stood / (self.rate_after - self.rate_before)

    @property
    def net_seconds(self) -> float | None:
        """By how much it is ahead of the GPUs before, in their seconds; negative: behind."""
        if not self.rate_before or self.rate_after is None:
            return None
        return self.rate_after / self.rate_before * self.ran - self.stood - self.ran


def restarts_of(spans: Sequence[AllocationSpanOut], *, now: str) -> list[Restart]:
    """Return the restarts between spans of training, oldest first. `spans` are in order."""
    lived = [span for span in spans if not span["for_profile"]]
    return [_restart(one, two, now) for one, two in pairwise(lived) if _stands_still(two)]


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
        html.Div(verdict(restarts), className="sentence"),
        html.Table([head, rows], className="plain-table many-columns"),
        *(cut if len(restarts) > MOST_SHOWN else []),
        html.Div(HOW, className="hint"),
    ]


def verdict(restarts: Sequence[Restart]) -> str:
    """What all restarts cost, and how many have paid."""
    stood = sum(one.stood for one in restarts)
    hours = sum(one.gpu_seconds for one in restarts) / 3600
    known = [one.net_seconds for one in restarts if one.net_seconds is not None]
    many = plural(len(restarts), "restart")
    words = f"{many}: it stood still for {duration(stood)} ({gpu_hours(hours)} GPU-hours)."
    if not known:
        return f"{words} Whether they paid is not known yet."
    paid = sum(1 for net in known if net >= 0)
    if paid == len(known):
        return f"{words} {'It has' if paid == 1 else 'All have'} paid."
    lost = -sum(net for net in known if net < 0)
    have = f"{paid} of {len(known)} have paid" if len(known) > 1 else "It has not paid"
    return f"{words} {have}; those that have not cost {duration(lost)} of progress."


def words_of(one: Restart) -> str:
    """Whether a restart has paid, and by how much."""
    net, needed = one.net_seconds, one.break_even_seconds
    if net is None:
        return "had no GPUs before" if one.rate_before is None else "not counted yet"
    if net >= 0:
        return f"✓ paid: {duration(net)} ahead"
    if needed is None:
        return f"✕ slower than before: {duration(-net)} behind"
    if one.lasts:
        return f"◌ not yet: pays in {duration(needed - one.ran)}"
    return f"✕ ended too early: {duration(-net)} behind"


def _row(one: Restart, held_hours: str, cluster_id: str) -> html.Tr:
    way = path_to(f"/rounds/{one.round_number}", cluster=cluster_id)
    before = "none" if one.rate_before is None else _held(one.before)
    numbers = (
        duration(one.stood),
        held_hours,
        f"{number(one.rate_before)} → {number(one.rate_after)}",
        duration(one.break_even_seconds) if one.net_seconds is not None else ABSENT,
        duration(one.ran),
    )
    return html.Tr(
        [
            html.Td(clock(one.at)),
            html.Td(dcc.Link(str(one.round_number), href=way)),
            html.Td(f"{before} → {_held(one.after)}"),
            html.Td(words_of(one)),
            *(html.Td(text, className="number") for text in numbers),
        ]
    )


def _held(span: AllocationSpanOut) -> str:
    return gpus(span["gpu_count"], span["gpu_type"])


def _restart(before: AllocationSpanOut, after: AllocationSpanOut, now: str) -> Restart:
    end, began = _at(after["to_at"] or now), _at(after["from_at"])
    ran_from = end if after["running_at"] is None else _at(after["running_at"])
    held_until_then = before["to_at"] == after["from_at"]
    return Restart(
        at=after["from_at"],
        round_number=after["round_number"],
        before=before,
        after=after,
        stood=max((ran_from - began).total_seconds(), 0.0),
        ran=max((end - ran_from).total_seconds(), 0.0),
        rate_before=_rate(before, now) if held_until_then else None,
        rate_after=_rate(after, now),
        lasts=after["to_at"] is None,
    )


def _stands_still(span: AllocationSpanOut) -> bool:
    """Return whether a span begins with a restart: another batch size alone needs none."""
    return span["running_at"] is None or span["running_at"] > span["from_at"]


def _rate(span: AllocationSpanOut, now: str) -> float | None:
    """Return effective samples per second of running; None where none was counted."""
    if span["running_at"] is None or span["effective_samples"] is None:
        return None
    ran = (_at(span["to_at"] or now) - _at(span["running_at"])).total_seconds()
    return span["effective_samples"] / ran if ran > 0 and span["effective_samples"] > 0 else None


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)
