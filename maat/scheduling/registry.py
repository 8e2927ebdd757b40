"""A plug-in family in its smallest form: names, classes, one line each. A class is imported when it is first used, not when it is listed."""

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
    """Without shared GPUs a policy that shares only orders; without scores of GPUs a placer has nothing to weigh."""

    SHARED_GPUS = "shared-gpus"
    GPU_SCORES = "gpu-scores"


@dataclass(frozen=True)
class Entry(Generic[T_co]):
    """One implementation: how it is called, in a title and in a sentence, and where the dataclass is that it is, as `module:Class`.

    `placer`: of a policy, the placer that goes with it where nobody chooses one. `needs`: what a cluster must have for it to do what it is for.
    `of_policy`: of a placer, the parameters that a policy has beside it where nobody sets them, if it has such parameters at all.
    """

    name: str
    title: str
    summary: str
    where: str
    placer: str | None = None
    needs: Needs | None = None
    of_policy: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def cls(self) -> type[T_co]:
        """The class itself. What only this implementation needs, a solver for example, is imported now."""
        module, _, name = self.where.partition(":")
        found: type[T_co] = getattr(import_module(module), name)
        return found

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return parameters_of(self.cls)


class Registry(Generic[T_co]):
    """All implementations of one protocol, by name, in the order in which they were listed."""

    def __init__(self, kind: str, *entries: Entry[T_co]) -> None:
        self.kind = kind
        self._entries = {entry.name: entry for entry in entries}

    def __iter__(self) -> Iterator[Entry[T_co]]:
        return iter(self._entries.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def entry(self, name: str) -> Entry[T_co]:
        """Raises UnknownNameError listing the names that exist."""
        if name not in self._entries:
            raise UnknownNameError(
                f"is no {self.kind} that Maat has",
                field=self.kind,
                value=name,
                remedy=f"Use one of: {', '.join(self._entries)}.",
            )
        return self._entries[name]

    def build(self, name: str, parameters: Mapping[str, object] | None = None) -> T_co:
        """The implementation of that name with these parameters. Raises UnknownNameError or ParameterError."""
        return build(self.entry(name).cls, parameters or {}, owner=name)
