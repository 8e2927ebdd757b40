"""Facts of a report: three tenants, two GPU types, a week, with the week before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from backend.periods import Period
from backend.reports.facts import (
    Bucket,
    Facts,
    Fairness,
    Hours,
    PeriodFacts,
    PolicyDecided,
    TenantCost,
    TenantFairness,
    TenantWait,
    TypeValue,
    Use,
    Waits,
)
from maat.api.periods import PeriodName

MONDAY = datetime(2026, 11, 9, tzinfo=UTC)
WEEK = timedelta(days=7)
DAY = timedelta(days=1)
OBJECTIVE = "the sum over jobs of weight x (lambda - (r G)^p)."


def hours(capacity: float, share: float, useful: float) -> Hours:
    held = capacity * share
    return Hours(capacity, held, held * 0.95, held * useful, lost=held * 0.01)


def use(names: Sequence[str], *, share: float = 0.82, price: float | None = 2.0) -> Use:
    days = [
        Bucket(
            MONDAY + DAY * n,
            f"{MONDAY + DAY * n:%a %d %b}",
            hours(1536.0, min(share + 0.02 * (n - 3), 1.0), 0.8),
        )
        for n in range(7)
    ]
    whole = Hours(
        *(
            sum(getattr(day.hours, name) for day in days)
            for name in ("capacity", "allocated", "used", "useful", "lost")
        )
    )
    parts = [0.5, 0.3, 0.2] if len(names) == 3 else [1 / len(names)] * len(names)
    tenants = [
        TenantCost(
            name,
            whole.allocated * part,
            whole.useful * part,
            None if price is None else whole.allocated * part * price,
        )
        for name, part in zip(names, parts, strict=True)
    ]
    return Use(
        whole,
        days,
        tenants,
        cost=None if price is None else whole.allocated * price,
        idle_cost=None if price is None else whole.idle * price,
        currency=None if price is None else "EUR",
        price_per_hour={} if price is None else {"a100": 3.0, "t4": 0.5},
    )


def waits(names: Sequence[str], *, scale: float = 1.0) -> Waits:
    each = [
        TenantWait(name, 120 * (n + 1), 300.0 * scale * (n + 1), 4000.0 * scale * (n + 1), 30000.0)
        for n, name in enumerate(names)
    ]
    jobs = sum(one.jobs for one in each)
    return Waits(TenantWait("all tenants", jobs, 640.0 * scale, 6200.0 * scale, 30000.0, 14), each)


def fairness(names: Sequence[str], *, jobs: int = 120, late: float = 0.1) -> Fairness:
    each = [
        TenantFairness(name, jobs, 0.7 + 0.5 * n, 1.2 + 0.4 * n, 2.5 + n, late, d, a)
        for n, (name, d, a) in enumerate(zip(names, (0.4, 0.4, 0.2), (0.5, 0.3, 0.2), strict=False))
    ]
    every = TenantFairness("all tenants", jobs * len(names), 0.8, 1.5, 4.5, late)
    return Fairness(every, each, to_come=7)


def facts(names: Sequence[str] = ("vision", "language", "robotics"), **changes: Any) -> Facts:
    """Facts of last week; `changes`: fields of Facts to replace."""
    period = Period(MONDAY, MONDAY + WEEK, PeriodName.LAST_WEEK)
    made = Facts(
        "clu_1",
        "berlin",
        None,
        period,
        period.before(),
        MONDAY + WEEK + timedelta(hours=30),
        PeriodFacts(use(names), waits(names), fairness(names), 702),
        PeriodFacts(use(names, share=0.7), waits(names, scale=2.0), fairness(names, late=0.2), 640),
        [PolicyDecided("sia", "3f2a9c01d4e5b6a7", "whole-node", MONDAY, MONDAY + WEEK, 168, 10080)],
        [
            TypeValue(
                "a100", "sia", "3f2a9c01d4e5b6a7", OBJECTIVE, 0.182, 0.74, 0.97, 16, 0.99, 168, 3.0
            ),
            TypeValue(
                "t4", "sia", "3f2a9c01d4e5b6a7", OBJECTIVE, 0.031, 0.41, 0.71, 24, 0.99, 168, 0.5
            ),
        ],
    )
    return replace(made, **changes)
