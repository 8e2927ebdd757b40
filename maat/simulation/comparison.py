"""Policies and placers set against each other on the same traces and seeds: mean and spread, job by job, and never without uncertainty.

Says what is run and what the outcomes come to; sweep_runner plays. Knows no policy by name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.errors import InputError
from maat.simulation.content import content_key, digest
from maat.simulation.engine import simulate
from maat.simulation.scenario import Scenario
from maat.simulation.sweep import Figures, Setup, TraceSource
from maat.simulation.sweep_runner import ResultCache, figures_of, play_all

MAX_RUNS = 2_000
CONFIDENCE = 0.95
RESAMPLES = 4_000
OF_FINISHED = frozenset({"avg_jct_hours", "median_jct_hours", "p99_jct_hours", "makespan_hours", "worst_rho", "unfair_fraction"})
JCT = "jct_hours/"  # of a job, in the figures of a run


@dataclass(frozen=True, slots=True)
class Contestant:
    """A policy with a placer: what is compared. `variant`: what tells it from the same two with other parameters."""

    policy: str
    placer: str
    variant: str = ""

    @property
    def name(self) -> str:
        return f"{self.policy}{f' ({self.variant})' if self.variant else ''} + {self.placer}"


@dataclass(frozen=True)
class Trace:
    """Where the jobs of a run come from, by the name that tables show."""

    name: str
    source: TraceSource


@dataclass(frozen=True)
class Contest:
    """Every contestant on every trace with every seed. `base`: all else, the same for everyone.

    Raises InputError where nothing is compared, or more than a comparison may run.
    """

    base: Setup
    contestants: tuple[Contestant, ...]
    traces: tuple[Trace, ...]
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        named = {"policy": [c.name for c in self.contestants], "trace": [t.name for t in self.traces], "seeds": list(map(str, self.seeds))}
        for field, given in named.items():
            if not given:
                raise InputError("is empty", field=field, remedy="Name one at least.")
            twice = next((name for name in given if given.count(name) > 1), None)
            if twice is not None:
                raise InputError("names one twice", field=field, value=twice, remedy="Name each once.")
        if self.size > MAX_RUNS:
            raise InputError("are more runs than one comparison may have", field="runs", value=self.size, remedy=f"At most {MAX_RUNS}.")

    @property
    def size(self) -> int:
        return len(self.contestants) * len(self.traces) * len(self.seeds)

    def scenarios(self) -> Iterator[tuple[Contestant, Trace, int, Scenario]]:
        for contestant, trace, seed in itertools.product(self.contestants, self.traces, self.seeds):
            setup = replace(self.base, policy=contestant.policy, placer=contestant.placer, trace=trace.source, seed=seed)
            yield contestant, trace, seed, setup.scenario()


@dataclass(frozen=True)
class Outcome:
    """One run: the figures of its schedule, and the JCT in hours of every job that finished.

    `workload`: tells the jobs of one trace from those of another; a generated trace has others with every seed.
    """

    contestant: Contestant
    trace: str
    seed: int
    figures: Figures
    jct_hours: Mapping[str, float]
    workload: str = ""


@dataclass(frozen=True, slots=True)
class Played:
    """How far a comparison is."""

    done: int
    total: int


def run_contest(
    contest: Contest, *, workers: int = 1, cache: Path | None = None, on_progress: Callable[[Played], None] | None = None
) -> tuple[Outcome, ...]:
    """Play every run, up to `workers` at a time, in the contest's order; what stands in the cache is not played again."""
    runs = [(who, trace, seed, _key(scenario), scenario) for who, trace, seed, scenario in contest.scenarios()]
    todo = {key: scenario for *_, key, scenario in runs}
    workloads = {key: digest(scenario.workload.jobs) for key, scenario in todo.items()}
    found: dict[str, Figures] = {}
    for key, figures in play_all(todo, play=play_with_jobs, workers=workers, cache=None if cache is None else ResultCache(cache)):
        found[key] = figures
        if on_progress is not None:
            on_progress(Played(sum(known in found for *_, known, _ in runs), len(runs)))
    return tuple(_outcome(who, trace.name, seed, found[key], workloads[key]) for who, trace, seed, key, _ in runs)


def play_with_jobs(scenario: Scenario) -> Figures:
    """The figures of a run, and each job's JCT under a name of its own."""
    result = simulate(scenario)
    jobs = {JCT + record.name: record.jct / 3600 for record in result.records if record.jct is not None}
    known = figures_of(result)
    return {**(known if jobs else {name: known[name] for name in known if name not in OF_FINISHED}), **jobs}


def _key(scenario: Scenario) -> str:
    return digest({"scenario": content_key(scenario), "with": "jobs"})


def _outcome(contestant: Contestant, trace: str, seed: int, figures: Figures, workload: str) -> Outcome:
    jobs = {name.removeprefix(JCT): float(value) for name, value in figures.items() if name.startswith(JCT)}
    return Outcome(contestant, trace, seed, {k: v for k, v in figures.items() if not k.startswith(JCT)}, jobs, workload)


# ---- what the outcomes come to ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean over traces, each the mean of its seeds, and the sample standard deviation: over the traces where there are several, else over the
    seeds; None of a single run, of which nothing is known.
    """

    mean: float
    deviation: float | None
    runs: int


class Basis(StrEnum):
    """What an interval speaks of: other traces like these; other seeds on this one trace; other jobs within this one run."""

    TRACES = "traces"
    SEEDS = "seeds"
    JOBS = "jobs"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % confidence interval; without bounds where there is one observation only."""

    estimate: float
    low: float | None
    high: float | None


