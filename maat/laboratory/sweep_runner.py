"""Runs the points of a sweep, each content at most once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from maat.laboratory.axes import AxisValue
from maat.laboratory.comparison import labelled
from maat.laboratory.content import has_known_content
from maat.laboratory.figures import Figures, figures_of
from maat.laboratory.kept_tables import TablesOf, kept_tables, with_tables, without_tables
from maat.laboratory.parallel import Task, run_tasks
from maat.laboratory.results import Kept, ResultCache, kept_results
from maat.laboratory.sweep import FailedPoint, Point, Row, rows_of
from maat.scheduling.errors import MaatError
from maat.simulation.engine import simulate
from maat.simulation.record import Progress
from maat.simulation.scenario import Scenario

SimulatePoint = Callable[[Scenario], Kept]


class Origin(StrEnum):
    """The source of a point's figures.

    REPAIRED: its cache entry was damaged, so it was simulated again.
    """

    SIMULATED = "simulated"
    CACHE = "cache"
    REPAIRED = "repaired"


@dataclass(frozen=True)
class PointResult:
    """A point with its figures. `tables`: what else was kept of it, by name; empty: nothing."""

    settings: Mapping[str, AxisValue]
    seed: int
    key: str
    figures: Figures
    origin: Origin
    tables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SweepResult:
    """All points that were simulated, in the sweep's order, and those that failed."""

    points: tuple[PointResult, ...]
    failed: tuple[FailedPoint, ...] = ()

    def rows(self) -> tuple[Row, ...]:
        return rows_of([(point.settings, point.seed, point.figures) for point in self.points])


@dataclass(frozen=True, slots=True)
class SweepPosition:
    """The progress of a sweep: `done` of `total` points, `simulated` of them run now."""

    done: int
    total: int
    simulated: int


def simulate_point(scenario: Scenario, *, on_progress: Progress | None = None) -> Figures:
    """Simulate one point. Only its timed figures depend on the machine."""
    return figures_of(simulate(scenario, on_progress=on_progress))


def simulate_with_tables(scenario: Scenario, *, tables_of: TablesOf) -> Kept:
    """Simulate one point, and keep its tables beside its figures."""
    result = simulate(scenario)
    return {**figures_of(result), **kept_tables(result, tables_of)}


def run_sweep(
    points: Sequence[Point],
    *,
    workers: int = 1,
    executor: Executor | None = None,
    cache: ResultCache | None = None,
    tables_of: TablesOf | None = None,
    on_progress: Callable[[SweepPosition], None] | None = None,
) -> SweepResult:
    """Return the figures of every point: cached, or from up to `workers` processes.

    `executor`: what runs them instead; it is not shut down. Points of the same content run
    once. `tables_of`: what else to keep of a run; a module-level function. Points that cannot be
    simulated are told beside the others; if none can be, raises the error of the first.
    """
    simulate_one = (
        simulate_point if tables_of is None else partial(simulate_with_tables, tables_of=tables_of)
    )
    keyed = [(point, with_tables(point.key, tables_of)) for point in points]
    found, damaged = kept_results([key for _, key in keyed], cache)
    left = {key: _task(point.scenario, simulate_one) for point, key in keyed if key not in found}
    origin = dict.fromkeys(found, Origin.CACHE) | {
        key: Origin.REPAIRED if key in damaged else Origin.SIMULATED for key in left
    }
    counts = Counter(key for _, key in keyed)

    def report() -> None:
        if on_progress is not None:
            simulated = sum(key in found for key in left)
            on_progress(SweepPosition(sum(counts[key] for key in found), len(points), simulated))

    report()
    errors: dict[str, MaatError] = {}
    for key, kept in run_tasks(left, workers=workers, executor=executor, cache=cache):
        if isinstance(kept, MaatError):
            errors[key] = kept
        else:
            found[key] = kept
        report()
    if errors and not found:
        raise next(errors[key] for _, key in keyed)
    return SweepResult(
        tuple(
            PointResult(p.settings, p.seed, p.key, figures, origin[key], tables)
            for p, key in keyed
            if key in found
            for figures, tables in (without_tables(found[key]),)
        ),
        tuple(
            FailedPoint(p.settings, p.seed, p.key, errors[key]) for p, key in keyed if key in errors
        ),
    )


def run_all(
    todo: Mapping[str, Scenario],
    *,
    simulate_one: SimulatePoint,
    workers: int = 1,
    executor: Executor | None = None,
    cache: ResultCache | None = None,
) -> Iterator[tuple[str, Kept]]:
    """Yield keys with what is kept of their runs: first those in the cache, then the others.

    `simulate_one`: a module-level function, which runs in up to `workers` processes, or on
    `executor`, which is not shut down. Raises
    MaatError for the first that cannot be simulated.
    """
    found, _ = kept_results(list(todo), cache)
    yield from found.items()
    left = {
        key: _task(scenario, simulate_one) for key, scenario in todo.items() if key not in found
    }
    for key, kept in run_tasks(left, workers=workers, executor=executor, cache=cache):
        if isinstance(kept, MaatError):
            raise kept
        yield key, kept


def _task(scenario: Scenario, simulate_one: SimulatePoint) -> Task:
    own = scenario.own_policy
    named = scenario.policy if own is None and ":" in scenario.policy else None
    return Task(
        simulate_one,
        scenario,
        own=own,
        kept=has_known_content(scenario),
        policy=named,
        name=_name(scenario),
    )


def _name(scenario: Scenario) -> str:
    """`sia (p=-1) + whole-node on philly-1, seed 0`"""
    policy = labelled(scenario.policy, tuple(scenario.policy_parameters.items()))
    placer = labelled(scenario.placer, tuple(scenario.placer_parameters.items()))
    return f"{policy} + {placer} on {scenario.workload.name}, seed {scenario.seed}"
