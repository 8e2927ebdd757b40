"""The settings that a sweep can vary: how to parse a value, and how to apply it.

A further axis is one entry in AXES.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maat.laboratory.setup import GeneratedTrace, Setup
from maat.scheduling.errors import InterferenceError, ParameterError
from maat.scheduling.placement import PLACERS
from maat.scheduling.stay_bounds import least_stay_of, most_moves_of
from maat.simulation.conditions import check_interference
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.interference import Interference, synthetic
from maat.simulation.tuned_jobs import NOT_TUNED, read_tuned, shown_tuned
from maat.vocabulary import (
    LEAST_ROUND_SECONDS,
    MAX_SLOWDOWN,
    MOST_CONTENTION,
    MOST_RACK_PENALTY,
    MOST_ROUND_SECONDS,
    SYNTHETIC,
    UNBOUNDED,
    ProfilingMode,
)
from maat.workloads.reading import MAX_JOBS

MAX_COPIES = 64

AxisValue = float | int | str


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting that can be varied.

    `parse`: its value from JSON or from text. `apply`: the setup with this value. `fixed`: whether
    a setup already sets it.
    """

    name: str
    title: str
    parse: Callable[[object], AxisValue]
    apply: Callable[[Setup, AxisValue], Setup]
    fixed: Callable[[Setup], bool]
    unit: str | None = None
    logarithmic: bool = False


def _number(
    name: str, *, least: float, most: float, whole: bool = False
) -> Callable[[object], AxisValue]:
    def parse(given: object) -> AxisValue:
        kind = "whole number" if whole else "number"
        try:
            value = (
                float(given)
                if isinstance(given, (int, float, str)) and not isinstance(given, bool)
                else math.nan
            )
        except (ValueError, OverflowError):
            value = math.nan
        if not least <= value <= most or (whole and value != int(value)):
            raise ParameterError(
                f"is no {kind} from {least:g} to {most:g}",
                field=name,
                value=given,
                remedy=f"Give {kind}s in that range to vary it.",
            )
        return int(value) if whole else value

    return parse


def _text(given: object) -> AxisValue:
    return str(given).strip()


def _profiling(given: object) -> AxisValue:
    known = [mode.value for mode in ProfilingMode]
    if given not in known:
        raise ParameterError(
            "is no profiling mode",
            field="profiling",
            value=given,
            remedy=f"Use one of: {', '.join(known)}.",
        )
    return str(given)


def _placer(given: object) -> AxisValue:
    return PLACERS.entry(str(given).strip()).name


def _slowdown(given: object) -> AxisValue:
    """Read xi, or the name of the shipped table; not that of a file, since requests come here."""
    if given == SYNTHETIC:
        return SYNTHETIC
    try:
        return _number("interference", least=1, most=MAX_SLOWDOWN)(given)
    except ParameterError:
        raise InterferenceError(
            f"is no slowdown from 1 to {MAX_SLOWDOWN:g}",
            field="interference",
            value=given,
            remedy=f"Give numbers such as 1.25, or {SYNTHETIC}, to vary it.",
        ) from None


def _interfering(setup: Setup, value: AxisValue) -> Setup:
    given = synthetic() if isinstance(value, str) else Interference.constant(float(value))
    check_interference(given, jobs_per_gpu=setup.cluster.jobs_per_gpu)
    return _under(setup, interference=given)


def _tuned(given: object) -> AxisValue:
    how = read_tuned(str(given).strip())
    return NOT_TUNED if how is None else shown_tuned(how)


def _many_jobs(setup: Setup, value: AxisValue) -> Setup:
    if not isinstance(setup.trace, GeneratedTrace):
        raise ParameterError(
            "is for generated workloads",
            field="jobs",
            value=value,
            remedy="Generate a workload (philly), or vary cluster_size or arrival_rate.",
        )
    return replace(setup, trace=replace(setup.trace, jobs=int(value)))


def _knob(name: str) -> Callable[[Setup, AxisValue], Setup]:
    """A parameter of the policy; the policy itself checks whether it has one."""
    return lambda setup, value: replace(
        setup, policy_parameters={**setup.policy_parameters, name: value}
    )


def _is_knob(name: str) -> Callable[[Setup], bool]:
    return lambda setup: name in setup.policy_parameters


def _knows_otherwise(setup: Setup) -> bool:
    preset = FIDELITIES.get(setup.conditions.fidelity.name)
    return preset is not None and setup.conditions.fidelity.profiling is not preset.profiling


def _under(setup: Setup, **changes: Any) -> Setup:
    """The setup under other conditions."""
    return replace(setup, conditions=replace(setup.conditions, **changes))


def _profiled(setup: Setup, value: AxisValue) -> Setup:
    return _under(setup, fidelity=setup.conditions.fidelity.revealing(ProfilingMode(str(value))))


def _bound(read: Callable[[object], float | None]) -> Callable[[object], AxisValue]:
    def parse(given: object) -> AxisValue:
        bound = read(given)
        return UNBOUNDED if bound is None else bound

    return parse


