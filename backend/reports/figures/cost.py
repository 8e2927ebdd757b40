"""What did it cost? Cost by tenant, and of GPUs that stood idle."""

from __future__ import annotations

from collections.abc import Iterator

from backend.reports import words
from backend.reports.facts import NOBODY, Facts, Use
from backend.reports.figures.parts import GPU_HOURS, cell, figure, quantity, text
from maat.api.reports import Cell, ColumnOut, FigureOut

QUESTION = "What did it cost?"
FORMULA = (
    "Cost = GPU-hours allocated x price per hour of the GPU's type. Idle = (capacity - allocated) "
    "x price. "
    "Useful hours as under “Were we busy?”."
)
SUMS = 2  # the last rows: all tenants, and idle


def cost(facts: Facts) -> FigureOut:
    use = facts.present.use
    return figure(
        facts,
        "cost",
        QUESTION,
        _answer(use, None if facts.past_differs else facts.past.use, facts.tenant),
        chart="costs",
        columns=_columns(use),
        rows=[] if use is None else list(_rows(use)),
        sum_rows=0 if use is None else SUMS,
        formula=use.cost_formula if use and use.cost_formula else FORMULA,
        caveats=[] if use is None else list(_caveats(use)),
    )


def _columns(use: Use | None) -> list[ColumnOut]:
    unit = None if use is None else use.currency
    return [
        text("tenant", "Tenant"),
        quantity("held", "Allocated", GPU_HOURS, adds=True),
        quantity("useful", "Useful", GPU_HOURS, adds=True),
        quantity(
            "cost", words.without("Cost", () if use is None else use.unpriced), unit, adds=True
        ),
        quantity("share", "Share of cost", "share", adds=True),
    ]


def _rows(use: Use) -> Iterator[list[Cell]]:
    for one in use.tenants:
        share = one.cost / use.cost if one.cost is not None and use.cost else None
        yield [
            one.tenant,
            cell(one.allocated),
            cell(one.useful),
            cell(one.cost),
            cell(share),
        ]
    yield [
        "all tenants",
        cell(use.hours.allocated),
        cell(use.hours.useful),
        cell(use.cost),
        1.0 if use.cost else None,
    ]
    yield [NOBODY, cell(use.hours.idle), 0.0, cell(use.idle_cost), None]


def _answer(use: Use | None, before: Use | None, tenant: str | None) -> str:
    """Answer for all, or for the tenant whose report it is."""
    if use is None:
        return "Nothing can be said: the cluster's time does not reach into this period."
    if use.of(tenant).allocated <= 0:
        return "Nothing: no job held a GPU in this period."
    own = use.of(tenant)
    if own.cost is None:
        return (
            f"No price is known, so the cost is shown in hours: {words.hours(own.allocated)} were "
            "allocated."
        )
    told = f"The GPUs that were allocated cost {words.money(own.cost, use.currency)}"
    left_out = f", without those of {words.listed(use.unpriced)}, which have no price"
    parts = [f"{told}{left_out if use.unpriced else ''}."]
    if own.useful > 0 and not use.unpriced:
        each = own.cost / own.useful
        parts.append(f"A useful GPU-hour cost {words.money(each, use.currency)}.")
    top = max(use.tenants, key=lambda one: one.cost or 0.0, default=None)
    if tenant is None and top is not None and len(use.tenants) > 1 and top.cost and use.cost:
        parts.append(f"The largest part, {words.percent(top.cost / use.cost)}, was {top.tenant}'s.")
    if tenant is None and use.idle_cost:
        parts.append(f"Idle GPUs cost another {words.money(use.idle_cost, use.currency)}.")
    past = None if before is None else before.of(tenant).cost
    if before is not None and past and before.unpriced == use.unpriced:
        change = own.cost / past - 1
        parts.append(f"Against the period before: {words.relative(change)}.")
    return " ".join(parts)


def _caveats(use: Use) -> Iterator[str]:
    if use.unpriced:
        yield (
            f"{words.listed(list(use.unpriced))}: without a price, and left out of the cost. "
            "An admin of the cluster can set it under Usage & cost."
        )
