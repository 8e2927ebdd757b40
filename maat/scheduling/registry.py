"""A plug-in family: names and classes, one line each.

A class is imported when it is first used, not when it is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from typing import Generic, TypeVar

from maat.scheduling.errors import UnknownNameError
from maat.scheduling.parameters import Parameter, build, parameters_of

T_co = TypeVar("T_co", covariant=True)


class Needs(StrEnum):
    """What a cluster must have for an implementation to have its effect.

    Without shared GPUs a sharing policy only orders jobs; without GPU scores a placer has nothing
    to weigh.
    """

    SHARED_GPUS = "shared-gpus"
    GPU_SCORES = "gpu-scores"


@dataclass(frozen=True)
class Entry(Generic[T_co]):
    """One implementation: its name, title and summary, and its dataclass.

    Attributes:
        where: The dataclass, as `module:Class`.
        placer: Of a policy, the placer used with it by default.
        needs: What a cluster must have for it to have its effect.
        knob_needs: What it must have for a parameter, by name, to have its effect.
        objective: Of a policy whose rounds have prices, what its programme maximises: one sentence.
        of_policy: Of a placer, defaults of parameters of the policy beside it, if it has them.
    """

    name: str
    title: str
    summary: str
    where: str
    placer: str | None = None
    needs: Needs | None = None
    objective: str | None = None
    of_policy: Mapping[str, object] = field(default_factory=dict)
    knob_needs: Mapping[str, Needs] = field(default_factory=dict)

    @cached_property
    def cls(self) -> type[T_co]:
        """Return the class. What only it needs, such as a solver, is imported now."""
        module, _, name = self.where.partition(":")
        found: type[T_co] = getattr(import_module(module), name)
        return found

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return parameters_of(self.cls)


class Registry(Generic[T_co]):
    """All implementations of one protocol, by name, in the order of listing."""

    def __init__(self, kind: str, *entries: Entry[T_co]) -> None:
        self.kind = kind
        self._entries = {entry.name: entry for entry in entries}

    def __iter__(self) -> Iterator[Entry[T_co]]:
        return iter(self._entries.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def entry(self, name: str) -> Entry[T_co]:
        """Return the entry. Raises UnknownNameError, which lists the names that exist."""
        if name not in self._entries:
            raise UnknownNameError(
                f"is no {self.kind} that Maat has",
                field=self.kind,
                value=name,
                remedy=f"Use one of: {', '.join(self._entries)}.",
            )
        return self._entries[name]

    def build(self, name: str, parameters: Mapping[str, object] | None = None) -> T_co:
        """Return the implementation of that name with these parameters.

        Raises UnknownNameError or ParameterError.
        """
        return build(self.entry(name).cls, parameters or {}, owner=name)
