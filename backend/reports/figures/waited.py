"""Who waited? Queue times by tenant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend.reports import words
from backend.reports.facts import OTHERS, Facts, TenantWait, Waits
from backend.reports.figures.parts import (
    JOBS,
    SECONDS,
    cell,
    enough,
    few,
    figure,
    no_tenant,
    not_judged,
    quantity,
    text,
)
from maat.api.reports import Cell, FigureOut

QUESTION = "Who waited?"
COLUMNS = (
    text("tenant", "Tenant"),
    quantity("jobs", "Jobs started", JOBS, adds=True),
    quantity("median", "Median wait", SECONDS),
    quantity("p90", "90th percentile", SECONDS),
    quantity("longest", "Longest wait", SECONDS),
    quantity("waiting", "Waiting at the end", JOBS, adds=True),
)
FORMULA = (
    "Wait = first time on GPUs - time of submission, of jobs started in the period. Half of "
    "them waited no longer than the median, nine of ten no longer than the 90th percentile."
)
ALIKE = 0.05  # of the median before: a smaller change counts as none
SLOW = 1.5  # times the median of all: a tenant is named as one that waited longer


def waited(facts: Facts) -> FigureOut:
    waits = facts.present.waits
    tenants: Sequence[TenantWait] = [] if waits is None else waits.tenants
    sums = [] if waits is None or len(tenants) == 1 else [waits.all]
    return figure(
        facts,
        "waited",
        QUESTION,
        _answer(waits, facts.past.waits, facts.tenant),
        chart="waits",
        columns=COLUMNS,
        rows=[_row(one) for one in (*tenants, *sums)],
        sum_rows=len(sums),
        formula=waits.formula if waits and waits.formula else FORMULA,
        caveats=[] if waits is None else list(_caveats(waits, facts.tenant)),
    )


def _row(one: TenantWait) -> list[Cell]:
    return [
        one.tenant,
        one.jobs,
        cell(one.median),
        cell(one.p90),
        cell(one.longest),
        one.waiting,
    ]


def _answer(waits: Waits | None, before: Waits | None, tenant: str | None) -> str:
    """Answer for all, or for the tenant whose report it is."""
    if waits is None:
        return "Nothing can be said: the cluster's time does not reach into this period."
    if waits.of(tenant).jobs == 0:
        still = waits.of(tenant).waiting
        if still:
            return (
                f"No job started in this period; {words.counted(still, 'job')} waited at its end."
            )
        return "Nobody: no job started in this period, and none waited at its end."
    every = waits.of(tenant)
    parts = [_how_long(every)]
    parts += [*_slow(waits)] if tenant is None else []
    past = None if before is None else before.of(tenant).median
    if past is not None and every.median is not None:
        parts.append(_compared(every.median, past))
    if every.waiting:
        verb = "waits" if every.waiting == 1 else "wait"
        parts.append(f"{words.counted(every.waiting, 'job')} still {verb} at the end.")
    return " ".join(parts)


def _how_long(every: TenantWait) -> str:
    if every.jobs == 1:
        return f"The one job that started had waited {words.duration(every.longest)}."
    return (
        f"Of {words.counted(every.jobs, 'job')} that started, half waited at most "
        f"{words.duration(every.median)}, and one in ten longer than {words.duration(every.p90)}; "
        f"the longest wait was {words.duration(every.longest)}."
    )


def _slow(waits: Waits) -> Iterator[str]:
    """Name who waited longer than all together, if the difference is not small."""
    every = waits.all
    named = [one for one in waits.tenants if one.jobs and one.tenant != OTHERS]
    if len(named) < 2 or every.p90 is None or every.p90 < words.MINUTE:
        return
    large, told = enough(named), False
    for measure, value, of_all in (
        ("90th percentile", _p90, every.p90),
        ("median", _median, max(every.median or 0.0, words.MINUTE)),
    ):
        slow = sorted(
            (one for one in large if value(one) >= SLOW * of_all),
            key=lambda one: -value(one),
        )
        if slow:
            listed = [f"{one.tenant} ({words.duration(value(one))})" for one in slow]
            yield f"By the {measure} {words.listed(listed)} waited longest."
            told = True
    if not told and len(large) > 1:
        yield f"{no_tenant(large, named)} waited much longer than the others."


def _p90(one: TenantWait) -> float:
    return one.p90 or 0.0


def _median(one: TenantWait) -> float:
    return one.median or 0.0


def _caveats(waits: Waits, tenant: str | None) -> Iterator[str]:
    yield from waits.notes
    yield from few(waits.of(tenant).jobs, "started in the period")
    if tenant is None:
        yield from not_judged(waits, "started")


def _compared(now: float, before: float) -> str:
    if abs(now - before) < max(1.0, ALIKE * before):
        return "The median hardly changed from the period before."
    word = "up" if now > before else "down"
    return f"The median is {word} from {words.duration(before)} in the period before."
