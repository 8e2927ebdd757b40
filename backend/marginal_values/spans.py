"""Tells from the daily sums which policies decided, and when. Pure: reads and writes no row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import NamedTuple

from backend.marginal_values.models import MarginalValueDay

_TREMBLE = 1.0  # seconds by which sums of spans may miss their length


class PolicyKey(NamedTuple):
    policy: str
    policy_version: str
    placer: str


@dataclass(frozen=True)
class PolicySpan:
    """A policy with its parameters and a placer, and when it decided within a window.

    `first_seconds`, `last_seconds`: cluster time. `hours`: of it that its rounds stand for: less
    than its length if the worker was away, or if policies took turns within a day.
    """

    policy: str
    policy_version: str
    placer: str
    first_seconds: float
    last_seconds: float
    hours: float
    rounds: int

    @property
    def key(self) -> PolicyKey:
        return PolicyKey(self.policy, self.policy_version, self.placer)

    @property
    def is_unbroken(self) -> bool:
        return self.last_seconds - self.first_seconds <= self.hours * 3600 + _TREMBLE

    def surrounds(self, other: PolicySpan) -> bool:
        return (
            self.key != other.key
            and self.first_seconds <= other.first_seconds
            and other.last_seconds <= self.last_seconds
        )


def policy_spans(days: Iterable[MarginalValueDay]) -> list[PolicySpan]:
    """Return which policies decided within some days, in order: one that came back, twice.

    Of a day the sums tell when a policy first and last decided. Where another one decided unbroken
    meanwhile, it did before and after. Where policies took turns more often, their spans overlap.
    """
    found: list[PolicySpan] = []
    for of_day in _by_day(days):
        for span in of_day:
            within = [one for one in of_day if span.surrounds(one) and one.is_unbroken]
            found += _besides(span, within)
    found.sort(key=lambda span: (span.first_seconds, span.last_seconds))
    return [_joined(list(spans)) for _, spans in groupby(found, key=lambda span: span.key)]


def _by_day(days: Iterable[MarginalValueDay]) -> list[list[PolicySpan]]:
    found: dict[dt.date, dict[PolicyKey, PolicySpan]] = {}
    for row in days:
        span = PolicySpan(
            row.policy,
            row.policy_version,
            row.placer,
            row.first_seconds,
            row.last_seconds,
            row.seconds / 3600,
            row.rounds,
        )
        of_day = found.setdefault(row.day, {})
        if span.key not in of_day or of_day[span.key].hours < span.hours:
            of_day[span.key] = span  # the GPU types of one round last equally long
    return [list(of_day.values()) for of_day in found.values()]


def _besides(span: PolicySpan, others: Sequence[PolicySpan]) -> Iterator[PolicySpan]:
    """Yield what is left of a span without others, with its hours and rounds by length."""
    edges = [span.first_seconds]
    for other in sorted(others, key=lambda one: one.first_seconds):
        if other.last_seconds > edges[-1]:
            edges += [max(other.first_seconds, edges[-1]), other.last_seconds]
    edges.append(span.last_seconds)
    pieces = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]
    whole = sum(end - start for start, end in pieces)
    shares = [0.0]
    for start, end in pieces:
        shares.append(shares[-1] + (end - start) / whole)
    for (start, end), (before, after) in zip(pieces, pairwise(shares), strict=True):
        yield replace(
            span,
            first_seconds=start,
            last_seconds=end,
            hours=span.hours * (after - before),
            rounds=round(span.rounds * after) - round(span.rounds * before),
        )


def _joined(spans: Sequence[PolicySpan]) -> PolicySpan:
    """Return the spans of a policy between which no other one began, as one."""
    return replace(
        spans[0],
        last_seconds=max(span.last_seconds for span in spans),
        hours=sum(span.hours for span in spans),
        rounds=sum(span.rounds for span in spans),
    )
