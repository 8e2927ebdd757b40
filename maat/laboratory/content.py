"""A digest of all that the result of a simulation depends on.

Scenarios of equal content have equal keys, on every machine and at every time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Set
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np

from maat.scheduling.parameters import knobs_of
from maat.scheduling.policies import POLICIES
from maat.simulation.scenario import Scenario
from maat.simulation.world import World

# Raise it with every change by which the same scenario gives other figures, or more of them: old
# results are then not found.
SIMULATION_VERSION = 13

_ADDED_SEPARATELY = frozenset(
    {
        "workload",
        "models",
        "conditions",
        "policy_parameters",
        "placer_parameters",
        "round_seconds",
        "own_policy",
    }
)


@runtime_checkable
class HasContent(Protocol):
    """An object, not a dataclass, that returns what it was made from."""

    def content(self) -> object: ...


def content_key(scenario: Scenario) -> str:
    """Return a sha256 over canonical JSON of a scenario and the code's version.

    64 hexadecimal digits. A knob at its default counts like the same knob set to that value. Models
    that the workload does not use, the workload's name and its format do not count. An own policy
    is known by its `content()`, or else is no other than itself in this process. Raises
    UnknownNameError or ParameterError if policy or placer cannot be built.
    """
    world = World.of(scenario)
    rest = {
        f.name: getattr(scenario, f.name)
        for f in dataclasses.fields(scenario)
        if f.name not in _ADDED_SEPARATELY
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
            "policy_parameters": {
                **knobs_of(world.policy),
                # It was once a knob; without it, results of then would not be found.
                "round_seconds": world.policy.default_round_seconds,
            },
            "placer_parameters": knobs_of(world.placer),
            **_of_own_policy(scenario),
            "conditions": dataclasses.replace(
                scenario.conditions,
                round_seconds=world.round_seconds,
                locality_penalties=penalties,
            ),
        }
    )


def digest(value: object) -> str:
    """Return a sha256 over the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def canonical_json(value: object) -> str:
    """Return one text for one content: sorted keys, no spaces, equal numbers alike."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _of_own_policy(scenario: Scenario) -> dict[str, object]:
    """Return what an own policy is: its object, or the code of one that the registry knows."""
    own = scenario.own_policy
    if own is not None:
        content = _content_of(own)
        return {"own_policy": f"object {id(own)}" if content is None else content()}
    code = POLICIES.entry(scenario.policy).code_digest()
    return {} if code is None else {"own_policy": code}


def has_known_content(scenario: Scenario) -> bool:
    """Return whether its key says the same in another process: an object's code is not read."""
    return scenario.own_policy is None or _content_of(scenario.own_policy) is not None


def _content_of(own: object) -> Callable[[], object] | None:
    return getattr(own, "content", None)


def _plain(value: object) -> object:
    """Return the value in JSON's own types.

    Raises TypeError for a value without known content: a guess would mix up results.
    """
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
        f"{type(value).__name__} is no plain value, no dataclass and has no content(): "
        "it cannot be told from another"
    )


def _number(value: float) -> float | int | str:
    """1 and 1.0 are one number; infinities and NaN become text, as JSON lacks them."""
    if not math.isfinite(value):
        return str(value)
    return int(value) if value.is_integer() else value


def _array(value: np.ndarray) -> dict[str, object]:
    """An array by its shape, kind and a digest of its bytes."""
    fixed = np.ascontiguousarray(value)
    return {
        "shape": list(value.shape),
        "kind": fixed.dtype.str,
        "sha256": hashlib.sha256(fixed.tobytes()).hexdigest(),
    }


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)
