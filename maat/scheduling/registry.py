"""A plug-in family: names and classes, one line each.

A class is imported when it is first used, not when it is listed. A family may be open to others:
implementations of installed distributions, and those that the operator has admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
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

    def build(self, parameters: Mapping[str, object]) -> T_co:
        """Return an instance with these knobs set. Raises ParameterError."""
        return build(self.cls, parameters, owner=self.name)

    def code_digest(self) -> str | None:
        """Return what tells its code from other code of its name; None for Maat's own."""
        return None


@dataclass(frozen=True)
class Others(Generic[T_co]):
    """Implementations from outside the package. `refused`: by name, why one cannot be used."""

    entries: Mapping[str, Entry[T_co]]
    refused: Mapping[str, str]


class Registry(Generic[T_co]):
    """All implementations of one protocol, by name: Maat's in the order of listing, then others.

    `others`: finds those of installed distributions, given the names of Maat's own. It is called
    once, for the first name that is not Maat's or the first list of all.
    """

    def __init__(
        self,
        kind: str,
        *entries: Entry[T_co],
        others: Callable[[Collection[str]], Others[T_co]] | None = None,
    ) -> None:
        self.kind = kind
        self._entries = {entry.name: entry for entry in entries}
        self._find_others = others
        self._admitted: dict[str, Entry[T_co]] = {}

    def __iter__(self) -> Iterator[Entry[T_co]]:
        return iter(self._all.values())

    @property
    def built_in(self) -> tuple[Entry[T_co], ...]:
        return tuple(self._entries.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._all)

    @property
    def refused(self) -> Mapping[str, str]:
        """Others that cannot be used: why, with a remedy, by name."""
        return self._others.refused

    def admit(self, entry: Entry[T_co]) -> None:
        """Add an entry for this process alone, by the name `module:Class`."""
        self._admitted[entry.name] = entry

    def dismiss_admitted(self) -> None:
        """Forget those that were admitted, as a process that begins."""
        self._admitted.clear()

    def has(self, name: str) -> bool:
        return name in self._entries or name in self._all

    def entry(self, name: str) -> Entry[T_co]:
        """Return the entry. Raises UnknownNameError, which lists the names that exist."""
        known = self._entries.get(name) or self._all.get(name)
        if known is not None:
            return known
        problem = f"is no {self.kind} that Maat has"
        if name in self.refused:
            problem = f"cannot be used: {self.refused[name].rstrip('.')}"
        raise UnknownNameError(
            problem,
            field=self.kind,
            value=name,
            remedy=f"Use one of: {', '.join(self._all)}.",
        )

    def build(self, name: str, parameters: Mapping[str, object] | None = None) -> T_co:
        """Return the implementation of that name with these parameters.

        Raises UnknownNameError or ParameterError.
        """
        return self.entry(name).build(parameters or {})

    @property
    def _all(self) -> Mapping[str, Entry[T_co]]:
        return {**self._entries, **self._others.entries, **self._admitted}

    @cached_property
    def _others(self) -> Others[T_co]:
        if self._find_others is None:
            return Others({}, {})
        return self._find_others(tuple(self._entries))
