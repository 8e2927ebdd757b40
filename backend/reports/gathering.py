"""Gathers the facts of a report from the services that know them. Writes nothing.

Use, waits and cost come from backend.usage, fairness from backend.fairness, worths of GPUs from
backend.marginal_values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.fairness.ended_reading import EndedJobs
from backend.fairness.service import fairness
from backend.fairness.share_service import shares
from backend.marginal_values.models import MarginalValueDay
from backend.marginal_values.service import (
    MarginalValue,
    marginal_values,
    sums_of_days,
)
from backend.marginal_values.spans import policy_spans
from backend.moments import moment_of
from backend.periods import Period, day_start, period_of
from backend.reports import words
from backend.reports.facts import Facts, PeriodFacts, PolicyDecided, TypeValue, Use
from backend.reports.fair_facts import fairness_of
from backend.reports.jobs_facts import finished_in, waiting_at
from backend.reports.use_facts import use_of, waits_of
from backend.usage.reading import parts_are_known
from backend.usage.service import usage
from maat.scheduling.policies import POLICIES

SPANS = 2  # of shares over time: a report tells those of the whole period


def gather(session: Session, seen: Principal, cluster: Cluster, period: Period) -> Facts:
    """Return the facts of a report, as `seen` may know them.

    Raises Invalid if the period cannot be reported.
    """
    now = cluster_now(session, cluster)
    before = _known_before(session, cluster, period, now)
    present = _period(session, seen, cluster, period, now, waiting=True)
    past = _period(session, seen, cluster, before, now, waiting=False)
    sums = sums_of_days(session, cluster.id, *_days(period))
    return Facts(
        cluster_id=cluster.id,
        cluster=cluster.name,
        tenant=None if seen.sees_all_tenants else seen.tenant_name,
        period=period,
        before=before,
        now=now,
        present=present,
        past=past,
        policies=_policies(cluster, sums),
        values=[_value(one, present.use) for one in marginal_values(sums)],
        notes=list(_notes(cluster, period, before, now)),
        past_differs=_is_short(cluster, before) or before != period.before_until(now),
        elapsed_hours=_elapsed_hours(cluster, period, now),
    )


def _known_before(session: Session, cluster: Cluster, period: Period, now: datetime) -> Period:
    """Return the period to compare with: in whole days, if parts of its days are not known."""
    before = period.before_until(now)
    parts = [part for part in before.parts() if not part.has_whole_days]
    known = (parts_are_known(session, cluster, part.seconds(cluster)[0]) for part in parts)
    return before if all(known) else before.widened(until=period.start)


def _notes(cluster: Cluster, period: Period, before: Period, now: datetime) -> Iterator[str]:
    """Say what the cluster is too young for, and what is no longer known of the past."""
    began = f"The cluster's time began on {words.day(cluster.epoch)}"
    if _is_short(cluster, period):
        yield f"{began}: nothing is known of what was before."
    elif _is_short(cluster, before):
        yield f"{began}, within the period before: sums are not compared with that shorter time."
    elif before != period.before_until(now):
        yield (
            "Of the period before only whole days are still known: it is counted as "
            f"{words.span(before)}, and sums are not compared with that other length."
        )


def _is_short(cluster: Cluster, period: Period) -> bool:
    """Return whether the cluster's time began within a period."""
    return period.start < cluster.epoch < period.end


def cluster_now(session: Session, cluster: Cluster) -> datetime:
    return cluster.epoch + timedelta(seconds=cluster_seconds(cluster, moment_of(session)))


def _period(
    session: Session,
    seen: Principal,
    cluster: Cluster,
    period: Period,
    now: datetime,
    *,
    waiting: bool,
) -> PeriodFacts:
    """Return the facts of one period. `waiting`: also how many jobs wait at its end."""
    if period.start >= now or period.end <= cluster.epoch:
        return PeriodFacts(None, None, None)
    # Nothing was before the cluster's time began.
    period = replace(period, start=max(period.start, day_start(cluster.epoch.date())))
    found = usage(session, seen, cluster=cluster, period=period)
    ended = EndedJobs(session, cluster, period)
    _, end = period.until(now).seconds(cluster)
    return PeriodFacts(
        use=use_of(found, period.until(now)),
        waits=waits_of(found, waiting_at(session, seen, cluster.id, end) if waiting else {}),
        fairness=fairness_of(
            fairness(ended, seen, points=0),
            shares(session, seen, cluster=cluster, period=period, points=SPANS),
        ),
        finished=finished_in(ended, seen),
    )


def _policies(cluster: Cluster, sums: Sequence[MarginalValueDay]) -> list[PolicyDecided]:
    return [
        PolicyDecided(
            span.policy,
            span.policy_version,
            span.placer,
            cluster.epoch + timedelta(seconds=span.first_seconds),
            cluster.epoch + timedelta(seconds=span.last_seconds),
            span.hours,
            span.rounds,
        )
        for span in policy_spans(sums)
    ]


def _days(period: Period) -> tuple[date, date]:
    last = period.end - timedelta(microseconds=1)
    return period.start.date(), last.date()


def _elapsed_hours(cluster: Cluster, period: Period, now: datetime) -> float:
    """Return how much cluster time the days of a period have had so far."""
    first, last = _days(period)
    start, end = max(day_start(first), cluster.epoch), min(period_of(last).end, now)
    return max((end - start) / timedelta(hours=1), 0.0)


def _value(one: MarginalValue, use: Use | None) -> TypeValue:
    """Return the worth of a type, with its price and use as the other figures tell them."""
    prices, shares = ({}, {}) if use is None else (use.price_per_hour, use.held_share)
    decided = one.mean_used / one.mean_capacity if one.mean_capacity else 0.0
    known = POLICIES.has(one.policy)
    objective = POLICIES.entry(one.policy).objective if known else None
    return TypeValue(
        one.gpu_type,
        one.policy,
        one.policy_version,
        objective,
        one.mean_value,
        one.positive_share,
        used_share=shares.get(one.gpu_type, decided),
        capacity=one.mean_capacity,
        covered=one.priced_hours / one.hours if one.hours else 0.0,
        hours=one.hours,
        price_per_hour=prices.get(one.gpu_type),
    )
