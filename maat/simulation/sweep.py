"""Sensitivity sweeps: one simulation, repeated with one or two of its settings varied, each point on the same seeds (Sia section 5.7).

Says what the points are and what their figures come to. Does not play them: see sweep_runner. A further axis is one entry in AXES.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, ParameterError, UnknownNameError
from maat.scheduling.policies import suiting_placer
from maat.scheduling.reservations import Reservation, check_reservations
from maat.simulation.adaptivity_shares import check_shares
from maat.simulation.content import content_key
from maat.simulation.failures import Failures
from maat.simulation.fidelity import FIDELITIES, Fidelity, ProfilingMode
from maat.simulation.generators import FAMILIES, generate
from maat.simulation.interference import Interference
from maat.simulation.models import Model
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.variability import Variability
from maat.simulation.workloads import Workload

MAX_POINTS = 2_000
MAX_COPIES = 64

AxisValue = float | int | str
Figures = Mapping[str, float | int | bool]


class TraceSource(Protocol):
    """Where the workload of a point comes from. `copies`: how many times as many jobs; `seed`: of whatever is drawn."""

    def workload(self, *, seed: int, copies: int, jobs_per_hour: float | None) -> Workload: ...


@dataclass(frozen=True)
class GivenTrace:
    """A workload as it is, the same for every seed. Twice the cluster: every job twice, at the same time."""

    given: Workload

    def workload(self, *, seed: int, copies: int, jobs_per_hour: float | None) -> Workload:
        if jobs_per_hour is not None:
            raise ParameterError(
                "is for generated workloads",
                field="jobs_per_hour",
                value=jobs_per_hour,
                remedy="Vary arrival_rate: a given trace is sped up.",
            )
        jobs = [job if copy == 0 else replace(job, name=f"{job.name}~{copy}") for job in self.given.jobs for copy in range(copies)]
        return replace(self.given, jobs=tuple(jobs))


@dataclass(frozen=True)
class GeneratedTrace:
    """A workload of a family, drawn anew with every seed, as `maat simulate --generate` draws it."""

    family: str = "philly"
    jobs: int | None = None
    hours: float | None = None

    def workload(self, *, seed: int, copies: int, jobs_per_hour: float | None) -> Workload:
        drawn = generate(self.family, jobs=self.jobs, hours=self.hours, seed=seed)
        if copies == 1 and jobs_per_hour is None:
            return drawn
        hours = FAMILIES[self.family].hours if self.hours is None else self.hours
        count = len(drawn) if jobs_per_hour is None else max(round(jobs_per_hour * hours), 1)
        return generate(self.family, jobs=count * copies, hours=self.hours, seed=seed)


@dataclass(frozen=True)
class Setup:
    """One point, before its workload is drawn. `placer` None: the one that suits the policy."""

    trace: TraceSource
    models: Mapping[str, Model]
    cluster: str
    policy: str = "sia"
    placer: str | None = None
    policy_parameters: Mapping[str, object] = field(default_factory=dict)
    fidelity: Fidelity = field(default_factory=lambda: FIDELITIES["paper"])
    round_seconds: float | None = None
    seed: int = 0
    arrival_rate: float = 1.0
    jobs_per_hour: float | None = None
    cluster_size: int = 1
    rigid_share: float = 0.0
    strong_scaling_share: float = 0.0
    failures: Failures = ()
    reservations: tuple[Reservation, ...] = ()
    variability: Variability | None = None
    locality_penalties: Mapping[str, float] = field(default_factory=dict)
    tuned: TunedJobs | None = None
    jobs_per_gpu: int = 1
    interference: Interference | None = None

    def scenario(self) -> Scenario:
        """What the engine plays. Raises InputError where trace, cluster, shares or reservations cannot be used."""
        check_shares(self.rigid_share, self.strong_scaling_share)
        cluster = replace(grown(Cluster.parse(self.cluster), self.cluster_size), jobs_per_gpu=self.jobs_per_gpu)
        drawn = self.trace.workload(seed=self.seed, copies=self.cluster_size, jobs_per_hour=self.jobs_per_hour)
        check_reservations(self.reservations, cluster, job_ids={job.name for job in drawn.jobs})
        return Scenario(
            workload=sped_up(drawn, self.arrival_rate),
            models=self.models,
            cluster=cluster,
            policy=self.policy,
            placer=suiting_placer(self.policy) if self.placer is None else self.placer,
            policy_parameters=self.policy_parameters,
            fidelity=self.fidelity,
            round_seconds=self.round_seconds,
            seed=self.seed,
            rigid_share=self.rigid_share,
            strong_scaling_share=self.strong_scaling_share,
            failures=self.failures,
            reservations=self.reservations,
            variability=self.variability,
            locality_penalties=self.locality_penalties,
            tuned=self.tuned,
            interference=self.interference,
        )


def sped_up(workload: Workload, rate: float) -> Workload:
    """The same jobs, submitted `rate` times as fast from the first on."""
    if rate == 1.0 or not workload.jobs:
        return workload
    first = workload.jobs[0].submit_seconds
    jobs = tuple(replace(job, submit_seconds=first + (job.submit_seconds - first) / rate) for job in workload.jobs)
    return replace(workload, jobs=jobs)


def grown(cluster: Cluster, factor: int) -> Cluster:
    """`factor` times as many nodes of every kind."""
    nodes = [replace(node, id=node.id if copy == 0 else f"{node.id}~{copy}") for node in cluster.nodes for copy in range(factor)]
    return cluster if factor == 1 else replace(cluster, nodes=tuple(nodes), scores={})


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting that can be varied. `parse`: its value from JSON or from text; `apply`: the setup with it."""

    name: str
    title: str
    parse: Callable[[object], AxisValue]
    apply: Callable[[Setup, AxisValue], Setup]
    unit: str | None = None
    logarithmic: bool = False