def _bounded(setup: Setup, **bound: Any) -> Setup:
    """The setup with another bound on how soon or how often jobs move."""
    return _under(setup, stability=replace(setup.conditions.stability, **bound))


# What the sensitivity figures of the papers vary, and how long jobs stay where they are.
AXES: Mapping[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis(
            "policy",
            "Policy",
            _text,
            lambda setup, value: replace(setup, policy=str(value), own_policy=None),
            lambda _: False,
        ),
        Axis(
            "placer",
            "Placer",
            _placer,
            lambda setup, value: replace(setup, placer=str(value), placer_parameters={}),
            lambda setup: setup.placer is not None or bool(setup.placer_parameters),
        ),
        Axis("p", "Fairness power p", _number("p", least=-10, most=10), _knob("p"), _is_knob("p")),
        Axis(
            "idle_penalty",
            "Idle penalty lambda",
            _number("idle_penalty", least=0, most=1000),
            _knob("idle_penalty"),
            _is_knob("idle_penalty"),
        ),
        Axis(
            "round_seconds",
            "Round duration",
            _number("round_seconds", least=LEAST_ROUND_SECONDS, most=MOST_ROUND_SECONDS),
            lambda setup, value: _under(setup, round_seconds=float(value)),
            lambda setup: (setup.round_seconds, setup.conditions.round_seconds) != (None, None),
            unit="s",
            logarithmic=True,
        ),
        Axis(
            "arrival_rate",
            "Arrival rate, relative to the trace",
            _number("arrival_rate", least=0.01, most=100),
            lambda setup, value: replace(setup, arrival_rate=float(value)),
            lambda setup: setup.arrival_rate != 1,
        ),
        Axis(
            "jobs_per_hour",
            "Arrival rate",
            _number("jobs_per_hour", least=0.1, most=10_000),
            lambda setup, value: replace(setup, jobs_per_hour=float(value)),
            lambda setup: setup.jobs_per_hour is not None,
            unit="jobs/h",
        ),
        Axis(
            "jobs",
            "Number of jobs",
            _number("jobs", least=1, most=MAX_JOBS, whole=True),
            _many_jobs,
            lambda setup: isinstance(setup.trace, GeneratedTrace) and setup.trace.jobs is not None,
        ),
        Axis(
            "interference",
            "Slowdown xi of jobs on one GPU",
            _slowdown,
            _interfering,
            lambda setup: setup.conditions.interference is not None,
        ),
        Axis(
            "tuned",
            "Tuned jobs",
            _tuned,
            lambda setup, value: _under(setup, tuned=read_tuned(str(value))),
            lambda setup: setup.conditions.tuned is not None or bool(setup.tuned_by_policy),
        ),
        Axis(
            "locality_penalty",
            "Slowdown across nodes, of every model",
            _number("locality_penalty", least=1, most=100),
            lambda setup, value: _under(
                setup, locality_penalties=dict.fromkeys(sorted(setup.models), float(value))
            ),
            lambda setup: (
                bool(setup.conditions.locality_penalties) or setup.conditions.weighs_steps
            ),
        ),
        Axis(
            "rack_penalty",
            "Further slowdown across racks",
            _number("rack_penalty", least=1, most=MOST_RACK_PENALTY),
            lambda setup, value: _under(setup, rack_penalty=float(value)),
            lambda setup: setup.conditions.rack_penalty > 1,
        ),
        Axis(
            "network_contention",
            "Network contention of distributed jobs",
            _number("network_contention", least=0, most=MOST_CONTENTION),
            lambda setup, value: _under(setup, network_contention=float(value)),
            lambda setup: setup.conditions.network_contention > 0,
        ),
        Axis("profiling", "Profiling mode", _profiling, _profiled, _knows_otherwise),
        Axis(
            "rigid_share",
            "Share of rigid jobs",
            _number("rigid_share", least=0, most=1),
            lambda setup, value: _under(setup, rigid_share=float(value)),
            lambda setup: setup.conditions.rigid_share > 0,
        ),
        Axis(
            "strong_scaling_share",
            "Share of strong-scaling jobs",
            _number("strong_scaling_share", least=0, most=1),
            lambda setup, value: _under(setup, strong_scaling_share=float(value)),
            lambda setup: setup.conditions.strong_scaling_share > 0,
        ),
        Axis(
            "least_stay_seconds",
            "Least stay of a job",
            _bound(least_stay_of),
            lambda setup, value: _bounded(setup, least_stay_seconds=least_stay_of(value)),
            lambda setup: setup.conditions.stability.least_stay_seconds is not None,
            unit="s",
        ),
        Axis(
            "most_moves_per_hour",
            "Most moves of a job in an hour",
            _bound(most_moves_of),
            lambda setup, value: _bounded(setup, most_moves_per_hour=most_moves_of(value)),
            lambda setup: setup.conditions.stability.most_moves_per_hour is not None,
        ),
        Axis(
            "cluster_size",
            "Cluster size and jobs, times",
            _number("cluster_size", least=1, most=MAX_COPIES, whole=True),
            lambda setup, value: replace(setup, cluster_size=int(value)),
            lambda setup: setup.cluster_size != 1,
            logarithmic=True,
        ),
    )
}
