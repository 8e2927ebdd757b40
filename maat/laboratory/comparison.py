"""Statistics of runs of policies and placers on the same traces and seeds.

Means with their spread, and differences job by job, always with their uncertainty. Runs nothing:
see comparison_run. Knows no policy by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from maat.laboratory.figures import CANNOT_RUN, POOLED_P99, Figures, common
from maat.scheduling.arrays import FloatArray
from maat.scheduling.metrics import percentile_99
from maat.scheduling.protocols import Policy
from maat.simulation.tuned_jobs import TunedJobs, shown_tuned

CONFIDENCE = 0.95
RESAMPLES = 4_000
NOTED_DIGITS = 3  # as the tables show them; a smaller contradiction is not noted
LEAST_JOBS = 10  # of one run; with fewer jobs there is no verdict


Settings = tuple[tuple[str, object], ...]  # names with values; hashable, as contestants are keys


@dataclass(frozen=True, slots=True)
class Contestant:
    """What is compared: a policy with a placer, and the given parameters of both.

    `round_seconds`: its own interval of rounds; None: that of the comparison's conditions.
    `own_policy`: as in a scenario; it is known by its name. `tuned`: how its jobs are tuned; None:
    as the comparison's conditions say.
    """

    policy: str
    placer: str
    policy_parameters: Settings = ()
    placer_parameters: Settings = ()
    round_seconds: float | None = None
    own_policy: Policy | None = field(default=None, compare=False)
    tuned: TunedJobs | None = None

    @property
    def variant(self) -> str:
        """The settings as text, which distinguish it from the same two with others."""
        return ", ".join(
            f"{name}={value}" for name, value in (*self._of_policy, *self.placer_parameters)
        )

    @property
    def policy_label(self) -> str:
        """The policy with its settings: `sia (p=-1)`."""
        return labelled(self.policy, self._of_policy)

    @property
    def name(self) -> str:
        return f"{self.policy_label} + {labelled(self.placer, self.placer_parameters)}"

    @property
    def _of_policy(self) -> Settings:
        rounds = (
            () if self.round_seconds is None else (("round_seconds", f"{self.round_seconds:g}"),)
        )
        tuned = () if self.tuned is None else (("tuned", shown_tuned(self.tuned)),)
        return (*self.policy_parameters, *rounds, *tuned)


def labelled(part: str, parameters: Settings) -> str:
    return (
        f"{part} ({', '.join(f'{name}={value}' for name, value in parameters)})"
        if parameters
        else part
    )


@dataclass(frozen=True)
class Outcome:
    """One run: the figures of its schedule, and the JCT (hours) of each finished job.

    `workload`: identifies the jobs of a trace; a generated trace has other jobs with every seed.
    `tables`: what else was kept of the run, by name; empty: nothing.
    """

    contestant: Contestant
    trace: str
    seed: int
    figures: Figures
    jct_hours: Mapping[str, float]
    workload: str = ""
    tables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean over traces, each the mean of its seeds, with its standard deviation.

    The sample deviation is over the traces if there are several, else over the seeds; None for one
    run.
    """

    mean: float
    deviation: float | None
    runs: int


