"""`maat.sweep`: one or two settings of a simulation varied, over several seeds."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from maat.laboratory.axes import AXES, AxisValue
from maat.laboratory.figures import FIGURES, RunFigures, never_run, notes_on_runs
from maat.laboratory.results import ResultCache
from maat.laboratory.setup import Setup
from maat.laboratory.sweep import Planned, Point, Sweep, Varied
from maat.laboratory.sweep_runner import SweepPosition, SweepResult, run_sweep
from maat.library.arrow import Kind
from maat.library.comparing import read_contestants
from maat.library.conditions import ConditionValues, takes_conditions
from maat.library.files import path_or_none
from maat.library.inputs import DEFAULT_CLUSTER, GivenTraces, Profiles, read_seeds, workers_of
from maat.library.kept_runs import KeptRun, chosen_run, joined_tables, kept_runs, tables_of
from maat.library.policies import GivenPolicy
from maat.library.progress import Bar
from maat.library.run import setup_of
from maat.library.study_plots import SweepPlots, setting_name
from maat.library.study_tables import kind_of
from maat.library.tables import Table
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ParameterError
from maat.simulation.notes import notes_on_all


@takes_conditions
def sweep(
    trace: GivenTraces,
    vary: Mapping[str, Sequence[AxisValue | GivenPolicy]],
    *,
    cluster: str | Cluster = DEFAULT_CLUSTER,
    jobs_per_gpu: int | None = None,
    policy: GivenPolicy = None,
    placer: str | None = None,
    profiles: str | Path | Profiles | None = None,
    seeds: Iterable[int] = (0,),
    round_seconds: float | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    cache: str | Path | None = None,
    series: bool = False,
    progress: bool = True,
    **conditions: Unpack[ConditionValues],
) -> Swept:
    """Vary one or two settings of a simulation over seeds.

    Raises InputError, which names the argument, its value and a remedy, for what cannot be
    simulated.

    Args:
        trace: As `maat.simulate` takes it.
        vary: Settings with their values, such as `{"round_seconds": [60, 120]}`; one or two.
        cluster: GPU types and nodes: `type=NODESxGPUS,...`.
        jobs_per_gpu: How many jobs may share a GPU; None: one, or as the cluster object says.
        policy: As `maat.simulate` takes it; None: sia. To vary it: `{"policy": ["sia", mine]}`.
        placer: Name of what decides on which GPUs; None: each policy's own.
        profiles: Folder of measured profiles, or `maat.profiles(folder)`; None: the catalog.
        seeds: Of every point; a generated trace without a seed is drawn again with each.
        round_seconds: Seconds between rounds; None: the policy's own.
        workers: Processes; None: one per core.
        executor: Any `concurrent.futures.Executor`, which runs them instead.
        cache: Folder of results: stored ones are not simulated again.
        series: Whether to keep each run's jobs, waits, GPUs in use, efficiency and nodes over time.
        progress: Whether to show a progress bar, on a terminal or in a notebook.
        **conditions: See docs/library.md; they have the names of `maat sweep --help`.

    >>> import maat
    >>> trace = maat.generate("philly", jobs=4, hours=1)
    >>> swept = maat.sweep(trace, {"round_seconds": [60, 360]}, policy="fifo", workers=1)
    >>> swept.means["round_seconds"]
    [60.0, 360.0]
    """
    axes = read_axes(vary)
    check_policy_once(None if policy is None else str(policy), axes)
    base = setup_of(
        trace,
        cluster=cluster,
        jobs_per_gpu=jobs_per_gpu,
        policy="sia" if policy is None else policy,
        placer=placer,
        profiles=profiles,
        seed=0,
        round_seconds=round_seconds,
        **conditions,
    )
    wanted = Sweep(base, axes, read_seeds(seeds))
    return run_points(
        wanted,
        wanted.planned(),
        workers=workers_of(workers, executor),
        executor=executor,
        cache=path_or_none(cache, field="cache"),
        series=series,
        quiet=not progress,
    )


def read_axes(vary: Mapping[str, Sequence[AxisValue | GivenPolicy]]) -> tuple[Varied, ...]:
    """Return the settings that vary. Raises InputError."""
    known = vary.values() if isinstance(vary, Mapping) else [vary]
    if not isinstance(vary, Mapping) or any(
        isinstance(values, str) or not isinstance(values, Iterable) for values in known
    ):
        raise ParameterError(
            "are no settings with their values",
            field="vary",
            value=vary,
            remedy='Give for example {"round_seconds": [60, 120]}.',
        )
    return tuple(
        _varied_policies(list(values)) if name == "policy" else Varied.of(name, list(values))
        for name, values in vary.items()
    )


def _varied_policies(given: list[GivenPolicy]) -> Varied:
    """Return policies as an axis whose values are their names, with their knobs."""
    contestants = read_contestants(given, None)
    by_label = {who.policy_label: who for who in contestants}

    def apply(setup: Setup, label: AxisValue) -> Setup:
        who = by_label[str(label)]
        return replace(
            setup,
            policy=who.policy,
            own_policy=who.own_policy,
            policy_parameters={**setup.policy_parameters, **dict(who.policy_parameters)},
            round_seconds=who.round_seconds,
            tuned_by_policy={} if who.tuned is None else {who.policy: who.tuned},
        )

    axis = replace(AXES["policy"], apply=apply)
    return Varied.on(axis, [who.policy_label for who in contestants])


def check_policy_once(policy: str | None, axes: Sequence[Varied]) -> None:
    """Raise ParameterError if a policy is given, and varied."""
    if policy is not None and any(varied.axis.name == "policy" for varied in axes):
        raise ParameterError(
            "is varied, and set for all points",
            field="policy",
            value=policy,
            remedy="Set it or vary it.",
        )


def run_points(
    sweep: Sweep,
    planned: Planned,
    *,
    workers: int,
    executor: Executor | None = None,
    cache: Path | None,
    series: bool = False,
    quiet: bool,
) -> Swept:
    """Run the points of a sweep under a progress bar. Raises MaatError if none can be simulated."""
    kept = None if cache is None else ResultCache(cache)
    with Bar("points", quiet=quiet) as bar:

        def show(at: SweepPosition) -> None:
            bar.show(at.done, at.total, f"{at.simulated} simulated")

        result = run_sweep(
            planned.points,
            workers=workers,
            executor=executor,
            cache=kept,
            tables_of=tables_of if series else None,
            on_progress=show,
        )
    result = replace(result, failed=(*planned.failed, *result.failed))
    return Swept(sweep, planned.points, result)


@dataclass(frozen=True, eq=False, repr=False)
class Swept:
    """The points of a sweep: tables of every point, and of the means over seeds.

    `failed`: points that could not be simulated, with why. In a notebook it shows the means.

    >>> import maat
    >>> trace = maat.generate("philly", jobs=4, hours=1)
    >>> swept = maat.sweep(trace, {"policy": ["fifo", "las"]}, seeds=[0, 1], workers=1)
    >>> swept
    2 values of policy, 2 seed(s): 4 points, 0 failed
    >>> swept.table["policy"]
    ['fifo', 'fifo', 'las', 'las']
    >>> swept.means["policy"], len(swept.failed), swept.never_run, swept.notes
    (['fifo', 'las'], 0, (), ())
    >>> [axis["name"] for axis in swept.to_dict()["axes"]]
    ['policy']
    >>> [line.name for line in swept.plot.means("p99_jct_hours").data]
    ['p99 JCT']
    >>> swept = maat.sweep(trace, {"policy": ["fifo", "las"]}, workers=1, series=True)
    >>> swept.run({"policy": "las"}), len(swept.kept()), swept.series("gpus").columns[:3]
    (policy = las on seed 0, 2, ('policy', 'seed', 'time_seconds'))
    """

    sweep: Sweep
    points: tuple[Point, ...]
    result: SweepResult

    @property
    def failed(self) -> Table:
        """One row per point that could not be simulated: its settings, seed, and why."""
        return Table(
            {**self._settings, "seed": int, "error": str},
            [(*p.settings.values(), p.seed, str(p.error)) for p in self.result.failed],
        )

    @cached_property
    def table(self) -> Table:
        """One row per point: its settings, seed, and each figure that is known."""
        points = self.result.points
        names = [name for name in FIGURES if any(name in point.figures for point in points)]
        kinds: dict[str, Kind] = {
            name: kind_of([p.figures[name] for p in points if name in p.figures]) for name in names
        }
        return Table(
            {**self._settings, "seed": int, **kinds},
            [
                (*p.settings.values(), p.seed, *(p.figures.get(name) for name in names))
                for p in points
            ],
        )

    @cached_property
    def means(self) -> Table:
        """One row per combination: the mean of each figure, and its deviation over the seeds.

        Has the figures that every seed has.
        """
        rows = self.result.rows()
        names = [name for name in FIGURES if any(name in row.mean for row in rows)]
        cells: dict[str, Kind] = {}
        for name in names:
            cells |= {name: float, f"{name}_deviation": float}
        return Table(
            {**self._settings, **cells},
            [
                (
                    *row.settings.values(),
                    *(value for n in names for value in (row.mean.get(n), row.spread.get(n))),
                )
                for row in rows
            ],
        )

    @property
    def plot(self) -> SweepPlots:
        """The figures: `swept.plot.means("p99_jct_hours")`, `swept.plot.gpus_over_time()`."""
        return SweepPlots(self)

    def kept(self) -> tuple[KeptRun, ...]:
        """Return every run, in order, with its tables. Raises InputError without `series=True`."""
        return kept_runs(
            KeptRun(setting_name(p.settings), "", p.seed, p.tables) for p in self.result.points
        )

    def run(self, settings: Mapping[str, AxisValue], *, seed: int | None = None) -> KeptRun:
        """Return the run of these settings; of several, the first.

        Raises InputError if there is none, or without `series=True`.
        """
        return chosen_run(self.kept(), setting_name(settings), None, seed)

    def series(self, name: str) -> Table:
        """Return a table of all runs: their settings, seed, then the columns of that of a run.

        `name`: jobs, gpus, efficiency, nodes or waits. Raises InputError for another name, or
        without `series=True`.
        """
        settings = [{**p.settings, "seed": p.seed} for p in self.result.points]
        return joined_tables(name, settings, self.kept())

    @property
    def _settings(self) -> dict[str, Kind]:
        return {varied.axis.name: _kind(varied.values) for varied in self.sweep.axes}

    @cached_property
    def never_run(self) -> tuple[str, ...]:
        """A sentence for each policy and placer under which jobs can never run."""
        return never_run(self._played)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What else a reader of the figures should know, as sentences."""
        scenarios = {point.key: point.scenario for point in self.points}
        return (*notes_on_all(scenarios.values()), *notes_on_runs(self._played))

    @property
    def _played(self) -> list[RunFigures]:
        figures = {point.key: point.figures for point in self.result.points}
        scenarios = {point.key: point.scenario for point in self.points}
        return [
            RunFigures(scenarios[key].policy, scenarios[key].placer, known)
            for key, known in figures.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what `maat sweep --json` prints: every point and every mean."""
        base = self.sweep.base
        interference = base.conditions.interference
        return {
            "cluster": base.cluster.describe(),
            "jobs_per_gpu": base.cluster.jobs_per_gpu,
            "interference": None if interference is None else interference.name,
            "policy": base.policy,
            "placer": base.placer,
            "fidelity": base.conditions.fidelity.name,
            "axes": [
                {
                    "name": v.axis.name,
                    "title": v.axis.title,
                    "unit": v.axis.unit,
                    "values": v.values,
                }
                for v in self.sweep.axes
            ],
            "seeds": self.sweep.seeds,
            "points": [
                {
                    "settings": point.settings,
                    "seed": point.seed,
                    "key": point.key,
                    "figures": point.figures,
                    "origin": point.origin,
                }
                for point in self.result.points
            ],
            "failed": [
                {"settings": point.settings, "seed": point.seed, "error": str(point.error)}
                for point in self.result.failed
            ],
            "rows": [asdict(row) for row in self.result.rows()],
            "notes": (*self.never_run, *self.notes),
        }

    def __repr__(self) -> str:
        axes = ", ".join(f"{len(v.values)} values of {v.axis.name}" for v in self.sweep.axes)
        points = f"{len(self.points)} points, {len(self.result.failed)} failed"
        return f"{axes}, {len(self.sweep.seeds)} seed(s): {points}"

    def _repr_html_(self) -> str:
        failed = self.failed.as_html() if len(self.failed) else ""
        notes = "".join(f"<p>{html.escape(each)}</p>" for each in (*self.never_run, *self.notes))
        return f"<p>{html.escape(repr(self))}</p>{self.means.as_html()}{failed}{notes}"


def _kind(values: Sequence[AxisValue]) -> Kind:
    """Return the kind of a setting's column; one that has a word among its numbers has words."""
    if all(isinstance(value, int) for value in values):
        return int
    return str if any(isinstance(value, str) for value in values) else float
