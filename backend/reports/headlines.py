"""The headline numbers of a report, each with its change to the period before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from backend.reports import words
from backend.reports.facts import Facts, PeriodFacts, TenantCost
from maat.api.reports import Better, HeadlineOut

Reading = Callable[[PeriodFacts], float | None]


def headlines(facts: Facts) -> list[HeadlineOut]:
    return [*_of_use(facts), *_of_jobs(facts)]


def _of_use(facts: Facts) -> Iterator[HeadlineOut]:
    """Return the numbers of GPU-hours; of a tenant's report, the tenant's own but the first."""
    yield _share(
        facts,
        "utilisation",
        "Utilisation, all tenants" if facts.tenant else "Utilisation",
        _held_share,
        better="up",
        formula="GPU-hours allocated / GPU-hours of capacity.",
    )
    yield _share(
        facts,
        "useful",
        "Useful share of allocated",
        partial(_useful_share, facts.tenant),
        better="up",
        formula="Useful GPU-hours / GPU-hours allocated.",
    )
    use = facts.present.use
    currency = None if use is None else use.currency
    if use is not None and use.cost is not None:
        yield _quantity(
            facts,
            "cost",
            words.without("Cost of allocated GPUs", use.unpriced),
            currency or "",
            partial(_comparable_cost, facts.tenant, use.unpriced),
            show=lambda value: words.money(value, currency),
            better="neither",
            formula="Sum of GPU-hours allocated x price per hour of the type.",
        )
    else:
        yield _quantity(
            facts,
            "held",
            "GPU-hours allocated",
            "GPU-hours",
            lambda of: None if (own := _own_use(facts.tenant, of)) is None else own.allocated,
            show=words.hours,
            better="neither",
            formula="GPUs that jobs had x time.",
        )


def _of_jobs(facts: Facts) -> Iterator[HeadlineOut]:
    yield _quantity(
        facts,
        "wait",
        "Median wait",
        "s",
        partial(_own_wait, facts.tenant),
        show=words.duration,
        better="down",
        formula="Median over jobs started in the period of first time on GPUs - submission.",
        is_sum=False,
    )
    yield _share(
        facts,
        "late",
        "Jobs worse off than alone",
        partial(_late_share, facts.tenant),
        better="down",
        formula="Finished jobs with rho above 1 / finished jobs with a known rho.",
    )
    yield _quantity(
        facts,
        "finished",
        "Jobs finished",
        "jobs",
        lambda of: None if of.finished is None else float(of.finished),
        show=lambda value: words.number(None if value is None else round(value)),
        better="neither",
        formula="Jobs that succeeded in the period.",
    )


def _held_share(of: PeriodFacts) -> float | None:
    if of.use is None or of.use.hours.capacity <= 0:
        return None
    return of.use.hours.allocated / of.use.hours.capacity


def _own_use(tenant: str | None, of: PeriodFacts) -> TenantCost | None:
    """Return what a tenant held and what it cost; without a tenant, all together."""
    return None if of.use is None else of.use.of(tenant)


def _comparable_cost(
    tenant: str | None, unpriced: tuple[str, ...], of: PeriodFacts
) -> float | None:
    """Return the cost; None of a period in which other types have no price."""
    if of.use is None or of.use.unpriced != unpriced:
        return None
    return of.use.of(tenant).cost


def _useful_share(tenant: str | None, of: PeriodFacts) -> float | None:
    own = _own_use(tenant, of)
    return None if own is None or own.allocated <= 0 else own.useful / own.allocated


def _own_wait(tenant: str | None, of: PeriodFacts) -> float | None:
    return None if of.waits is None else of.waits.of(tenant).median


def _late_share(tenant: str | None, of: PeriodFacts) -> float | None:
    return None if of.fairness is None else of.fairness.of(tenant).late


def _share(
    facts: Facts, key: str, label: str, read: Reading, *, better: Better, formula: str
) -> HeadlineOut:
    now, before = _rounded(read(facts.present)), _rounded(read(facts.past))
    change = None if now is None or before is None else round(now - before, 4)
    return HeadlineOut(
        key=key,
        label=label,
        unit="share",
        value=now,
        before=before,
        change=change,
        shown=words.percent(now),
        shown_before=words.percent(before),
        shown_change=words.points(change),
        better=better,
        formula=formula,
    )


def _quantity(
    facts: Facts,
    key: str,
    label: str,
    unit: str,
    read: Reading,
    *,
    show: Callable[[float | None], str],
    better: Better,
    formula: str,
    is_sum: bool = True,
) -> HeadlineOut:
    now, before = _rounded(read(facts.present)), _rounded(read(facts.past))
    compares = not (is_sum and facts.past_differs)
    change = None if now is None or not before or not compares else round(now / before - 1, 4)
    return HeadlineOut(
        key=key,
        label=label,
        unit=unit,
        value=now,
        before=before,
        change=change,
        shown=show(now),
        shown_before=show(before),
        shown_change=words.relative(change),
        better=better,
        formula=formula,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
