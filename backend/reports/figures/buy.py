"""What should we buy? What one more GPU of each type was worth to the policy's programme."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
    "Worth and scarcity are of whole days, utilisation is of the report's period. Where quotas or "
    "weights dealt the GPUs out, the price is the least above zero that a tenant's row has: one "
    "more GPU would go to a tenant that wants it. What a ceiling holds back does not count."
)
MEANING = (
    "How to read it: the worth holds for one GPU more, this workload and this policy. It says "
    "which type was scarcest, not how many to buy, and nothing of jobs that nobody submitted "
    "because the queue was long. Jobs take GPUs in ones, twos and fours, so a single GPU may add "
    "a little more or less."
)
NO_OBJECTIVE = "the policy's own."
SCARCE = 0.05  # of the time
THIN = 0.9  # coverage below which a caveat says so
LEAST_COVERED = 0.5  # of the time: with prices of less, nothing is concluded from them


def buy(facts: Facts) -> FigureOut:
    values = [_concluded(one) for one in facts.values]
    return figure(
        replace(facts, period=_days_of(facts.period)),
        "buy",
        QUESTION,
        _answer(values, facts),
        chart="values",
        columns=_columns(facts),
        rows=[_row(one) for one in values],
        formula=" ".join([FORMULA, *_objectives(values)]),
        caveats=[
            *([MEANING] if _priced(values) else []),
            *_without_rounds(values, facts.elapsed_hours),
            *_caveats(values),
        ],
    )


def _days_of(period: Period) -> Period:
    """Return the whole days that a period touches: worths are kept by day."""
    last = (period.end - timedelta(microseconds=1)).date()
    return replace(period, start=day_start(period.start.date()), end=period_of(last).end)


def _concluded(one: TypeValue) -> TypeValue:
    """Return a worth without its numbers, where these cover too little of the time."""
    if one.covered >= LEAST_COVERED:
        return one
    return replace(one, mean_value=None, positive_share=None)


def _columns(facts: Facts) -> list[ColumnOut]:
    use = facts.present.use
    price = f"{(use.currency if use else None) or ''} per hour".strip()
    return [quantity("price", "Price", price) if one["key"] == "price" else one for one in _COLUMNS]


def _row(one: TypeValue) -> list[Cell]:
    return [
        one.gpu_type,
        version(one.policy, one.policy_version),
        cell(one.mean_value),
        cell(one.positive_share),
        cell(one.used_share),
        round(one.capacity)
        if abs(one.capacity - round(one.capacity)) < 0.05
        else cell(one.capacity),
        cell(one.price_per_hour),
        cell(_per_cost(one)),
    ]


def _per_cost(one: TypeValue) -> float | None:
    if one.mean_value is None or not one.price_per_hour:
        return None
    return one.mean_value / one.price_per_hour


def _priced(values: Sequence[TypeValue]) -> list[TypeValue]:
    return [one for one in values if one.mean_value is not None]


def _answer(values: Sequence[TypeValue], facts: Facts) -> str:
    if not values:
        return "Nothing can be said: no round decided in this period."
    priced = _priced(values)
    if _covered(facts, values, by=priced) >= LEAST_COVERED:
        return " ".join(_of_policy(of, facts) for of in _by_policy(priced))
    # Of most of the time no price is known: what was scarce is told, what was not is not.
    scarce = [_of_policy(of, facts) for of in _by_policy(priced) if _is_scarce(_best(of))]
    return " ".join([*_unknown(values, facts), *scarce])


def _covered(facts: Facts, values: Sequence[TypeValue], *, by: Sequence[TypeValue]) -> float:
    """Return the share of all the time that the prices of some cover, of the least covered type.

    All the time: also that in which no round decided.
    """

    decided = _decided_hours(values)

    def of_type(gpu_type: str) -> float:
        hours = max(decided[gpu_type], facts.elapsed_hours)
        known = sum(one.covered * one.hours for one in by if one.gpu_type == gpu_type)
        return known / hours if hours else 0.0

    return min(of_type(gpu_type) for gpu_type in decided)


def _decided_hours(values: Sequence[TypeValue]) -> Mapping[str, float]:
    """Return the hours for which rounds stand, of all policies, by GPU type."""
    hours: dict[str, float] = defaultdict(float)
    for one in values:
        hours[one.gpu_type] += one.hours
    return hours


def _unknown(values: Sequence[TypeValue], facts: Facts) -> Iterator[str]:
    """Say why nothing is concluded, and how full the GPUs were instead."""
    solving = {one.policy for one in values if one.has_programme}
    other = sorted({one.policy for one in values} - solving)
    if solving:
        yield (
            "It cannot be said whether a type was scarce: a price is known for only "
            f"{words.percent(_covered(facts, values, by=values))} of the time."
        )
    if other:
        verb = "solves" if len(other) == 1 else "solve"
        yield (
            f"The programme cannot say: {words.listed(other)} {verb} none, so GPUs have no price."
        )
    full = max(values, key=lambda one: one.used_share)
    yield f"Fullest was {full.gpu_type}, of a utilisation of {words.percent(full.used_share)}."
    if waiting := _waiting(facts):
        yield f"{waiting}."


def _waiting(facts: Facts) -> str:
    """Say how many jobs wait at the end of the period; in a tenant's report nothing."""
    waits = facts.present.waits
    if facts.tenant is not None or waits is None or not waits.all.waiting:
        return ""
    verb = "waits" if waits.all.waiting == 1 else "wait"
    return f"{words.counted(waits.all.waiting, 'job')} {verb} at the end"


