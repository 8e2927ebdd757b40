"""What a reading of the script's loop knows at one place in it: names, and what decides there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from maat.agent.loop.values import UNKNOWN, Key, Objects, Value, either, joined


@dataclass
class Scope:
    """A function that is read.

    Attributes:
        find: Returns what a name was before the loop, or UNKNOWN.
        key: Returns what a name outlives a batch by; None for one that is the function's own.
        left: What decided to leave the rest of a loop, or of the function, out: name and line.
    """

    file: str
    find: Callable[[str], Any]
    key: Callable[[str], Key | None]
    names: dict[str, Value] = field(default_factory=dict)
    parent: Scope | None = None
    caller: Scope | None = None
    left: tuple[str, int, str] | None = None
    returned: list[Value] = field(default_factory=list)


class Memory:
    """What outlives a batch: which names the loop changes, and which of them carry something on.

    It is read again until no more names are found to be carried.
    """

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.carried: dict[Key, str] = {}
        self.stores: dict[Key, list[Value]] = {}
        self._known: dict[Key, list[Value]] = {}  # stores of the last reading
        self._labels: dict[Key, str] = {}
        self._before: dict[Key, Any] = {}
        self._alive: list[Any] = []  # objects that keys name by their id
        self.now: dict[Key, Value] = {}

    def begin(self) -> None:
        """Begin to read the loop's body once more."""
        self._known, self.stores, self.now = self.stores, {}, {}

    def read(self, key: Key, label: str, before: Any) -> Value:
        """Return what a name is, if the loop has not set it in this batch."""
        if key in self.now:
            return self.now[key]
        value = self.objects.value(before)
        self._before.setdefault(key, before)
        if key in self.carried and not value.stands_for:
            return replace(value, carried=self.carried[key], target=UNKNOWN, keys=frozenset([key]))
        stores = self._known.get(key)
        if stores and not self._is_set_to(key, stores):
            value = replace(value, target=UNKNOWN)
        return replace(value, keys=frozenset([key]))

    def store(self, key: Key, label: str, value: Value, before: Any) -> None:
        self._labels[key] = label
        self._before.setdefault(key, before)
        self.stores.setdefault(key, []).append(value)
        self.now[key] = replace(value, is_outside=value.is_outside or key[0] != "name")

    def put(self, key: Key, label: str, value: Value) -> None:
        """Note that a value is put into an object, beside what is in it."""
        before = self.read(key, label, UNKNOWN)
        self.store(key, label, value, UNKNOWN)
        self.now[key] = replace(joined((before, value)), keys=before.keys | value.keys | {key})

    def keep_alive(self, target: Any) -> None:
        self._alive.append(target)

    def learn(self) -> bool:
        """Find out which names carry something; return whether there are new ones."""
        found = {key for key, values in self.stores.items() if self._carries(key, values)}
        while more := {
            key
            for key, values in self.stores.items()
            if key not in found and any(value.keys & found for value in values)
        }:
            found |= more
        is_new = not found <= set(self.carried)
        self.carried.update({key: self._labels[key] for key in found})
        return is_new

    def _carries(self, key: Key, values: Iterable[Value]) -> bool:
        if any(each.is_of_batch or each.carried or key in each.keys for each in values):
            return True
        return any(each.is_constant for each in values) and not self._is_set_to(key, values)

    def _is_set_to(self, key: Key, values: Iterable[Value]) -> bool:
        """Return whether the loop sets a name to nothing but what it is already."""
        before = self._before.get(key, UNKNOWN)
        return all(
            value.is_constant and type(value.target) is type(before) and value.target == before
            for value in values
        )


class Branches:
    """Reads ways of which one is taken, and joins what is known after them."""

    def __init__(self, memory: Memory, scope: Scope) -> None:
        self._memory, self._scope = memory, scope
        self._start = (dict(scope.names), dict(memory.now))
        self._ends: list[tuple[Mapping[str, Value], Mapping[Key, Value]]] = []

    @contextmanager
    def way(self, *, leaves: bool = False) -> Iterator[None]:
        """Read a way; what is known at the end of one that `leaves` is not known after all."""
        self._scope.names, self._memory.now = dict(self._start[0]), dict(self._start[1])
        yield
        if not leaves:
            self._ends.append((self._scope.names, self._memory.now))

    def join(self) -> None:
        names, now = self._ends[0] if self._ends else self._start
        for other_names, other_now in self._ends[1:]:
            names = {name: _one_of(name, names, other_names) for name in {**names, **other_names}}
            now = {
                key: either(self._at(key, now), self._at(key, other_now))
                for key in {**now, **other_now}
            }
        self._scope.names, self._memory.now = dict(names), dict(now)

    def _at(self, key: Key, known: Mapping[Key, Value]) -> Value:
        """Return what a name is at the end of a way: as before it, if it has not set it."""
        if key in known:
            return known[key]
        memory = self._memory
        now, memory.now = memory.now, {}
        try:
            return memory.read(key, "", memory._before.get(key, UNKNOWN))
        finally:
            memory.now = now


def _one_of(name: str, one: Mapping[str, Value], other: Mapping[str, Value]) -> Value:
    if name in one and name in other:
        return either(one[name], other[name])
    return one[name] if name in one else other[name]
