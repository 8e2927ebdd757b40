"""Parameters of policies, placers and generators as data.

A dataclass field with metadata is a knob that forms and the API can show. Of a function that is a
policy, the arguments after the round's input are (function_knobs.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol, TypeVar, runtime_checkable

from maat.scheduling.errors import ParameterError
from maat.scheduling.function_knobs import Argument, arguments_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One knob: JSON type, default, range and unit, and the source of the default.

    `type`: number, integer, boolean or string.
    """

    name: str
    type: str
    default: float | int | bool | str | None
    help: str
    unit: str | None = None
    source: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] | None = None


def knob(
    default: Any,
    help: str,
    *,
    unit: str | None = None,
    source: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """Return a dataclass field that is a parameter.

    Fields without it are wiring, not knobs.
    """
    return dataclasses.field(
        default=default,
        metadata={
            "knob": {
                "help": help,
                "unit": unit,
                "source": source,
                "minimum": minimum,
                "maximum": maximum,
            }
        },
    )


def parameters_of(target: Callable[..., object]) -> tuple[Parameter, ...]:
    """Return the knobs of a dataclass or a function, in order."""
    if target not in _PARAMETERS:
        _PARAMETERS[target] = _read_parameters(target)
    return _PARAMETERS[target]


# A class does not change; its hints are slow to read.
_PARAMETERS: dict[Callable[..., object], tuple[Parameter, ...]] = {}


def knobs_of(instance: object) -> Mapping[str, object]:
    """Return every knob of an instance with its value."""
    if isinstance(instance, HasKnobValues):
        return instance.knob_values()
    return {p.name: getattr(instance, p.name) for p in parameters_of(type(instance))}


@runtime_checkable
class HasKnobValues(Protocol):
    """An instance whose knobs are not the fields of its class."""

    def knob_values(self) -> Mapping[str, object]: ...
    def rebuilt(self, values: Mapping[str, object], *, owner: str) -> Any: ...


def unshown_knobs(target: Callable[..., object]) -> Mapping[str, Any]:
    """Return the knobs whose type no form can show, with their types."""
    hints = hints_of(target)
    if isinstance(target, type):
        fields = dataclasses.fields(target) if dataclasses.is_dataclass(target) else ()
        names = [field.name for field in fields if "knob" in field.metadata]
    else:
        names = list(hints)
    return {name: hints[name] for name in names if not _is_shown(hints[name])}


def _is_shown(hint: Any) -> bool:
    try:
        _kind(hint)
    except (KeyError, TypeError):
        return False
    return True


def hints_of(target: Callable[..., object]) -> Mapping[str, Any]:
    """Return the type of every knob of a dataclass or a function, by name."""
    if isinstance(target, type):
        return typing.get_type_hints(target)
    return {argument.name: argument.hint for argument in arguments_of(target)}


def _read_parameters(target: Callable[..., object]) -> tuple[Parameter, ...]:
    if not isinstance(target, type):
        return tuple(map(_parameter_of_argument, arguments_of(target)))
    cls = target
    if not dataclasses.is_dataclass(cls):  # only a policy of a user's own
        return ()
    hints = typing.get_type_hints(cls)
    found = []
    for field in dataclasses.fields(cls):
        if "knob" in field.metadata:
            kind, choices = _kind(hints[field.name])
            default = None if field.default is MISSING else field.default
            found.append(
                Parameter(field.name, kind, default, choices=choices, **field.metadata["knob"])
            )
    return tuple(found)


def build(cls: type[T], values: Mapping[str, object], *, owner: str) -> T:
    """Return an instance with these knobs set.

    Raises:
        ParameterError: A knob is unknown or its value is wrong; the error names the knob, the
            value and what would be right.
    """
    return cls(**checked_knobs(cls, values, owner=owner))


def rebuilt(instance: T, values: Mapping[str, object], *, owner: str) -> T:
    """Return the instance with these knobs set. Raises ParameterError, as `build` does."""
    if not values:
        return instance
    if isinstance(instance, HasKnobValues):
        rebuilt_by_itself: T = instance.rebuilt(values, owner=owner)
        return rebuilt_by_itself
    checked = checked_knobs(type(instance), values, owner=owner)
    return dataclasses.replace(instance, **checked)  # type: ignore[type-var]


def checked_knobs(
    target: Callable[..., object], values: Mapping[str, object], *, owner: str
) -> dict[str, Any]:
    """Return the values as the knobs of a class or function take them. Raises ParameterError."""
    known = {p.name: p for p in parameters_of(target)}
    hints = hints_of(target)
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise ParameterError(
                f"is no parameter of {owner}",
                field=name,
                value=value,
                remedy=f"Use one of: {', '.join(known) or 'none'}.",
            )
        checked[name] = _checked(known[name], value, hints[name])
    return checked


@lru_cache(maxsize=256)  # every round needs it
def parameter_hash(instance: Any) -> str:
    """Return a short digest of an instance's knobs.

    State that other parameters left is not read.
    """
    values = dict(knobs_of(instance))
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _parameter_of_argument(argument: Argument) -> Parameter:
    kind, choices = _kind(argument.hint)
    return Parameter(argument.name, kind, argument.default, argument.help, choices=choices)


def _kind(hint: Any) -> tuple[str, tuple[str, ...] | None]:
    base = _without_none(hint)
    if isinstance(base, type) and issubclass(base, StrEnum):
        return "string", tuple(member.value for member in base)
    return {bool: "boolean", int: "integer", float: "number", str: "string"}[base], None


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(a for a in typing.get_args(hint) if a is not type(None))
    return hint


def _checked(parameter: Parameter, value: object, hint: Any) -> object:
    if value is None and _without_none(hint) is not hint:
        return None
    base = _without_none(hint)
    if parameter.choices is not None:
        if value not in parameter.choices:
            raise ParameterError(
                "is not one of its choices",
                field=parameter.name,
                value=value,
                remedy=f"Use one of: {', '.join(parameter.choices)}.",
            )
        return base(value)
    if base is str and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)  # a list of one number is written as that number
    if base is bool or base is str:
        if not isinstance(value, base):
            raise ParameterError(
                f"is no {parameter.type}",
                field=parameter.name,
                value=value,
                remedy="Give true or false."
                if parameter.type == "boolean"
                else f"Give a {parameter.type}.",
            )
        return value
    return _checked_number(parameter, value, base)


def _checked_number(parameter: Parameter, value: object, base: type) -> float | int:
    finite = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )
    if not isinstance(value, int | float) or not finite or (base is int and value != int(value)):
        raise ParameterError(
            f"is no {parameter.type}",
            field=parameter.name,
            value=value,
            remedy=f"Give a finite {parameter.type}.",
        )
    low = -math.inf if parameter.minimum is None else parameter.minimum
    high = math.inf if parameter.maximum is None else parameter.maximum
    if not low <= value <= high:
        raise ParameterError(
            "is out of range",
            field=parameter.name,
            value=value,
            remedy=f"Give a value from {low:g} to {high:g}.",
        )
    return int(value) if base is int else float(value)
