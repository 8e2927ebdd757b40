"""Policies and placers played on the same traces and seeds, under the same conditions. What the outcomes come to: see comparison."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from maat.laboratory.comparison import Contestant, Outcome
from maat.laboratory.content import content_key, digest
from maat.laboratory.figures import Figures, figures_of
from maat.laboratory.setup import Setup, Trace
from maat.laboratory.sweep_runner import ResultCache, play_all
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
    """Raises InputError where two of the named workloads are the same jobs, whatever these are called: they are one trace, and no second witness."""
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
class Contest:
    """Every contestant on every trace with every seed, all on the same models and cluster under the same conditions.

    Raises InputError where nothing is compared, or more than a comparison may run.
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
        """The jobs of every trace, as drawn with the least seed where they are drawn."""
        first = min(self.seeds)
        return tuple(
            trace.source.workload(seed=first, copies=1, jobs_per_hour=None) for trace in self.traces
        )

    def scenarios(self) -> Iterator[tuple[Contestant, Trace, int, Scenario]]:
        for contestant, trace, seed in itertools.product(self.contestants, self.traces, self.seeds):
            yield contestant, trace, seed, self._setup(contestant, trace, seed).scenario()

    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the contestants, as it shows on the first trace with the first seed."""
        return notes_on_all(
            self._setup(contestant, self.traces[0], self.seeds[0]).scenario()
            for contestant in self.contestants
        )

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
            seed=seed,
        )


@dataclass(frozen=True, slots=True)
class Played:
    """How far a comparison is."""

    done: int
    total: int


def run_contest(
    contest: Contest,
    *,
    workers: int = 1,
    cache: Path | None = None,
    on_progress: Callable[[Played], None] | None = None,
) -> tuple[Outcome, ...]:
    """Play every run, up to `workers` at a time, in the contest's order; what stands in the cache is not played again."""
    runs = [
        (who, trace, seed, _key(scenario), scenario)
        for who, trace, seed, scenario in contest.scenarios()
    ]
    todo = {key: scenario for *_, key, scenario in runs}
    workloads = {key: digest(scenario.workload.jobs) for key, scenario in todo.items()}
    found: dict[str, Figures] = {}
    for key, figures in play_all(
        todo,
        play=play_with_jobs,
        workers=workers,
        cache=None if cache is None else ResultCache(cache),
    ):
        found[key] = figures
        if on_progress is not None:
            on_progress(Played(sum(known in found for *_, known, _ in runs), len(runs)))
    return tuple(
        _outcome(who, trace.name, seed, found[key], workloads[key])
        for who, trace, seed, key, _ in runs
    )


def play_with_jobs(scenario: Scenario) -> Figures:
    """The figures of a run, and each job's JCT under a name of its own."""
    result = simulate(scenario)
    jobs = {
        JCT + record.name: record.jct / 3600 for record in result.records if record.jct is not None
    }
    return {**figures_of(result), **jobs}


def _key(scenario: Scenario) -> str:
    return digest({"scenario": content_key(scenario), "with": "jobs"})


def _outcome(
    contestant: Contestant, trace: str, seed: int, figures: Figures, workload: str
) -> Outcome:
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
    )
