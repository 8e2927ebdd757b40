"""Sensitivity sweeps: one simulation, repeated with one or two settings varied.

Each point has the same seeds (Sia section 5.7). Defines the points and aggregates their figures;
sweep_runner runs them.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from maat.laboratory.axes import AXES, Axis, AxisValue
from maat.laboratory.content import content_key
from maat.laboratory.figures import Figures, common
from maat.laboratory.setup import Setup
from maat.scheduling.errors import (
    ClusterTooSmall,
    InputError,
    MaatError,
    ParameterError,
    UnknownNameError,
)
from maat.simulation.scenario import Scenario
from maat.workloads.generators import MAX_SEED

MAX_POINTS = 2_000


@dataclass(frozen=True, slots=True)
class Varied:
    """One axis and its values, in the given order.

    Raises InputError if a value does not suit the axis, or is there twice.
    """

    axis: Axis
    values: tuple[AxisValue, ...]

    @classmethod
    def of(cls, name: str, given: Sequence[object]) -> Varied:
        if name not in AXES:
            raise UnknownNameError(
                "is nothing that can be varied",
                field="vary",
                value=name,
                remedy=f"Use one of: {', '.join(AXES)}.",
            )
        return cls.on(AXES[name], given)

    @classmethod
    def on(cls, axis: Axis, given: Sequence[object]) -> Varied:
        """Read values of an axis that need not be one of AXES."""
        name, values = axis.name, tuple(axis.parse(value) for value in given)
        if not values:
            raise ParameterError(
                "has no values", field=name, remedy="Give at least one, with commas between."
            )
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise ParameterError(
                "stands twice", field=name, value=twice, remedy="Give every value once."
            )
        return cls(axis, values)


@dataclass(frozen=True)
class Point:
    """One simulation of a sweep.

    `settings`: by axis, in the sweep's order. Points with the same `key` are the same simulation.
    """

    settings: Mapping[str, AxisValue]
    seed: int
    key: str
    scenario: Scenario


@dataclass(frozen=True)
class FailedPoint:
    """A point that could not be simulated, and why. `key`: of the content it would have."""

    settings: Mapping[str, AxisValue]
    seed: int
    key: str
    error: MaatError


@dataclass(frozen=True)
class Planned:
    """The points of a sweep that can be simulated, and those whose cluster is too small."""

    points: tuple[Point, ...]
    failed: tuple[FailedPoint, ...]


@dataclass(frozen=True)
class Sweep:
    """A base, one or two axes, and the seeds of every combination of their values."""

    base: Setup
    axes: tuple[Varied, ...]
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        names = [varied.axis.name for varied in self.axes]
        if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
            raise ParameterError(
                "are not one or two different settings",
                field="vary",
                value=names,
                remedy="Vary one or two of them.",
            )
        wrong = [seed for seed in self.seeds if not 0 <= seed <= MAX_SEED]
        if wrong or not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ParameterError(
                "are not different whole numbers from 0 up",
                field="seeds",
                value=list(self.seeds),
                remedy="Write for example 0,1,2.",
            )
        self._check_fixed(self.base, "for all points")
        for varied in self.axes:
            for value in varied.values:
                self._check_fixed(varied.axis.apply(self.base, value), f"by {value}", but=varied)
        if self.size > MAX_POINTS:
            raise InputError(
                "are more simulations than one sweep may have",
                field="vary",
                value=self.size,
                remedy=f"Choose at most {MAX_POINTS}.",
            )

    def _check_fixed(self, setup: Setup, where: str, *, but: Varied | None = None) -> None:
        """Raise ParameterError if a setup, which `where` names, sets what is varied."""
        for varied in self.axes:
            if varied is not but and varied.axis.fixed(setup):
                raise ParameterError(
                    f"is varied, and set {where}",
                    field=varied.axis.name,
                    value=list(varied.values),
                    remedy="Set it or vary it.",
                )

    @property
    def size(self) -> int:
        return math.prod(len(varied.values) for varied in self.axes) * len(self.seeds)

    def points(self) -> tuple[Point, ...]:
        """Return every combination, the first axis outermost, seeds innermost.

        Raises InputError if one of them cannot be simulated.
        """
        return tuple(
            _point(setup, settings, seed) for setup, settings, seed in self._combinations()
        )

    def each(self) -> Iterator[Point | FailedPoint]:
        """Yield every combination; one whose cluster is too small for what is reserved has failed.

        Raises InputError if one cannot be simulated for another reason.
        """
        for setup, settings, seed in self._combinations():
            point: Point | FailedPoint
            try:
                point = _point(setup, settings, seed)
            except ClusterTooSmall as error:
                point = FailedPoint(settings, seed, content_key(setup.unchecked()), error)
            yield point

    def planned(self) -> Planned:
        """Return the points that can be simulated and those that failed.

        Raises InputError if no point can be simulated, or one for another reason than its cluster.
        """
        each = tuple(self.each())
        points = tuple(point for point in each if isinstance(point, Point))
        failed = tuple(point for point in each if isinstance(point, FailedPoint))
        if not points:
            raise failed[0].error
        return Planned(points, failed)

    def _combinations(self) -> Iterator[tuple[Setup, Mapping[str, AxisValue], int]]:
        names = [varied.axis.name for varied in self.axes]
        for values in itertools.product(*(varied.values for varied in self.axes)):
            for seed in self.seeds:
                yield self._setup(values, seed), dict(zip(names, values, strict=True)), seed

    def _setup(self, values: Sequence[AxisValue], seed: int) -> Setup:
        setup = replace(self.base, seed=seed)
        for varied, value in zip(self.axes, values, strict=True):
            setup = varied.axis.apply(setup, value)
        return setup


def point_at(base: Setup, settings: Mapping[str, AxisValue], seed: int) -> Point:
    """Return the point of these settings, by names in AXES.

    Raises InputError if it cannot be simulated.
    """
    setup = replace(base, seed=seed)
    for name, value in settings.items():
        setup = AXES[name].apply(setup, value)
    return _point(setup, settings, seed)


def _point(setup: Setup, settings: Mapping[str, AxisValue], seed: int) -> Point:
    scenario = setup.scenario()
    return Point(settings, seed, content_key(scenario), scenario)


@dataclass(frozen=True)
class Row:
    """One combination of settings over its seeds.

    `spread`: sample standard deviation, 0 for one seed. Has the figures that every seed has:
    without a finished job there is no completion time.
    """

    settings: Mapping[str, AxisValue]
    seeds: tuple[int, ...]
    mean: Mapping[str, float]
    spread: Mapping[str, float]


def rows_of(results: Sequence[tuple[Mapping[str, AxisValue], int, Figures]]) -> tuple[Row, ...]:
    """Return mean and spread over the seeds of (settings, seed, figures).

    Combinations are in the order of their first result.
    """
    groups: dict[tuple[AxisValue, ...], list[tuple[Mapping[str, AxisValue], int, Figures]]] = {}
    for result in results:
        groups.setdefault(tuple(result[0].values()), []).append(result)
    return tuple(_row(group) for group in groups.values())


def _row(group: Sequence[tuple[Mapping[str, AxisValue], int, Figures]]) -> Row:
    names = common([figures for _, _, figures in group])
    columns = {name: [float(figures[name]) for _, _, figures in group] for name in names}
    return Row(
        settings=group[0][0],
        seeds=tuple(seed for _, seed, _ in group),
        mean={name: statistics.fmean(values) for name, values in columns.items()},
        spread={
            name: statistics.stdev(values) if len(values) > 1 else 0.0
            for name, values in columns.items()
        },
    )