def _number(name: str, *, least: float, most: float, whole: bool = False) -> Callable[[object], AxisValue]:
    def parse(given: object) -> AxisValue:
        kind = "whole number" if whole else "number"
        try:
            value = float(given) if isinstance(given, (int, float, str)) and not isinstance(given, bool) else math.nan
        except ValueError:
            value = math.nan
        if not least <= value <= most or (whole and value != int(value)):
            raise ParameterError(
                f"is no {kind} from {least:g} to {most:g}", field=name, value=given, remedy=f"Give {kind}s in that range to vary it."
            )
        return int(value) if whole else value

    return parse


def _text(given: object) -> AxisValue:
    return str(given).strip()


def _profiling(given: object) -> AxisValue:
    known = [mode.value for mode in ProfilingMode]
    if given not in known:
        raise ParameterError("is no profiling mode", field="profiling", value=given, remedy=f"Use one of: {', '.join(known)}.")
    return str(given)


def _knob(name: str) -> Callable[[Setup, AxisValue], Setup]:
    """A parameter of the policy; whether the policy has it, it says itself."""
    return lambda setup, value: replace(setup, policy_parameters={**setup.policy_parameters, name: value})


def _profiled(setup: Setup, value: AxisValue) -> Setup:
    return replace(setup, fidelity=setup.fidelity.revealing(ProfilingMode(str(value))))


