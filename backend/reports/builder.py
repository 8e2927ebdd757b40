"""Builds the document of a report from its facts. Pure: the same facts give the same document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib.metadata import version as version_of

from backend.periods import Period
from backend.reports import words
from backend.reports.facts import Facts, PolicyDecided
from backend.reports.figures import busy, buy, cost, fair, waited
from backend.reports.figures.parts import version
from backend.reports.headlines import headlines
from maat.api.fields import rfc3339
from maat.api.reports import PolicySpanOut, ReportOut

FORM = 2
WHOLE = 0.9  # of a span: a policy that decided for less of it has its hours told


def build_report(facts: Facts) -> ReportOut:
    """Return the document, from which page, CSV, JSON, PDF and command line come."""
    figures = [fair(facts), busy(facts), waited(facts), cost(facts), buy(facts)]
    use = facts.present.use
    return ReportOut(
        version=FORM,
        maat_version=version_of("maat"),
        cluster_id=facts.cluster_id,
        cluster=facts.cluster,
        tenant=facts.tenant,
        period=facts.period.show(facts.now),
        before=facts.before.show(facts.now),
        as_of=rfc3339(facts.now),
        title=title_of(facts),
        summary=summary_of(facts),
        currency=None if use is None else use.currency,
        policies=[_policy(one) for one in facts.policies],
        headlines=headlines(facts),
        figures=figures,
        caveats=list(_caveats(facts)),
    )


def title_of(facts: Facts) -> str:
    whose = f"{facts.tenant} on {facts.cluster}" if facts.tenant else facts.cluster
    return f"{whose}: {words.span(facts.period)}"


def summary_of(facts: Facts) -> str:
    """Say what the report is compared with, and by which policies GPUs were given."""
    compared = "" if facts.past.is_unknown else f"Compared with {words.span(facts.before)}. "
    if not facts.policies:
        return f"{compared}No round decided in this period."
    main = _main(facts.policies)
    given = f"GPUs were given by {main.policy} with {main.placer}"
    others = [
        f"by {one.policy} with {one.placer} {_when(one)}"
        for one in facts.policies
        if (one.policy, one.placer) != (main.policy, main.placer)
    ]
    return f"{compared}{given}{', and ' if others else ''}{words.listed(others)}."


def _main(policies: Sequence[PolicyDecided]) -> PolicyDecided:
    """Return one of the spans of the policy that decided longest."""
    hours: dict[tuple[str, str, str], float] = defaultdict(float)
    for one in policies:
        hours[one.key] += one.hours
    return max(policies, key=lambda one: hours[one.key])


def _when(one: PolicyDecided) -> str:
    """Write when a policy decided: `from 26 Nov 2026 02:40 to 02:50`."""
    same_day = one.start.date() == one.end.date()
    told = f"from {_moment(one.start)} to {f'{one.end:%H:%M}' if same_day else _moment(one.end)}"
    length = (one.end - one.start).total_seconds() / 3600
    if one.hours > WHOLE * length:
        return told
    return f"for {words.duration(one.hours * 3600)} {told}"


def _policy(one: PolicyDecided) -> PolicySpanOut:
    return PolicySpanOut(
        {
            "policy": one.policy,
            "version": one.version,
            "placer": one.placer,
            "from": rfc3339(one.start),
            "to": rfc3339(one.end),
            "hours": round(one.hours, 3),
            "rounds": one.rounds,
        }
    )


def _caveats(facts: Facts) -> Iterator[str]:
    if facts.period.start >= facts.now:
        yield "The period has not begun: there is nothing to tell yet."
    elif facts.period.end > facts.now:
        so_far = f"The period is not over: figures count up to {_moment(facts.now)}"
        is_same = facts.before == facts.period.before_until(facts.now)
        if is_same and not facts.past.is_unknown:
            same = f"the same part of the period before ({_moments(facts.before)})"
            so_far += f", and are compared with {same}"
        yield f"{so_far}."
    if len({one.key for one in facts.policies}) > 1:
        main = _main(facts.policies)
        changes = [f"{_named(one)} {_when(one)}" for one in facts.policies if one.key != main.key]
        yield (
            f"The policy changed within the period: {words.listed(changes)}, else {_named(main)}."
        )
    if not facts.period.has_whole_days:
        yield "Worths of GPUs are kept by day: they cover every day that the period touches."
    if facts.tenant:
        yield (
            f"This report is for {facts.tenant}: other tenants are summed and not named. The worth "
            "of GPUs is the whole cluster's."
        )
    yield from facts.notes


def _named(one: PolicyDecided) -> str:
    return f"{version(one.policy, one.version)} with {one.placer}"


def _moment(moment: datetime) -> str:
    return f"{words.day(moment)} {moment:%H:%M}"


def _moments(period: Period) -> str:
    return f"{_moment(period.start)} to {_moment(period.end)}"
