"""Runs policies and placers on the same traces, seeds and conditions.

The statistics of the outcomes are in `comparison`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from maat.laboratory.comparison import Contestant, Outcome
from maat.laboratory.content import content_key, digest
from maat.laboratory.figures import figures_of
from maat.laboratory.kept_tables import TablesOf, kept_tables, with_tables, without_tables
from maat.laboratory.results import Kept, ResultCache
from maat.laboratory.setup import Setup, Trace
from maat.laboratory.sweep_runner import run_all
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.notes import notes_on_all
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import Model
from maat.workloads.workloads import Workload

MAX_RUNS = 2_000
JCT = "jct_hours/"  # of a job, in the figures of a run


def check_different(workloads: Sequence[tuple[str, Workload]], *, field: str) -> None:
    """Raise InputError if two of the named workloads have the same jobs.

    The names of the jobs do not count. Two such workloads are one trace, no independent evidence.
    """
    known: dict[str, str] = {}
    for name, workload in workloads:
        twin = known.setdefault(digest([replace(job, name="") for job in workload.jobs]), name)
        if twin != name:
            raise InputError(
                f"has the same jobs as {twin}; together they are one trace",
                field=field,
                value=name,
                remedy="Name each trace once.",
            )


@dataclass(frozen=True)
class ComparisonPlan:
    """Every contestant on every trace with every seed, under the same conditions.

    All share models and cluster. Raises InputError if there is nothing to compare, or if there are
    more runs than a comparison may have.
    """

    models: Mapping[str, Model]
    cluster: Cluster
    contestants: tuple[Contestant, ...]
    traces: tuple[Trace, ...]
    seeds: tuple[int, ...]
    conditions: Conditions = field(default_factory=Conditions)

    def __post_init__(self) -> None:
        named = {
            "policy": [c.name for c in self.contestants],
            "trace": [t.name for t in self.traces],
            "seeds": list(map(str, self.seeds)),
        }
        for what, given in named.items():
            if not given:
                raise InputError("is empty", field=what, remedy="Name one at least.")
            twice = next((name for name in given if given.count(name) > 1), None)
            if twice is not None:
                raise InputError(
                    "names one twice", field=what, value=twice, remedy="Name each once."
                )
        check_different(
            list(zip((trace.name for trace in self.traces), self.first_workloads(), strict=True)),
            field="trace",
        )
        if self.size > MAX_RUNS:
            raise InputError(
                "are more runs than one comparison may have",
                field="runs",
                value=self.size,
                remedy=f"Compare at most {MAX_RUNS}.",
            )

    @property
    def size(self) -> int:
        return len(self.contestants) * len(self.traces) * len(self.seeds)

    def first_workloads(self) -> tuple[Workload, ...]:
        """Return the jobs of each trace; generated traces with the smallest seed."""
        first = min(self.seeds)
        return tuple(
            trace.source.workload(seed=first, copies=1, jobs_per_hour=None) for trace in self.traces
        )

    def scenarios(self) -> Iterator[tuple[Contestant, Trace, int, Scenario]]:
        for contestant, trace, seed in itertools.product(self.contestants, self.traces, self.seeds):
            yield contestant, trace, seed, self._setup(contestant, trace, seed).scenario()

    def notes(self) -> tuple[str, ...]:
        """Return notes on the contestants, from the first seed; those on a trace with its name."""
        return notes_on_all(
            self._naming_trace(trace, self._setup(contestant, trace, self.seeds[0]).scenario())
            for contestant in self.contestants
            for trace in self.traces
        )

    def _naming_trace(self, trace: Trace, scenario: Scenario) -> Scenario:
        if len(self.traces) == 1:
            return scenario
        notes = tuple(f"{trace.name}: {note}" for note in scenario.workload.notes)
        return replace(scenario, workload=replace(scenario.workload, notes=notes))

    def _setup(self, contestant: Contestant, trace: Trace, seed: int) -> Setup:
        return Setup(
            trace.source,
            self.models,
            self.cluster,
            policy=contestant.policy,
            placer=contestant.placer,
            policy_parameters=dict(contestant.policy_parameters),
            placer_parameters=dict(contestant.placer_parameters),
            conditions=self.conditions,
            tuned_by_policy={}
            if contestant.tuned is None
            else {contestant.policy: contestant.tuned},
            seed=seed,
            round_seconds=contestant.round_seconds,
            own_policy=contestant.own_policy,
        )


@dataclass(frozen=True, slots=True)
class ComparisonProgress:
    """The progress of a comparison."""

    done: int
    total: int


def run_comparison(
    plan: ComparisonPlan,
    *,
    workers: int = 1,
    executor: Executor | None = None,
    cache: Path | None = None,
    tables_of: TablesOf | None = None,
    on_progress: Callable[[ComparisonProgress], None] | None = None,
) -> tuple[Outcome, ...]:
    """Run every scenario, up to `workers` at a time; results in the plan's order.

    `executor`: what runs them instead; it is not shut down. Runs in the cache are not repeated.
    `tables_of`: what else to keep of a run; a module-level function.
    """
    runs = [
        (who, trace, seed, with_tables(_key(scenario), tables_of), scenario)
        for who, trace, seed, scenario in plan.scenarios()
    ]
    todo = {key: scenario for *_, key, scenario in runs}
    workloads = {key: digest(scenario.workload.jobs) for key, scenario in todo.items()}
    found: dict[str, Kept] = {}
    for key, figures in run_all(
        todo,
        simulate_one=partial(simulate_with_jobs, tables_of=tables_of),
        workers=workers,
        executor=executor,
        cache=None if cache is None else ResultCache(cache),
    ):
        found[key] = figures
        if on_progress is not None:
            on_progress(ComparisonProgress(sum(known in found for *_, known, _ in runs), len(runs)))
    return tuple(
        _outcome(who, trace.name, seed, found[key], workloads[key])
        for who, trace, seed, key, _ in runs
    )


def simulate_with_jobs(scenario: Scenario, *, tables_of: TablesOf | None = None) -> Kept:
    """Return the figures of a run, the JCT of each job under a name of its own, and its tables."""
    result = simulate(scenario)
    jobs = {
        JCT + record.name: record.jct / 3600 for record in result.measured if record.jct is not None
    }
    return {**figures_of(result), **jobs, **kept_tables(result, tables_of)}


def _key(scenario: Scenario) -> str:
    return digest({"scenario": content_key(scenario), "with": "jobs"})


def _outcome(contestant: Contestant, trace: str, seed: int, kept: Kept, workload: str) -> Outcome:
    figures, tables = without_tables(kept)
    jobs = {
        name.removeprefix(JCT): float(value)
        for name, value in figures.items()
        if name.startswith(JCT)
    }
    return Outcome(
        contestant,
        trace,
        seed,
        {k: v for k, v in figures.items() if not k.startswith(JCT)},
        jobs,
        workload,
        tables,
    )
