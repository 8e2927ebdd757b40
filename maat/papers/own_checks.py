"""Checks before anything runs that one's own measurements have what items need of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from maat.laboratory.runnable_jobs import refusals
from maat.papers.bench import Bench, Size
from maat.papers.data import Data
from maat.papers.items import Item, Run, WithRho
from maat.papers.own import OwnMeasurements
from maat.papers.standing import why_not
from maat.scheduling.errors import (
    InputError,
    InterferenceError,
    MaatError,
    ProfileError,
    TraceError,
    VariabilityError,
)
from maat.simulation.scenario import Scenario
from maat.simulation.usable_types import check_models
from maat.simulation.world import World
from maat.vocabulary import MeasurementKind

# what the readers of a kind raise, and what is said of jobs that it makes impossible
_BLAMED: Sequence[tuple[type[MaatError], Sequence[MeasurementKind]]] = (
    (VariabilityError, (MeasurementKind.VARIABILITY, MeasurementKind.TRACE)),
    (InterferenceError, (MeasurementKind.INTERFERENCE,)),
    (TraceError, (MeasurementKind.TRACE, MeasurementKind.PROFILES)),
    (ProfileError, (MeasurementKind.PROFILES, MeasurementKind.TRACE)),
)


def check_own(items: Sequence[Item], data: Data) -> None:
    """Raise InputError if measurements of one's own lack something that an item needs.

    It names the item and the measurements. Items that cannot be made for other reasons pass.
    """
    if not data.own:
        return
    for item in items:
        if why_not(item, data) is not None:
            continue
        try:
            _check(item, Bench(data, Size.QUICK))
        except MaatError as lacking:
            blamed = _blamed(data.own, lacking)
            raise InputError(
                f"cannot stand in for published data in {item.key}: {lacking}",
                field=blamed.kind.value,
                value=blamed.name,
                remedy="Choose others, or leave this item out.",
            ) from lacking


def _check(item: Item, bench: Bench) -> None:
    """Build what the item runs; show at once what needs no run."""
    runs = item.runs(bench)
    if not runs and not item.show(bench, {}).rows:
        raise MaatError("they have nothing that it shows.")
    for scenario in _different(runs.values()):
        check_models(scenario)
        # which requests are tuned for its jobs takes seconds to find, and is no matter here
        world = World.of(replace(scenario, conditions=replace(scenario.conditions, tuned=None)))
        world.check_scores()
        world.check_interference()
        for refusal in refusals(world).values():
            raise refusal


def _different(runs: Iterable[Run]) -> Iterable[Scenario]:
    """Return one scenario for each set of jobs, GPUs and draw: others differ in policy."""
    scenarios = (run.scenario if isinstance(run, WithRho) else run for run in runs)
    found = {_what(each): each for each in scenarios if isinstance(each, Scenario)}
    return found.values()


def _what(scenario: Scenario) -> tuple[object, ...]:
    cluster, rules = scenario.cluster, scenario.conditions.fidelity.variability
    gpus = zip(cluster.type_names, cluster.usable_gpus.tolist(), strict=True)
    return id(scenario.workload), tuple(gpus), rules.draw


def _blamed(own: Sequence[OwnMeasurements], error: MaatError) -> OwnMeasurements:
    """Return the measurements that an error is about, of those that are given."""
    by_kind = {each.kind: each for each in own}
    for kind_of_error, kinds in _BLAMED:
        if isinstance(error, kind_of_error):
            return next((by_kind[kind] for kind in kinds if kind in by_kind), own[0])
    return own[0]
