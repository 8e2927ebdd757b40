"""Builds the document of a report from its facts. Pure: the same facts give the same document."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Say in two sentences what the report covers, and by which policies."""
    compared = f"Compared with {words.span(facts.before)}."
    if not facts.policies:
        return f"{compared} No round decided in this period."
    named = list(dict.fromkeys(f"{one.policy} with {one.placer}" for one in facts.policies))
    return f"{compared} GPUs were given by {words.listed(named)}."


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
        if facts.before == facts.period.before_until(facts.now):
            same = f"the same part of the period before ({_moments(facts.before)})"
            so_far += f", and are compared with {same}"
        yield f"{so_far}."
    if len({(one.policy, one.version, one.placer) for one in facts.policies}) > 1:
        changes = [
            f"{version(one.policy, one.version)} with {one.placer} from {_moment(one.start)}"
            for one in facts.policies
        ]
        yield f"The policy changed within the period: {words.listed(changes)}."
    if not facts.period.has_whole_days:
        yield "Worths of GPUs are kept by day: they cover every day that the period touches."
    if facts.tenant:
        yield (
            f"This report is for {facts.tenant}: other tenants are summed and not named. The worth "
            "of GPUs is the whole cluster's."
        )
    yield from facts.notes


def _moment(moment: datetime) -> str:
    return f"{words.day(moment)} {moment:%H:%M}"


def _moments(period: Period) -> str:
    return f"{_moment(period.start)} to {_moment(period.end)}"