# What the sensitivity figures of the Sia paper vary.
AXES: Mapping[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis("policy", "Policy", _text, lambda setup, value: replace(setup, policy=str(value))),
        Axis("p", "Fairness power p", _number("p", least=-10, most=10), _knob("p")),
        Axis("idle_penalty", "Idle penalty lambda", _number("idle_penalty", least=0, most=1000), _knob("idle_penalty")),
        Axis(
            "round_seconds",
            "Round duration",
            _number("round_seconds", least=1, most=86400),
            lambda setup, value: replace(setup, round_seconds=float(value)),
            unit="s",
            logarithmic=True,
        ),
        Axis(
            "arrival_rate",
            "Arrival rate, relative to the trace",
            _number("arrival_rate", least=0.01, most=100),
            lambda setup, value: replace(setup, arrival_rate=float(value)),
        ),
        Axis(
            "jobs_per_hour",
            "Arrival rate",
            _number("jobs_per_hour", least=0.1, most=10_000),
            lambda setup, value: replace(setup, jobs_per_hour=float(value)),
            unit="jobs/h",
        ),
        Axis(
            "locality_penalty",
            "Slowdown across nodes, of every model",
            _number("locality_penalty", least=1, most=100),
            lambda setup, value: replace(setup, locality_penalties=dict.fromkeys(sorted(setup.models), float(value))),
        ),
        Axis("profiling", "Profiling mode", _profiling, _profiled),
        Axis(
            "rigid_share",
            "Share of rigid jobs",
            _number("rigid_share", least=0, most=1),
            lambda setup, value: replace(setup, rigid_share=float(value)),
        ),
        Axis(
            "strong_scaling_share",
            "Share of strong-scaling jobs",
            _number("strong_scaling_share", least=0, most=1),
            lambda setup, value: replace(setup, strong_scaling_share=float(value)),
        ),
        Axis(
            "cluster_size",
            "Cluster size and jobs, times",
            _number("cluster_size", least=1, most=MAX_COPIES, whole=True),
            lambda setup, value: replace(setup, cluster_size=int(value)),
            logarithmic=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Varied:
    """One axis and the values it takes, in the order given. Raises where one is no value of that axis, or stands twice."""

    axis: Axis
    values: tuple[AxisValue, ...]

    @classmethod
    def of(cls, name: str, given: Sequence[object]) -> Varied:
        if name not in AXES:
            raise UnknownNameError("is nothing that can be varied", field="vary", value=name, remedy=f"Use one of: {', '.join(AXES)}.")
        values = tuple(AXES[name].parse(value) for value in given)
        if not values:
            raise ParameterError("has no values", field=name, remedy="Give at least one, with commas between.")
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise ParameterError("stands twice", field=name, value=twice, remedy="Give every value once.")
        return cls(AXES[name], values)


@dataclass(frozen=True)
class Point:
    """One simulation of a sweep. `settings`: by axis, in the sweep's order. Points of the same `key` are the same simulation."""

    settings: Mapping[str, AxisValue]
    seed: int
    key: str
    scenario: Scenario


@dataclass(frozen=True)
class Sweep:
    """A base, one or two axes, and the seeds that every combination of their values is simulated with."""

    base: Setup
    axes: tuple[Varied, ...]
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        names = [varied.axis.name for varied in self.axes]
        if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
            raise ParameterError("are not one or two different settings", field="vary", value=names, remedy="Vary one or two of them.")
        wrong = [seed for seed in self.seeds if not 0 <= seed < 2**63]
        if wrong or not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ParameterError(
                "are not different whole numbers from 0 up", field="seeds", value=list(self.seeds), remedy="Write for example 0,1,2."
            )
        if self.size > MAX_POINTS:
            raise InputError(
                "are more simulations than one sweep may have", field="vary", value=self.size, remedy=f"Choose at most {MAX_POINTS}."
            )

    @property
    def size(self) -> int:
        return math.prod(len(varied.values) for varied in self.axes) * len(self.seeds)

    def points(self) -> tuple[Point, ...]:
        """Every combination, the first axis outermost, seeds innermost. Raises InputError where one of them cannot be simulated."""
        return tuple(self.each())

    def each(self) -> Iterator[Point]:
        """The points one by one, for who does not keep them."""
        names = [varied.axis.name for varied in self.axes]
        for values in itertools.product(*(varied.values for varied in self.axes)):
            for seed in self.seeds:
                yield point_at(self.base, dict(zip(names, values, strict=True)), seed)


def point_at(base: Setup, settings: Mapping[str, AxisValue], seed: int) -> Point:
    """The point of these settings, by axis. Raises InputError where it cannot be simulated."""
    setup = replace(base, seed=seed)
    for name, value in settings.items():
        setup = AXES[name].apply(setup, value)
    scenario = setup.scenario()
    return Point(settings, seed, content_key(scenario), scenario)


@dataclass(frozen=True)
class Row:
    """One combination of settings over its seeds. `spread`: sample standard deviation, 0 of a single seed."""

    settings: Mapping[str, AxisValue]
    seeds: tuple[int, ...]
    mean: Mapping[str, float]
    spread: Mapping[str, float]


def rows_of(results: Sequence[tuple[Mapping[str, AxisValue], int, Figures]]) -> tuple[Row, ...]:
    """Mean and spread over the seeds of (settings, seed, figures), in the order in which the combinations first stand."""
    groups: dict[tuple[AxisValue, ...], list[tuple[Mapping[str, AxisValue], int, Figures]]] = {}
    for result in results:
        groups.setdefault(tuple(result[0].values()), []).append(result)
    return tuple(_row(group) for group in groups.values())


def _row(group: Sequence[tuple[Mapping[str, AxisValue], int, Figures]]) -> Row:
    names = list(group[0][2])
    columns = {name: [float(figures[name]) for _, _, figures in group] for name in names}
    return Row(
        settings=group[0][0],
        seeds=tuple(seed for _, seed, _ in group),
        mean={name: statistics.fmean(values) for name, values in columns.items()},
        spread={name: statistics.stdev(values) if len(values) > 1 else 0.0 for name, values in columns.items()},
    )
