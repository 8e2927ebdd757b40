"""What the figures share: columns, the frame of a figure, and caveats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from backend.reports import words
from backend.reports.facts import OTHERS, Facts, Fairness, TenantFairness, TenantWait, Waits
from maat.api.reports import Cell, Chart, ColumnOut, FigureOut

OneT = TypeVar("OneT", TenantFairness, TenantWait)
GPU_HOURS, SECONDS, SHARE, JOBS = "GPU-hours", "s", "share", "jobs"


def text(key: str, label: str) -> ColumnOut:
    return ColumnOut(key=key, label=label, unit=None, is_text=True, adds=False)


def quantity(key: str, label: str, unit: str | None = None, *, adds: bool = False) -> ColumnOut:
    """A column of numbers. `adds`: the cells of several tenants together are their sum."""
    return ColumnOut(key=key, label=label, unit=unit, is_text=False, adds=adds)


DIGITS = 6  # of a cell after the point: many more than any form shows


def cell(value: float | None) -> float | None:
    """Return a number for a table, as exact as sentences have it: what shows it rounds it.

    A cell with the digits of a sentence would be rounded twice: 1.5251 to 1.525, and that to 1.52.
    """
    return None if value is None else round(float(value), DIGITS)


def shown(column: ColumnOut, value: Cell) -> str:
    """Write a cell as tables print it. Its unit stands in the column's heading."""
    if value is None or isinstance(value, str):
        return words.ABSENT if value is None else value
    if column["unit"] == SHARE:
        return words.percent(value)
    if column["unit"] == SECONDS:
        return words.duration(value)
    return words.number(value)


def figure(
    facts: Facts,
    key: str,
    question: str,
    answer: str,
    *,
    chart: Chart,
    columns: Sequence[ColumnOut],
    rows: Sequence[Sequence[Cell]],
    sum_rows: int = 0,
    formula: str,
    caveats: Sequence[str] = (),
) -> FigureOut:
    return FigureOut(
        key=key,
        question=question,
        answer=answer,
        chart=chart,
        columns=list(columns),
        rows=[list(row) for row in rows],
        shown=[
            [shown(column, value) for column, value in zip(columns, row, strict=True)]
            for row in rows
        ],
        sum_rows=sum_rows,
        formula=formula,
        window=window(facts),
        policy_versions=list(
            dict.fromkeys(version(one.policy, one.version) for one in facts.policies)
        ),
        caveats=[*caveats],
    )


def window(facts: Facts) -> str:
    whole = f"{words.span(facts.period)}, UTC, cluster time"
    if facts.period.end <= facts.now:
        return whole
    return f"{whole}; up to {words.day(facts.now)} {facts.now:%H:%M}"


def version(policy: str, digest: str) -> str:
    """Name a policy with the digest of its parameters: `sia 3f2a9c01`."""
    return f"{policy} {digest[:8]}" if digest else f"{policy} (parameters not recorded)"


def few(jobs: int, what: str) -> list[str]:
    """Return the caveat of quantiles over few jobs."""
    if jobs >= words.FEW or jobs == 0:
        return []
    return [
        f"Only {words.counted(jobs, 'job')} {what}: fewer than {words.FEW}, "
        "so medians and 90th percentiles are hints."
    ]


def enough(tenants: Sequence[OneT]) -> list[OneT]:
    """Return those with enough jobs to be judged by their median."""
    return [one for one in tenants if one.jobs >= words.FEW]


def no_tenant(judged: Sequence[object], named: Sequence[object]) -> str:
    """Begin a sentence that clears those who were judged, and nobody else."""
    if len(judged) == len(named):
        return "No tenant"
    return f"No tenant of at least {words.FEW} jobs"


def not_judged(found: Waits | Fairness, verb: str) -> Iterator[str]:
    """Name the tenants of too few jobs to be judged, if all together have enough of them."""
    small = [
        one.tenant for one in found.tenants if 0 < one.jobs < words.FEW and one.tenant != OTHERS
    ]
    if small and found.all.jobs >= words.FEW:
        yield (
            f"{words.listed(small)} {verb} fewer than {words.FEW} jobs: medians of so few are "
            "hints, and no tenant is judged by them."
        )
