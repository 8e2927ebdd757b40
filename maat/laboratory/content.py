"""What a simulation's result depends on, as one digest: scenarios of the same content have the same key, no matter who made them and when."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Set
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np

from maat.scheduling.parameters import parameters_of
from maat.simulation.scenario import Scenario
from maat.simulation.world import World

# Raise it with every change of the engine, a policy or a model by which the same scenario gives other figures, or more of them: old results
# are then not found.
SIMULATION_VERSION = 11

_TOLD_OTHERWISE = frozenset(
    {"workload", "models", "conditions", "policy_parameters", "placer_parameters"}
)


@runtime_checkable
class HasContent(Protocol):
    """An object that is no dataclass and says itself what it was made from."""

    def content(self) -> object: ...


def content_key(scenario: Scenario) -> str:
    """sha256 (64 hexadecimal digits) over canonical JSON of the code's version and of all that the result follows from.

    A knob at its default counts as the same knob set to that value; models that the workload does not use, the workload's name and its format do
    not count. Raises UnknownNameError or ParameterError where policy or placer cannot be built.
    """
    world = World.of(scenario)
    rest = {
        f.name: getattr(scenario, f.name)
        for f in dataclasses.fields(scenario)
        if f.name not in _TOLD_OTHERWISE
    }
    penalties = {
        name: factor
        for name, factor in scenario.conditions.locality_penalties.items()
        if name in scenario.workload.models
    }
    return digest(
        {
            **rest,
            "version": SIMULATION_VERSION,
            "jobs": scenario.workload.jobs,
            "models": {name: scenario.models[name] for name in scenario.workload.models},
            "policy_parameters": _knobs(world.policy),
            "placer_parameters": _knobs(world.placer),
            "conditions": dataclasses.replace(
                scenario.conditions,
                round_seconds=world.round_seconds,
                locality_penalties=penalties,
            ),
        }
    )


def digest(value: object) -> str:
    """sha256 over the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def canonical_json(value: object) -> str:
    """One text for one content: keys sorted, no spaces, numbers that are equal written alike."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _knobs(part: object) -> dict[str, object]:
    return {p.name: getattr(part, p.name) for p in parameters_of(type(part))}


def _plain(value: object) -> object:
    """The value in JSON's own types. Raises TypeError for what has no content to tell it by: guessing would mix results up."""
    match value:
        case None | bool():
            return value
        case Enum():
            return _plain(value.value)
        case str():
            return value
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return _number(float(value))
        case np.ndarray():
            return _array(value)
        case Mapping():
            return sorted(([_plain(k), _plain(v)] for k, v in value.items()), key=_text)
        case Set():
            return sorted((_plain(item) for item in value), key=_text)
        case tuple() | list():
            return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, HasContent):
        return _plain(value.content())
    raise TypeError(
        f"{type(value).__name__} is no plain value, no dataclass and has no content(): it cannot be told from another"
    )


def _number(value: float) -> float | int | str:
    """1 and 1.0 are one number; infinities and NaN have no JSON and are named."""
    if not math.isfinite(value):
        return str(value)
    return int(value) if value.is_integer() else value


def _array(value: np.ndarray) -> dict[str, object]:
    """Large measurements by a digest of their own: shape, kind and bytes."""
    fixed = np.ascontiguousarray(value)
    return {
        "shape": list(value.shape),
        "kind": fixed.dtype.str,
        "sha256": hashlib.sha256(fixed.tobytes()).hexdigest(),
    }


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)
