"""What a reading of the script's loop knows of a value: where it comes from, what it stands for.

A value is *carried* if it depends on what an earlier batch has left: a counter, a running mean.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from maat.agent.scaling import AdaptiveScaler


class _Unknown:
    """An object that is not known before the loop runs."""


UNKNOWN: Any = _Unknown()
Key = tuple[str, Any, str]
WEIGHTS, GRADIENTS, MODEL, OPTIMISER, SETTINGS, SCHEDULE, DATA = (
    "weights",
    "gradients",
    "model",
    "optimiser",
    "settings",
    "schedule",
    "data",
)
_ENTRIES = 64  # of a container, that are looked at for weights


@dataclass(frozen=True)
class Value:
    """What is known of a value.

    Attributes:
        carried: The name that is carried from batch to batch, on which this depends.
        keys: The names that are also changed in the loop, on which this depends.
        is_of_batch: It depends on the samples of a batch, and not on their number alone.
        stands_for: A part of the training that a change of this would change.
        is_like_weights: Made of weights, element by element.
        is_outside: It was there before the loop, and outlives a batch.
        target: The object that it is, if that is known.
        parts: The values of a tuple.
        local: A function that the loop defines, with its scope.
    """

    carried: str | None = None
    keys: frozenset[Key] = frozenset()
    is_of_batch: bool = False
    stands_for: str = ""
    is_like_weights: bool = False
    is_outside: bool = False
    target: Any = UNKNOWN
    parts: tuple[Value, ...] | None = None
    local: Any = None

    @property
    def is_constant(self) -> bool:
        """Return whether it is a plain value that the loop does not change."""
        return self.carried is None and (
            self.target is None or isinstance(self.target, bool | int | float | str)
        )

    def element(self) -> Value:
        """Return what is known of each of its elements."""
        return replace(self, target=UNKNOWN, parts=None, local=None)


def joined(values: Iterable[Value]) -> Value:
    """Return what is known of a value that is made of others, or is one of them."""
    carried, keys, is_of_batch = None, frozenset[Key](), False
    for each in values:
        carried = carried or each.carried
        keys |= each.keys
        is_of_batch = is_of_batch or each.is_of_batch
    return Value(carried, keys, is_of_batch)


def either(one: Value, other: Value) -> Value:
    """Return what is known of a value that is one of two."""
    if one == other:
        return one
    return replace(
        joined((one, other)),
        stands_for=one.stands_for or other.stands_for,
        is_like_weights=one.is_like_weights or other.is_like_weights,
        is_outside=one.is_outside or other.is_outside,
    )


class Objects:
    """Tells what the script's objects are to the training."""

    def __init__(self, parameters: Iterable[Any], dataset: Any) -> None:
        self._weights = {id(each) for each in parameters}
        self._dataset = dataset

    def value(self, target: Any) -> Value:
        """Return what is known of an object that was there before the loop."""
        stands_for = self._part(target)
        is_outside = not isinstance(target, ModuleType | FunctionType | MethodType | type)
        return Value(
            stands_for=stands_for,
            is_like_weights=stands_for == WEIGHTS,
            is_outside=is_outside,
            target=target,
        )

    def _part(self, target: Any) -> str:
        if isinstance(target, torch.nn.Module):
            return MODEL if any(id(each) in self._weights for each in target.parameters()) else ""
        if isinstance(target, torch.optim.Optimizer):
            return OPTIMISER
        if isinstance(target, AdaptiveScaler):
            return OPTIMISER
        if isinstance(target, LRScheduler):
            return SCHEDULE
        if isinstance(target, torch.Tensor):
            return WEIGHTS if id(target) in self._weights else ""
        if target is self._dataset and target is not None:
            return DATA
        return WEIGHTS if self._holds_weights(target, depth=2) else ""

    def _holds_weights(self, target: Any, *, depth: int) -> bool:
        if isinstance(target, dict):
            target = list(target.values())
        if not isinstance(target, list | tuple | set):
            return isinstance(target, torch.Tensor) and id(target) in self._weights
        some = list(target)[:_ENTRIES] if len(target) <= 10 * _ENTRIES else []
        return depth > 0 and any(self._holds_weights(each, depth=depth - 1) for each in some)


def attribute(target: Any, name: str) -> Any:
    """Return an attribute as it lies in an object, with no code of the script run."""
    if target is UNKNOWN:
        return UNKNOWN
    if isinstance(target, torch.nn.Module):
        for kept in (target._modules, target._parameters, target._buffers):
            if name in kept:
                return kept[name]
    try:
        found = inspect.getattr_static(target, name)
    except (AttributeError, TypeError):
        return UNKNOWN
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, classmethod):
        return MethodType(found.__func__, type(target))
    if isinstance(found, FunctionType) and not isinstance(target, type | ModuleType):
        own = getattr(target, "__dict__", {})
        return found if isinstance(own, dict) and name in own else MethodType(found, target)
    if inspect.isdatadescriptor(found) and not isinstance(found, property):
        return UNKNOWN
    return found
