"""Were we fair? Finish-time fairness by tenant, and shares deserved and actual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from backend.reports import words
from backend.reports.facts import OTHERS, Facts, Fairness, TenantFairness
from backend.reports.figures.parts import (
    JOBS,
    SHARE,
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

QUESTION = "Were we fair?"
COLUMNS = (
    text("tenant", "Tenant"),
    quantity("jobs", "Finished jobs", JOBS, adds=True),
    quantity("median", "Median rho"),
    quantity("p90", "90th percentile of rho"),
    quantity("worst", "Worst rho"),
    quantity("late", "Jobs with rho above 1", SHARE),
    quantity("deserved", "Deserved share", SHARE, adds=True),
    quantity("actual", "Actual share", SHARE, adds=True),
)
FORMULA = (
    "Finish-time fairness rho = time that the job took / time that it would have taken alone on "
    "an equal share of the cluster. Up to 1 is fair; 2 means twice as long."
)
FAIR, UNEVEN = 1.0, 1.5
NEAR = 0.03  # of a share: nearer than this counts as deserved


def fair(facts: Facts) -> FigureOut:
    found = facts.present.fairness
    return figure(
        facts,
        "fair",
        QUESTION,
        _answer(facts),
        chart="shares-and-rho",
        columns=COLUMNS,
        rows=[] if found is None else [_row(one) for one in (*found.tenants, *_sums(found))],
        sum_rows=0 if found is None else len(_sums(found)),
        formula=found.formula if found and found.formula else FORMULA,
        caveats=[] if found is None else list(_caveats(found, facts.tenant)),
    )


def _sums(found: Fairness) -> list[TenantFairness]:
    return [found.all] if len(found.tenants) != 1 else []


def _row(one: TenantFairness) -> list[Cell]:
    return [
        one.tenant,
        one.jobs,
        *(
            cell(value)
            for value in (
                one.median,
                one.p90,
                one.worst,
                one.late,
                one.deserved,
                one.actual,
            )
        ),
    ]


def _answer(facts: Facts) -> str:
    """Answer for all, or for the tenant whose report it is."""
    found, before, tenant = facts.present.fairness, facts.past.fairness, facts.tenant
    if found is None or found.of(tenant).jobs == 0:
        return "Nothing can be said: of no job that ended in this period is the fairness known."
    every = found.of(tenant)
    late = every.late or 0.0
    parts = [_worse_off(every.jobs, late, _without(found, every.jobs, facts.present.finished))]
    if every.worst is not None and every.worst > FAIR and every.jobs > 1:
        parts.append(
            f"The worst took {words.number(every.worst)} times as long as alone; nine of ten at "
            f"most {words.number(every.p90)} times."
        )
    parts += _between_tenants(found) if tenant is None else []
    parts += _shares(found if tenant is None else replace(found, tenants=[every]), _free(facts))
    past = None if before is None else before.of(tenant).late
    if past is not None:
        parts.append(_compared(late - past))
    return " ".join(parts)


def _worse_off(jobs: int, late: float, without: str) -> str:
    than = "than alone on an equal share of the cluster (rho above 1)."
    known = f" with a known rho {without}" if without else ""
    if jobs == 1:
        return f"The one finished job{known} was {'' if late else 'not '}worse off {than}"
    if late == 0:
        return f"Of {words.counted(jobs, 'finished job')}{known} none was worse off {than}"
    share = words.percent(late)
    return f"Of {words.counted(jobs, 'finished job')}{known}, {share} were worse off {than}"


def _without(found: Fairness, known: int, finished: int | None) -> str:
    """`(1 of 350 has none: ...)`: why fewer jobs are judged than finished, beside their number.

    The reasons are given if they explain the whole difference.
    """
    if finished is None or finished <= known:
        return ""
    whys = [(count, _clause(sentence)) for count, sentence in found.without]
    if found.to_come:
        whys.append((found.to_come, "it is not worked out yet"))
    lack = finished - known
    have = f"{words.number(lack)} of {words.number(finished)} {'has' if lack == 1 else 'have'} none"
    if sum(count for count, _ in whys) != lack:
        return f"({have})"
    if len(whys) == 1:
        return f"({have}: {whys[0][1]})"
    return f"({have}: {', '.join(f'{words.number(count)} as {why}' for count, why in whys)})"


def _clause(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:].rstrip('.')}"


def _between_tenants(found: Fairness) -> Iterator[str]:
    """Say which tenants fared clearly worse than all together."""
    named = [one for one in found.tenants if one.jobs and one.tenant != OTHERS]
    large = enough(named)
    if len(large) < 2 or found.all.median is None:
        return
    worse = [one for one in large if (one.median or 0.0) >= UNEVEN * found.all.median]
    if worse:
        told = [f"{one.tenant} (median {words.number(one.median)})" for one in worse]
        yield f"Clearly worse off than the median of all: {words.listed(told)}."
    else:
        none = no_tenant(large, named)
        yield f"{none} was by its median clearly worse off than the others."


def _free(facts: Facts) -> float:
    """Return the share of all GPU-hours that nobody held."""
    hours = None if facts.present.use is None else facts.present.use.hours
    return hours.idle / hours.capacity if hours is not None and hours.capacity > 0 else 0.0


def _shares(found: Fairness, free: float) -> Iterator[str]:
    """Say who got less than it deserved, and whether for want of GPUs. `free`: GPUs' share."""
    known = [
        (one, one.actual - one.deserved)
        for one in found.tenants
        if one.actual is not None and one.deserved is not None
    ]
    less = sorted(((gap, one) for one, gap in known if gap < -NEAR), key=lambda pair: pair[0])
    if less:
        told = [
            f"{one.tenant} ({words.percent(one.actual)}, deserved {words.percent(one.deserved)})"
            for _, one in less
        ]
        share = "its deserved share" if len(told) == 1 else "their deserved shares"
        yield f"{words.listed(told)} got less of the GPUs than {share}."
        if free > NEAR:
            yield (
                f"{words.percent(free)} of the GPU-hours were free meanwhile: no other tenant "
                "held these. Deserved counts all that jobs may use, also where more GPUs help "
                "them little."
            )
    elif known:
        yield (
            _near(*known[0])
            if len(known) == 1
            else (
                "Every tenant's share of the GPUs was what it deserved, more, or at most "
                f"{NEAR * 100:.0f} percentage points less."
            )
        )


def _near(one: TenantFairness, gap: float) -> str:
    """Tell the share of the only tenant: within a few points a small one may lack most of its."""
    actual, deserved = words.percent(one.actual), words.percent(one.deserved)
    if gap >= 0 or actual == deserved:
        return f"Its share of the GPUs was {actual}; it deserved {deserved}."
    return f"Its share of the GPUs was {actual}, less than the {deserved} that it deserved."


def _compared(difference: float) -> str:
    if abs(difference) < 0.02:
        return "That is about as in the period before."
    word = "more" if difference > 0 else "fewer"
    return f"These are {word} than in the period before ({words.points(difference)})."


def _caveats(found: Fairness, tenant: str | None) -> Iterator[str]:
    yield from found.notes
    yield from few(found.of(tenant).jobs, "ended with a known rho")
    if tenant is None:
        yield from not_judged(found, "finished")
    if found.to_come:
        yield f"Of {words.counted(found.to_come, 'finished job')} rho is not worked out yet."
    mine = found.tenants if tenant is None else [found.of(tenant)]
    if any(one.deserved is None for one in mine):
        whose = "every tenant" if tenant is None else tenant
        yield f"Deserved shares are not known for {whose}."