def _by_policy(values: Sequence[TypeValue]) -> list[list[TypeValue]]:
    def policy(one: TypeValue) -> tuple[str, str]:
        return one.policy, one.policy_version

    return [list(group) for _, group in groupby(sorted(values, key=policy), key=policy)]


def _best(values: Sequence[TypeValue]) -> TypeValue:
    return max(values, key=lambda one: one.mean_value or 0.0)


def _is_scarce(one: TypeValue) -> bool:
    return bool(one.mean_value) and (one.positive_share or 0.0) >= SCARCE


def _of_policy(values: Sequence[TypeValue], facts: Facts) -> str:
    ranked = sorted(values, key=lambda one: -(one.mean_value or 0.0))
    best, name = ranked[0], ranked[0].policy
    of_all = _covered(facts, facts.values, by=_priced(facts.values))
    least = min(of_all, *(one.covered for one in values))
    time = "time" if least >= THIN else f"{words.percent(least)} of the time with a price"
    if not _is_scarce(best):
        seldom = f"no type was scarce for more than {words.percent(SCARCE)} of the {time}"
        waiting = _waiting(facts)
        if least < THIN and waiting:
            return (
                f"By the rounds of {name} {seldom}; of the rest nothing is known, and {waiting}: "
                "look at their reasons before you conclude that nothing is lacking."
            )
        return f"Nothing, by the rounds of {name}: {seldom}."
    parts = [
        f"By the rounds of {name} one more {best.gpu_type} was worth most "
        f"({words.number(best.mean_value)} of the policy's objective per round), and was scarce "
        f"{words.percent(best.positive_share)} of the {time}."
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
    told = {(one.policy, one.objective or NO_OBJECTIVE) for one in _priced(values)}
    for policy, objective in sorted(told):
        yield f"Objective of {policy}: {objective}"


def _without_rounds(values: Sequence[TypeValue], elapsed: float) -> Iterator[str]:
    """Say for how much of the time no round stands, as while the worker is away."""
    decided = max(_decided_hours(values).values(), default=elapsed)
    if decided < THIN * elapsed:
        yield (
            f"Rounds decided for {words.duration(decided * 3600)} of "
            f"{words.duration(elapsed * 3600)}: of the rest no worth is known."
        )


def _caveats(values: Sequence[TypeValue]) -> Iterator[str]:
    priced = _priced(values)
    without = sorted({one.policy for one in values if not one.has_programme})
    if without and priced:
        yield f"Rounds of {words.listed(without)} have no prices and are left out."
    if len({(one.policy, one.policy_version) for one in priced}) > 1:
        yield "Several policies decided; worths of different policies cannot be compared."
    for policy in _by_policy([one for one in values if one.has_programme]):
        least = min(one.covered for one in policy)
        if least < THIN:
            name = version(policy[0].policy, policy[0].policy_version)
            little = "" if least >= LEAST_COVERED else ": too little to conclude from"
            yield f"Prices of {name} cover {words.percent(least)} of the time it decided{little}."
