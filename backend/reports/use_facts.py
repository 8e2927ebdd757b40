"""Use, waits and cost as a report tells them, from the answer of backend.usage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import groupby

from backend.periods import Period, day_start
from backend.reports.facts import OTHERS, Bucket, Hours, TenantCost, TenantWait, Use, Waits
from maat.api.usage import DayUse, TypeUse, UsageFigures, UsageOut, UsageRow, WaitsOut

ALL = "all tenants"
MOST_DAYS, MOST_WEEKS = 35, 40  # bars by day, then by week, then by month


def use_of(found: UsageOut, period: Period) -> Use:
    """Return who held how many GPU-hours. `period`: as far as it has passed."""
    rows = _rows(found)
    total, types = found["total"], found["gpu_types"]
    capacity = sum(one["capacity_gpu_hours"] for one in types)
    cost = _money(total["cost"])
    return Use(
        _hours(total, capacity),
        list(_buckets(found["days"], period)),
        [
            TenantCost(
                name,
                row["figures"]["allocated_gpu_hours"],
                row["figures"]["useful_gpu_hours"],
                _money(row["figures"]["cost"]),
            )
            for name, row in rows
        ],
        cost=cost,
        idle_cost=_idle_cost(types),
        currency=found["currency"],
        unpriced=tuple(
            one["gpu_type"]
            for one in types
            if cost is not None
            and one["price_per_gpu_hour"] is None
            and one["allocated_gpu_hours"] > 0
        ),
        price_per_hour={
            one["gpu_type"]: float(one["price_per_gpu_hour"])
            for one in types
            if one["price_per_gpu_hour"] is not None
        },
        held_share={
            one["gpu_type"]: one["allocated_gpu_hours"] / one["capacity_gpu_hours"]
            for one in types
            if one["capacity_gpu_hours"] > 0
        },
        formula=_formula(found["formulas"], "idle", "used", "lost", "useful", "allocated"),
        cost_formula=_formula(found["formulas"], "cost", "allocated", "useful"),
        notes=list(_notes(total)),
    )


def waits_of(found: UsageOut, waiting: Mapping[str, int]) -> Waits:
    """Return who waited how long. `waiting`: jobs that wait at the end, by tenant."""
    rows = {row["name"]: row["waits"] for row in found["rows"] if row["waits"] is not None}
    names = [*rows, *(name for name in waiting if name not in rows and name != OTHERS)]
    each = [_wait(name, rows.get(name), waiting.get(name, 0)) for name in names]
    everyone = _wait(ALL, found["waits"], sum(waiting.values()))
    if found["others"] is not None:  # of theirs only the number is known
        rest = everyone.jobs - sum(one.jobs for one in each)
        each.append(TenantWait(OTHERS, rest, None, None, None, waiting.get(OTHERS, 0)))
    return Waits(
        everyone,
        sorted((one for one in each if one.jobs or one.waiting), key=lambda one: -(one.p90 or 0)),
        formula=_formula(found["formulas"], "waits"),
    )


def _wait(name: str, found: WaitsOut | None, waiting: int) -> TenantWait:
    if found is None:
        return TenantWait(name, 0, None, None, None, waiting)
    return TenantWait(
        name,
        found["jobs"],
        found["median_seconds"],
        found["p90_seconds"],
        found["longest_seconds"],
        waiting,
    )


def _rows(found: UsageOut) -> list[tuple[str, UsageRow]]:
    """Return the rows by tenant, the largest first, and all others in one row."""
    rows = [(row["name"], row) for row in found["rows"]]
    rows.sort(key=lambda pair: -pair[1]["figures"]["allocated_gpu_hours"])
    return rows if found["others"] is None else [*rows, (OTHERS, found["others"])]


def _hours(figures: UsageFigures, capacity: float) -> Hours:
    return Hours(
        capacity,
        figures["allocated_gpu_hours"],
        figures["used_gpu_hours"],
        figures["useful_gpu_hours"],
        figures["lost_gpu_hours"],
    )


def _idle_cost(types: Sequence[TypeUse]) -> float | None:
    known = [cost for one in types if (cost := _money(one["idle_cost"])) is not None]
    return sum(known) if known else None


def _buckets(days: Sequence[DayUse], period: Period) -> Iterator[Bucket]:
    """Sum days by what a chart of the period can show: days, weeks or months."""
    dated = [(date.fromisoformat(one["day"]), one) for one in days]
    start, write = _grain(period)

    def key(pair: tuple[date, DayUse]) -> date:
        return start(pair[0])

    for first, group in groupby(dated, key=key):
        several = [one for _, one in group]
        shown = max(day_start(first), period.start)
        hours = Hours(
            sum(one["capacity_gpu_hours"] for one in several),
            *(
                sum(float(one["figures"][name]) for one in several)
                for name in (
                    "allocated_gpu_hours",
                    "used_gpu_hours",
                    "useful_gpu_hours",
                    "lost_gpu_hours",
                )
            ),
        )
        partial = any(one["is_partial"] for one in several)
        yield Bucket(shown, f"{write(shown)}{' (part)' if partial else ''}", hours)


def _grain(period: Period) -> tuple[Callable[[date], date], Callable[[datetime], str]]:
    days = period.length.total_seconds() / 86_400
    if days <= MOST_DAYS:
        return (lambda day: day), (lambda at: f"{at:%a} {at.day} {at:%b}")
    if days <= MOST_WEEKS * 7:
        return (
            lambda day: date.fromordinal(day.toordinal() - day.weekday()),
            lambda at: f"week of {at.day} {at:%b}",
        )
    return (lambda day: day.replace(day=1)), (lambda at: f"{at:%b %Y}")


def _notes(total: UsageFigures) -> Iterator[str]:
    unmeasured, useful = total["unmeasured_gpu_hours"], total["useful_gpu_hours"]
    if useful > 0 and unmeasured / useful >= 0.01:
        yield (
            f"Of {unmeasured / useful * 100:.0f} % of the useful hours nobody measured the "
            "efficiency: they count whole."
        )


def _formula(formulas: Mapping[str, str], *names: str) -> str:
    return ". ".join(f"{name.capitalize()}: {formulas[name]}" for name in names if name in formulas)


def _money(text: str | None) -> float | None:
    return None if text is None else float(text)
