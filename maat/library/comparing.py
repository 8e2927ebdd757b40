"""`maat.compare`: policies on the same traces and seeds, and what can be said of them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from maat.laboratory.comparison import (
    Contestant,
    Outcome,
    PairedDifference,
    Spread,
    as_data,
    paired,
    report,
    spreads,
)
from maat.laboratory.comparison_run import ComparisonPlan, ComparisonProgress, run_comparison
from maat.laboratory.figures import FIGURES, RunFigures, never_run, notes_on_runs
from maat.library.arrow import Kind
from maat.library.conditions import ConditionValues, read_conditions, takes_conditions
from maat.library.files import path_or_none
from maat.library.inputs import (
    DEFAULT_CLUSTER,
    GivenTraces,
    Profiles,
    read_cluster,
    read_models,
    read_seeds,
    read_traces,
    workers_of,
)
from maat.library.kept_runs import KeptRun, chosen_run, joined_tables, kept_runs, tables_of
from maat.library.policies import GivenPolicy, read_placer, read_policies, read_policy
from maat.library.progress import Bar
from maat.library.study_plots import ComparisonPlots
from maat.library.study_tables import DIFFERENCES, difference_row, kind_of, mean_kinds
from maat.library.tables import Cell, Table
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError


@takes_conditions
def compare(
    policies: str | Sequence[GivenPolicy],
    traces: GivenTraces | Sequence[GivenTraces] | Mapping[str, GivenTraces],
    *,
    cluster: str | Cluster = DEFAULT_CLUSTER,
    jobs_per_gpu: int | None = None,
    placer: str | Sequence[str] | None = None,
    profiles: str | Path | Profiles | None = None,
    seeds: Iterable[int] = (0,),
    baseline: GivenPolicy = None,
    round_seconds: float | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    cache: str | Path | None = None,
    series: bool = False,
    progress: bool = True,
    **conditions: Unpack[ConditionValues],
) -> Comparison:
    """Compare policies over traces and seeds, with their uncertainty.

    Raises InputError, which names the argument, its value and a remedy, for what cannot be
    compared.

    Args:
        policies: Names, `maat.policies.Sia(p=-1)`, and policies of your own; `all` for every one.
        traces: One or several, as `maat.simulate` takes them, or by the names that tables show.
        cluster: GPU types and nodes: `type=NODESxGPUS,...`.
        jobs_per_gpu: How many jobs may share a GPU; None: one, or as the cluster object says.
        placer: Name or names, each with every policy; None: each policy's own.
        profiles: Folder of measured profiles, or `maat.profiles(folder)`; None: the catalog.
        seeds: Of every run; a generated trace without a seed is drawn again with each.
        baseline: One of the policies, or its name as tables show it; None: the first.
        round_seconds: Seconds between rounds; None: each policy's own.
        workers: Processes; None: one per core.
        executor: Any `concurrent.futures.Executor`, which runs them instead.
        cache: Folder of results: stored ones are not simulated again.
        series: Whether to keep each run's jobs, waits, GPUs in use, efficiency and nodes over time.
        progress: Whether to show a progress bar, on a terminal or in a notebook.
        **conditions: See docs/library.md; they have the names of `maat compare --help`.

    >>> import maat
    >>> found = maat.compare(
    ...     ["fifo", maat.policies.Srtf()], maat.generate(jobs=6, hours=1), seeds=[0, 1], workers=1
    ... )
    >>> found.means["policy"], len(found.runs)
    (['fifo', 'srtf'], 4)
    >>> found.differences["baseline"]
    ['fifo + packed-sticky']
    """
    read = read_cluster(cluster, jobs_per_gpu)
    models = read_models(profiles, read)
    plan = ComparisonPlan(
        models,
        read,
        read_contestants(policies, placer),
        read_traces(traces, models),
        read_seeds(seeds),
        read_conditions(read, models, round_seconds=round_seconds, **conditions),
    )
    against = _against(baseline, plan.contestants)
    return run_plan(
        plan,
        against,
        workers=workers_of(workers, executor),
        executor=executor,
        cache=path_or_none(cache, field="cache"),
        series=series,
        quiet=not progress,
    )


def read_contestants(
    policies: str | Sequence[GivenPolicy], placer: str | Sequence[str] | None
) -> tuple[Contestant, ...]:
    """Return every policy with every placer; without one, with its own. Raises InputError."""
    names = [placer] if placer is None or isinstance(placer, str) else list(placer)
    return tuple(
        Contestant(
            chosen.name,
            read_placer(name, chosen),
            policy_parameters=tuple(sorted(chosen.parameters.items())),
            round_seconds=chosen.round_seconds,
            own_policy=chosen.own,
            tuned=chosen.tuned,
        )
        for chosen in read_policies(policies)
        for name in names
    )


def _against(given: GivenPolicy, contestants: Sequence[Contestant]) -> Contestant:
    if given is None or isinstance(given, str):
        return baseline_of(given, contestants)
    chosen = read_policy(given)
    wanted = tuple(sorted(chosen.parameters.items()))
    for contestant in contestants:
        same = (contestant.policy, contestant.policy_parameters) == (chosen.name, wanted)
        if same and contestant.tuned == chosen.tuned:
            return contestant
    return baseline_of(repr(chosen), contestants)


def baseline_of(
    text: str | None, contestants: Sequence[Contestant], *, field: str = "baseline"
) -> Contestant:
    """Return what the others are compared with: POLICY, POLICY+PLACER or a name that tables show.

    None: the first. Raises InputError.
    """
    if text is None:
        return contestants[0]
    policy, _, placer = (part.strip() for part in text.partition("+"))
    for contestant in contestants:
        if text.strip() == contestant.name or (
            contestant.policy == policy and placer in ("", contestant.placer)
        ):
            return contestant
    known = ", ".join(c.name for c in contestants)
    raise InputError(
        "is not among the compared ones",
        field=field,
        value=text,
        remedy=f"Use one of: {known}.",
    )


def run_plan(
    plan: ComparisonPlan,
    baseline: Contestant,
    *,
    workers: int,
    executor: Executor | None = None,
    cache: Path | None,
    series: bool = False,
    quiet: bool,
) -> Comparison:
    """Run a plan under a progress bar. Raises MaatError for a run that cannot be simulated."""
    with Bar("runs", quiet=quiet, total=plan.size) as bar:

        def show(at: ComparisonProgress) -> None:
            bar.show(at.done, at.total)

        outcomes = run_comparison(
            plan,
            workers=workers,
            executor=executor,
            cache=cache,
            tables_of=tables_of if series else None,
            on_progress=show,
        )
    return Comparison(plan, outcomes, baseline)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Runs of policies on the same jobs: tables of runs, means, differences and jobs.

    In a notebook it shows the means and the differences.

    >>> import maat
    >>> found = maat.compare(["fifo", "las"], maat.generate(jobs=4, hours=1, seed=1), workers=1)
    >>> found
    fifo + packed-sticky, las + packed-sticky on philly-1: 1 run(s) of each
    >>> found.jobs.columns
    ('contestant', 'trace', 'seed', 'job', 'jct_hours')
    >>> len(found.runs), len(found.means), found.differences["jobs"], found.paired[0].jobs
    (2, 2, [4], 4)
    >>> [figures["jobs"].mean for figures in found.spreads.values()]
    [4.0, 4.0]
    >>> found.plot.jct_cdf().layout.xaxis.title.text, found.never_run, found.notes
    ('JCT (hours)', (), ())
    >>> found = maat.compare(
    ...     ["fifo", "las"], maat.generate(jobs=4, hours=1, seed=1), workers=1, series=True
    ... )
    >>> found.run("las"), len(found.kept()), found.series("gpus").columns[:4]
    (las + packed-sticky on philly-1, seed 0, 2, ('contestant', 'trace', 'seed', 'time_seconds'))
    >>> sorted(found.to_dict())[:4]
    ['baseline', 'cluster', 'contestants', 'fidelity']
    """

    plan: ComparisonPlan
    outcomes: tuple[Outcome, ...]
    baseline: Contestant

    @cached_property
    def runs(self) -> Table:
        """One row per run: contestant, policy, placer, trace, seed, and the known figures."""
        names = [name for name in FIGURES if any(name in o.figures for o in self.outcomes)]
        who: dict[str, Kind] = dict.fromkeys(("contestant", "policy", "placer", "trace"), str)
        return Table(
            {**who, "seed": int, **{name: kind_of(self._figures(name)) for name in names}},
            [
                (
                    o.contestant.name,
                    o.contestant.policy,
                    o.contestant.placer,
                    o.trace,
                    o.seed,
                    *(o.figures.get(name) for name in names),
                )
                for o in self.outcomes
            ],
        )

    def _figures(self, name: str) -> list[float | int | bool]:
        return [o.figures[name] for o in self.outcomes if name in o.figures]

    @cached_property
    def spreads(self) -> Mapping[Contestant, Mapping[str, Spread]]:
        """Every figure of every contestant: mean over its runs, and sample deviation."""
        return spreads(self.outcomes)

    @cached_property
    def means(self) -> Table:
        """One row per contestant: the mean of each figure, and its deviation (`_deviation`)."""
        names = [name for name in FIGURES if any(name in each for each in self.spreads.values())]
        rows = []
        for who, figures in self.spreads.items():
            row: list[Any] = [who.name, who.policy, who.placer]
            for name in names:
                spread = figures.get(name)
                row += [None, None] if spread is None else [spread.mean, spread.deviation]
            rows.append(row)
        return Table(mean_kinds(names), rows)

    @cached_property
    def paired(self) -> tuple[PairedDifference, ...]:
        """Every other contestant against the baseline, job by job."""
        return paired(self.outcomes, self.baseline)

    @cached_property
    def differences(self) -> Table:
        """One row per other contestant: JCT against the baseline, job by job.

        `_low`, `_high`: the 95 % interval, over what `basis` says (traces, seeds or jobs).
        """
        rows = [
            {
                "contestant": d.contestant.name,
                "basis": d.basis.value,
                "difference_hours": asdict(d.difference_hours),
                "ratio": asdict(d.ratio),
                "sooner": d.sooner,
                "jobs": d.jobs,
                "left_out": d.left_out,
                "verdict": d.verdict.value,
            }
            for d in self.paired
        ]
        return Table(DIFFERENCES, [difference_row(row, self.baseline.name) for row in rows])

    @cached_property
    def jobs(self) -> Table:
        """One row per finished job of every run: contestant, trace, seed, job, JCT in hours."""
        return Table(
            {"contestant": str, "trace": str, "seed": int, "job": str, "jct_hours": float},
            [
                (o.contestant.name, o.trace, o.seed, name, hours)
                for o in self.outcomes
                for name, hours in o.jct_hours.items()
            ],
        )

    @property
    def plot(self) -> ComparisonPlots:
        """The figures: `found.plot.jct_cdf()`, `found.plot.gpus_over_time()` and others."""
        return ComparisonPlots(self)

    def kept(self) -> tuple[KeptRun, ...]:
        """Return every run, in order, with its tables. Raises InputError without `series=True`."""
        return kept_runs(
            KeptRun(o.contestant.name, o.trace, o.seed, o.tables) for o in self.outcomes
        )

    def run(self, contestant: str, *, trace: str | None = None, seed: int | None = None) -> KeptRun:
        """Return a contestant's run, of several the first; named as `baseline` is.

        Raises InputError if there is none, or without `series=True`.
        """
        who = baseline_of(contestant, self.plan.contestants, field="contestant")
        return chosen_run(self.kept(), who.name, trace, seed)

    def series(self, name: str) -> Table:
        """Return a table of all runs: contestant, trace, seed, then the columns of that of a run.

        `name`: jobs, gpus, efficiency, nodes or waits. Raises InputError for another name, or
        without `series=True`.
        """
        kept = self.kept()
        who: list[dict[str, Cell]] = [
            {"contestant": run.line, "trace": run.trace, "seed": run.seed} for run in kept
        ]
        return joined_tables(name, who, kept)

    @cached_property
    def never_run(self) -> tuple[str, ...]:
        """A sentence for each contestant under which jobs can never run."""
        return never_run(self._played)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What else a reader of the figures should know, as sentences."""
        return (*self.plan.notes(), *notes_on_runs(self._played))

    @property
    def _played(self) -> list[RunFigures]:
        return [
            RunFigures(o.contestant.policy, o.contestant.placer, o.figures) for o in self.outcomes
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what `maat compare --json` prints: runs, means and paired differences."""
        interference = self.plan.conditions.interference
        return {
            "cluster": self.plan.cluster.describe(),
            "jobs_per_gpu": self.plan.cluster.jobs_per_gpu,
            "interference": None if interference is None else interference.name,
            "fidelity": self.plan.conditions.fidelity.name,
            **report(self.outcomes, self.baseline),
            "runs": [
                {**as_data(o.contestant), "trace": o.trace, "seed": o.seed, "figures": o.figures}
                for o in self.outcomes
            ],
            "notes": (*self.never_run, *self.notes),
        }

    def __repr__(self) -> str:
        who = ", ".join(contestant.name for contestant in self.plan.contestants)
        traces = ", ".join(trace.name for trace in self.plan.traces)
        return f"{who} on {traces}: {len(self.outcomes) // len(self.spreads)} run(s) of each"

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(each)}</p>" for each in (*self.never_run, *self.notes))
        return f"{self.means.as_html()}{self.differences.as_html()}{notes}"