class Verdict(StrEnum):
    """What the interval allows to say of a contestant against the baseline."""

    FASTER = "faster"
    SLOWER = "slower"
    NOT_TOLD_APART = "not told apart"


@dataclass(frozen=True)
class PairedDifference:
    """A contestant against the baseline, job by job on the same trace and seed, over the jobs that finished under both.

    `difference_hours`: mean of JCT minus the baseline's. `ratio`: geometric mean of JCT over the baseline's. `sooner`: share of the jobs that
    finished sooner. `left_out`: jobs that finished under one of the two only, or under none.
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

    @property
    def verdict(self) -> Verdict:
        low, high = self.difference_hours.low, self.difference_hours.high
        if low is None or high is None or low <= 0 <= high:
            return Verdict.NOT_TOLD_APART
        return Verdict.FASTER if high < 0 else Verdict.SLOWER


def spreads(outcomes: Sequence[Outcome]) -> Mapping[Contestant, Mapping[str, Spread]]:
    """Every figure of every contestant over its runs, contestants in the order in which they first stand."""
    by_contestant: dict[Contestant, list[Outcome]] = {}
    for outcome in outcomes:
        by_contestant.setdefault(outcome.contestant, []).append(outcome)
    return {who: {name: _spread(own, name) for name in _common(own)} for who, own in by_contestant.items()}


def _common(outcomes: Sequence[Outcome]) -> list[str]:
    """Figures that every run has: where no job finished there is no completion time."""
    return [name for name in outcomes[0].figures if all(name in other.figures for other in outcomes)]


def paired(outcomes: Sequence[Outcome], baseline: Contestant) -> tuple[PairedDifference, ...]:
    """Every other contestant against `baseline`, over the traces and seeds on which both have jobs that finished.

    The interval (Student's t) is over traces where there are several: seeds of one trace share its jobs and are no independent witnesses, their
    mean is one. Of one trace it is over the seeds that change anything, of one run over its jobs (bootstrap).
    """
    cells = {(o.trace, o.seed): o for o in outcomes if o.contestant == baseline and o.jct_hours}
    others = dict.fromkeys(o.contestant for o in outcomes if o.contestant != baseline)
    pairs = {who: [(o, cells[o.trace, o.seed]) for o in outcomes if _meets(o, who, cells)] for who in others}
    return tuple(_against(who, baseline, _distinct(of_who)) for who, of_who in pairs.items() if of_who)


def _distinct(pairs: Sequence[tuple[Outcome, Outcome]]) -> list[tuple[Outcome, Outcome]]:
    found: dict[tuple[object, ...], tuple[Outcome, Outcome]] = {}
    for ours, theirs in pairs:
        found.setdefault((ours.workload or ours.trace, *ours.jct_hours.items(), *theirs.jct_hours.items()), (ours, theirs))
    return list(found.values())


def _meets(outcome: Outcome, who: Contestant, cells: Mapping[tuple[str, int], Outcome]) -> bool:
    return outcome.contestant == who and bool(outcome.jct_hours) and (outcome.trace, outcome.seed) in cells


def report(outcomes: Sequence[Outcome], baseline: Contestant) -> dict[str, Any]:
    """Means with their spread and paired differences as JSON data; contestants are named by their number in the list of them."""
    found = spreads(outcomes)
    number = {who: index for index, who in enumerate(found)}
    contestants = [
        {**asdict(who), "name": who.name, "figures": {name: asdict(spread) for name, spread in figures.items()}}
        for who, figures in found.items()
    ]
    differences = [
        {**asdict(d), "contestant": number[d.contestant], "baseline": number[d.baseline], "verdict": d.verdict}
        for d in paired(outcomes, baseline)
    ]
    return {"baseline": number[baseline], "contestants": contestants, "paired": differences}


def _against(who: Contestant, baseline: Contestant, pairs: Sequence[tuple[Outcome, Outcome]]) -> PairedDifference:
    cells = [(ours.workload or ours.trace, _paired_jobs(ours, theirs)) for ours, theirs in pairs]
    differences = [(trace, mine - other) for trace, (mine, other, _) in cells if len(mine)]
    logs = [(trace, np.log(np.maximum(mine, 1e-9) / np.maximum(other, 1e-9))) for trace, (mine, other, _) in cells if len(mine)]
    basis, interval = _interval(differences)
    ratio = _interval(logs)[1]
    every = np.concatenate([values for _, values in differences]) if differences else np.zeros(0)
    jobs = {trace: max(len(values) for at, values in differences if at == trace) for trace, _ in differences}
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
    )


def _paired_jobs(ours: Outcome, theirs: Outcome) -> tuple[FloatArray, FloatArray, int]:
    """JCT in hours of the jobs that finished under both, and how many did not."""
    both = [name for name in ours.jct_hours if name in theirs.jct_hours]
    mine, other = (np.array([o.jct_hours[name] for name in both]) for o in (ours, theirs))
    return mine, other, int(ours.figures["jobs"]) - len(both)


def _interval(values: Sequence[tuple[str, FloatArray]]) -> tuple[Basis, Interval]:
    """Of the values of every run's jobs, by trace."""
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
    from scipy.stats import t

    centre = float(np.mean(means))
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(means) - 1)) * float(np.std(means, ddof=1)) / math.sqrt(len(means))
    return Interval(centre, centre - half, centre + half)


def _over_jobs(values: Sequence[FloatArray]) -> Interval:
    """Percentile bootstrap over jobs, seeded: the same outcomes give the same interval. One job says nothing of others."""
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
