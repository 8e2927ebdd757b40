"""What should we buy? What one more GPU of each type was worth to the policy's programme."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby

from backend.periods import Period, day_start, period_of
from backend.reports import words
from backend.reports.facts import Facts, TypeValue
from backend.reports.figures.parts import SHARE, cell, figure, quantity, text, version
from maat.api.reports import Cell, ColumnOut, FigureOut

QUESTION = "What should we buy?"
_COLUMNS = (
    text("gpu_type", "GPU type"),
    text("policy", "Policy"),
    quantity("value", "Worth of one more", "objective per round"),
    quantity("scarce", "Time it was scarce", SHARE),
    quantity("used", "Utilisation", SHARE),
    quantity("capacity", "GPUs"),
    quantity("price", "Price"),
    quantity("value_per_cost", "Worth / price"),
)
FORMULA = (
    "Worth = mean over time of the round's price of the type (the dual variable of its capacity "
    "row): about by how much the round's objective would have grown with one more such GPU. "
    "Worth and scarcity are of whole days, utilisation is of the report's period. Rounds that "
    "dealt the GPUs out by quotas or weights have no such price, and are left out."
)
MEANING = (
    "How to read it: the worth holds for one GPU more, this workload and this policy. It says "
    "which type was scarcest, not how many to buy, and nothing of jobs that nobody submitted "
    "because the queue was long. Jobs take GPUs in ones, twos and fours, so a single GPU may add "
    "a little more or less."
)
SCARCE = 0.05  # of the time
THIN = 0.9  # coverage below which a caveat says so


def buy(facts: Facts) -> FigureOut:
    values = facts.values
    return figure(
        replace(facts, period=_days_of(facts.period)),
        "buy",
        QUESTION,
        _answer(values),
        chart="values",
        columns=_columns(facts),
        rows=[_row(one) for one in values],
        formula=" ".join([FORMULA, *_objectives(values)]),
        caveats=[*([MEANING] if _priced(values) else []), *_caveats(values)],
    )


def _days_of(period: Period) -> Period:
    """Return the whole days that a period touches: worths are kept by day."""
    last = (period.end - timedelta(microseconds=1)).date()
    return replace(period, start=day_start(period.start.date()), end=period_of(last).end)


def _columns(facts: Facts) -> list[ColumnOut]:
    use = facts.present.use
    price = f"{(use.currency if use else None) or ''} per hour".strip()
    return [quantity("price", "Price", price) if one["key"] == "price" else one for one in _COLUMNS]


def _row(one: TypeValue) -> list[Cell]:
    return [
        one.gpu_type,
        version(one.policy, one.policy_version),
        cell(one.mean_value),
        cell(one.positive_share, 4),
        cell(one.used_share, 4),
        round(one.capacity)
        if abs(one.capacity - round(one.capacity)) < 0.05
        else cell(one.capacity, 2),
        cell(one.price_per_hour, 4),
        cell(_per_cost(one)),
    ]


def _per_cost(one: TypeValue) -> float | None:
    if one.mean_value is None or not one.price_per_hour:
        return None
    return one.mean_value / one.price_per_hour


def _priced(values: Sequence[TypeValue]) -> list[TypeValue]:
    return [one for one in values if one.mean_value is not None]


def _answer(values: Sequence[TypeValue]) -> str:
    if not values:
        return "Nothing can be said: no round decided in this period."
    priced = _priced(values)
    if not priced:
        names = sorted({one.policy for one in values})
        full = max(values, key=lambda one: one.used_share)
        return (
            f"The programme cannot say: {words.listed(names)} solves none, so GPUs have no price. "
            f"Fullest was {full.gpu_type}, of a utilisation of {words.percent(full.used_share)}."
        )
    return " ".join(_of_policy(list(of)) for of in _by_policy(priced))


def _by_policy(values: Sequence[TypeValue]) -> list[list[TypeValue]]:
    def policy(one: TypeValue) -> tuple[str, str]:
        return one.policy, one.policy_version

    return [list(group) for _, group in groupby(sorted(values, key=policy), key=policy)]


def _of_policy(values: Sequence[TypeValue]) -> str:
    ranked = sorted(values, key=lambda one: -(one.mean_value or 0.0))
    best, name = ranked[0], ranked[0].policy
    if not best.mean_value or (best.positive_share or 0.0) < SCARCE:
        return (
            f"Nothing, by the rounds of {name}: no type was scarce for more than "
            f"{words.percent(SCARCE)} of the time."
        )
    parts = [
        f"By the rounds of {name} one more {best.gpu_type} was worth most "
        f"({words.number(best.mean_value)} of the policy's objective per round), and was scarce "
        f"{words.percent(best.positive_share)} of the time."
    ]
    parts += _others(ranked)
    parts += _for_money(values, best)
    return " ".join(parts)


def _others(ranked: Sequence[TypeValue]) -> Iterator[str]:
    if len(ranked) < 2:
        return
    best, second = ranked[0], ranked[1]
    if not second.mean_value:
        yield "No other type was worth anything."
    elif best.mean_value and second.mean_value > 0.8 * best.mean_value:
        yield f"{second.gpu_type} came close ({words.number(second.mean_value)})."
    elif best.mean_value:
        times = best.mean_value / second.mean_value
        yield f"That is {words.number(times)} times the next, {second.gpu_type}."


def _for_money(values: Sequence[TypeValue], best: TypeValue) -> Iterator[str]:
    """Say which type is worth most for its price, where all that are worth something have one."""
    wanted = [one for one in values if one.mean_value]
    if len(wanted) < 2 or not all(one.price_per_hour for one in wanted):
        return
    top = max(wanted, key=lambda one: _per_cost(one) or 0.0)
    same = "the same type" if top is best else top.gpu_type
    yield (
        f"For its price per hour, {same} gives most; its utilisation was "
        f"{words.percent(top.used_share)}, and it was scarce "
        f"{words.percent(top.positive_share)} of the time."
    )


def _objectives(values: Sequence[TypeValue]) -> Iterator[str]:
    for policy, objective in sorted({(one.policy, one.objective) for one in _priced(values)}):
        yield f"Objective of {policy}: {objective}"


def _caveats(values: Sequence[TypeValue]) -> Iterator[str]:
    priced = _priced(values)
    without = sorted({one.policy for one in values} - {one.policy for one in priced})
    if without and priced:
        yield f"Rounds of {words.listed(without)} have no prices and are left out."
    if len({(one.policy, one.policy_version) for one in priced}) > 1:
        yield "Several policies decided; worths of different policies cannot be compared."
    for policy in _by_policy(priced):
        least = min(one.covered for one in policy)
        if least < THIN:
            name = version(policy[0].policy, policy[0].policy_version)
            yield f"Prices of {name} cover {words.percent(least)} of the time it decided."