class Basis(StrEnum):
    """What an interval generalises to: other traces like these, seeds, or jobs.

    SEEDS: other seeds on this one trace. JOBS: other jobs within this one run.
    """

    TRACES = "traces"
    SEEDS = "seeds"
    JOBS = "jobs"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % confidence interval.

    Without bounds if there is only one observation.
    """

    estimate: float
    low: float | None
    high: float | None


class Verdict(StrEnum):
    """What the interval says of a contestant against the baseline.

    NOT_ALL_RUN: jobs that run under one of the two can never run under the other, and a mean over
    the rest would hide it.
    """

    FASTER = "faster"
    SLOWER = "slower"
    NOT_TOLD_APART = "not told apart"
    NOT_ALL_RUN = "not all jobs can run"


@dataclass(frozen=True)
class PairedDifference:
    """A contestant against the baseline, job by job on the same trace and seed.

    Compares the jobs that finished under both. `difference_hours`: mean of JCT minus the
    baseline's. `ratio`: geometric mean of JCT over the baseline's. `sooner`: share of the jobs that
    finished sooner. `left_out`: jobs that finished under only one of the two, or under none.
    `cannot_run`, `baseline_cannot_run`: jobs that never run under the one and the other.
    """

    contestant: Contestant
    baseline: Contestant
    basis: Basis
    runs: int
    jobs: int
    left_out: int
    difference_hours: Interval
    ratio: Interval
    sooner: float
    cannot_run: int = 0
    baseline_cannot_run: int = 0

    @property
    def verdict(self) -> Verdict:
        if self.cannot_run != self.baseline_cannot_run:
            return Verdict.NOT_ALL_RUN
        if self.basis is Basis.JOBS and self.jobs < LEAST_JOBS:
            return Verdict.NOT_TOLD_APART
        low, high = self.difference_hours.low, self.difference_hours.high
        if low is None or high is None or low <= 0 <= high:
            return Verdict.NOT_TOLD_APART
        return Verdict.FASTER if high < 0 else Verdict.SLOWER

    @property
    def note(self) -> str | None:
        """Why difference and ratio favour different sides; None if they agree."""
        hours, ratio = self.difference_hours.estimate, self.ratio.estimate
        if round(hours, NOTED_DIGITS) * round(ratio - 1, NOTED_DIGITS) >= 0:
            return None
        lost = "finished later lost on average more hours than the others gained"
        gained = "finished sooner gained on average more hours than the others lost"
        both = (
            f"{self.contestant.name}: JCT ratio {ratio:.{NOTED_DIGITS}f} and "
            f"difference {hours:+.{NOTED_DIGITS}f} h are both true."
        )
        alike = (
            f"The ratio counts every job alike, long or short ({self.sooner:.0%} finished sooner)"
        )
        which = lost if hours > 0 else gained
        return f"{both} {alike}, the difference counts hours: the jobs that {which}."


def spreads(outcomes: Sequence[Outcome]) -> Mapping[Contestant, Mapping[str, Spread]]:
    """Return every figure of every contestant over its runs.

    Contestants are in the order of their first outcome. The 99th percentile of JCT is also that of
    the jobs of all runs together (Sia table 3), beside the mean over runs of each one's.
    """
    by_contestant: dict[Contestant, list[Outcome]] = {}
    for outcome in outcomes:
        by_contestant.setdefault(outcome.contestant, []).append(outcome)
    return {
        who: {name: _spread(own, name) for name in common([o.figures for o in own])} | _pooled(own)
        for who, own in by_contestant.items()
    }


def _pooled(outcomes: Sequence[Outcome]) -> dict[str, Spread]:
    """Return the figure of all runs together, which has no deviation; empty if no job finished."""
    hours = np.array([jct for outcome in outcomes for jct in outcome.jct_hours.values()])
    return {POOLED_P99: Spread(percentile_99(hours), None, len(outcomes))} if len(hours) else {}


def paired(outcomes: Sequence[Outcome], baseline: Contestant) -> tuple[PairedDifference, ...]:
    """Return every other contestant against `baseline`, over their common runs.

    These are the traces and seeds on which jobs finished under both. The interval (Student's t) is
    over traces if there are several: seeds of one trace share its jobs and are not independent, so
    their mean counts once. With one trace it is over the seeds that change anything, with one run
    over its jobs (bootstrap).
    """
    cells = {(o.trace, o.seed): o for o in outcomes if o.contestant == baseline and o.jct_hours}
    others = dict.fromkeys(o.contestant for o in outcomes if o.contestant != baseline)
    pairs = {
        who: [(o, cells[o.trace, o.seed]) for o in outcomes if _meets(o, who, cells)]
        for who in others
    }
    return tuple(
        _against(who, baseline, _distinct(of_who)) for who, of_who in pairs.items() if of_who
    )


def _distinct(pairs: Sequence[tuple[Outcome, Outcome]]) -> list[tuple[Outcome, Outcome]]:
    found: dict[tuple[object, ...], tuple[Outcome, Outcome]] = {}
    for ours, theirs in pairs:
        found.setdefault(
            (ours.workload or ours.trace, *ours.jct_hours.items(), *theirs.jct_hours.items()),
            (ours, theirs),
        )
    return list(found.values())


def _meets(outcome: Outcome, who: Contestant, cells: Mapping[tuple[str, int], Outcome]) -> bool:
    return (
        outcome.contestant == who
        and bool(outcome.jct_hours)
        and (outcome.trace, outcome.seed) in cells
    )


def report(outcomes: Sequence[Outcome], baseline: Contestant) -> dict[str, Any]:
    """Return means with their spread and paired differences as JSON data.

    Contestants are referred to by their index in the list of contestants.
    """
    found = spreads(outcomes)
    number = {who: index for index, who in enumerate(found)}
    contestants = [
        {**as_data(who), "figures": {name: asdict(spread) for name, spread in figures.items()}}
        for who, figures in found.items()
    ]
    differences = [
        {
            **asdict(replace(d, contestant=_named(d.contestant), baseline=_named(d.baseline))),
            "contestant": number[d.contestant],
            "baseline": number[d.baseline],
            "verdict": d.verdict,
            "note": d.note,
        }
        for d in paired(outcomes, baseline)
    ]
    return {"baseline": number[baseline], "contestants": contestants, "paired": differences}


def _named(who: Contestant) -> Contestant:
    """Return the contestant without what decides, which need not be data."""
    return replace(who, own_policy=None)


def as_data(who: Contestant) -> dict[str, Any]:
    """Return a contestant as a JSON object."""
    parameters = {
        "policy_parameters": dict(who.policy_parameters),
        "placer_parameters": dict(who.placer_parameters),
    }
    return {
        "policy": who.policy,
        "placer": who.placer,
        **parameters,
        "round_seconds": who.round_seconds,
        "tuned": None if who.tuned is None else shown_tuned(who.tuned),
        "variant": who.variant,
        "name": who.name,
    }


def _against(
    who: Contestant, baseline: Contestant, pairs: Sequence[tuple[Outcome, Outcome]]
) -> PairedDifference:
    cells = [(ours.workload or ours.trace, _paired_jobs(ours, theirs)) for ours, theirs in pairs]
    differences = [(trace, mine - other) for trace, (mine, other, _) in cells if len(mine)]
    logs = [
        (trace, np.log(np.maximum(mine, 1e-9) / np.maximum(other, 1e-9)))
        for trace, (mine, other, _) in cells
        if len(mine)
    ]
    basis, interval = _interval(differences)
    ratio = _interval(logs)[1]
    every = np.concatenate([values for _, values in differences]) if differences else np.zeros(0)
    jobs = {
        trace: max(len(values) for at, values in differences if at == trace)
        for trace, _ in differences
    }
    return PairedDifference(
        contestant=who,
        baseline=baseline,
        basis=basis,
        runs=len(pairs),
        jobs=sum(jobs.values()),
        left_out=sum(left for _, (*_, left) in cells),
        difference_hours=interval,
        ratio=Interval(math.exp(ratio.estimate), _exp(ratio.low), _exp(ratio.high)),
        sooner=float((every < 0).mean()) if len(every) else 0.0,
        cannot_run=sum(int(ours.figures.get(CANNOT_RUN, 0)) for ours, _ in pairs),
        baseline_cannot_run=sum(int(theirs.figures.get(CANNOT_RUN, 0)) for _, theirs in pairs),
    )


def _paired_jobs(ours: Outcome, theirs: Outcome) -> tuple[FloatArray, FloatArray, int]:
    """JCT in hours of the jobs that finished under both, and how many did not."""
    both = [name for name in ours.jct_hours if name in theirs.jct_hours]
    mine, other = (np.array([o.jct_hours[name] for name in both]) for o in (ours, theirs))
    return mine, other, int(ours.figures["jobs"]) - len(both)


def _interval(values: Sequence[tuple[str, FloatArray]]) -> tuple[Basis, Interval]:
    """The interval of the jobs' values of every run, by trace."""
    by_trace = _by_workload([(trace, float(jobs.mean())) for trace, jobs in values])
    if len(by_trace) > 1:
        return Basis.TRACES, _student([float(np.mean(means)) for means in by_trace.values()])
    if len(values) > 1:
        return Basis.SEEDS, _student([float(jobs.mean()) for _, jobs in values])
    return Basis.JOBS, _over_jobs([jobs for _, jobs in values])


def _by_workload(values: Sequence[tuple[str, float]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for workload, value in values:
        found.setdefault(workload, []).append(value)
    return found


def _student(means: Sequence[float]) -> Interval:
    from scipy.stats import t  # a slow import, only needed here

    centre = float(np.mean(means))
    half = (
        float(t.ppf((1 + CONFIDENCE) / 2, len(means) - 1))
        * float(np.std(means, ddof=1))
        / math.sqrt(len(means))
    )
    return Interval(centre, centre - half, centre + half)


def _over_jobs(values: Sequence[FloatArray]) -> Interval:
    """Percentile bootstrap over jobs; seeded, so equal outcomes give equal intervals.

    One job gives no interval.
    """
    every = np.concatenate(list(values)) if values else np.zeros(0)
    centre = float(every.mean()) if len(every) else 0.0
    if len(every) < 2:
        return Interval(centre, None, None)
    drawn = np.random.default_rng(0).integers(len(every), size=(RESAMPLES, len(every)))
    means = every[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(centre, float(low), float(high))


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(value)


def _spread(outcomes: Sequence[Outcome], name: str) -> Spread:
    by_trace = _by_workload([(o.workload or o.trace, float(o.figures[name])) for o in outcomes])
    means = [float(np.mean(values)) for values in by_trace.values()]
    witnesses = means if len(means) > 1 else next(iter(by_trace.values()))
    deviation = float(np.std(witnesses, ddof=1)) if len(witnesses) > 1 else None
    return Spread(float(np.mean(means)), deviation, len(outcomes))
