"""What the service tells as it happens: server-sent events, read line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from maat.client.calls.core import Call, given_of, path_of


@dataclass(frozen=True, slots=True)
class Told:
    """One event: what it is about, what it says, and the place in the stream after it.

    `kind`: a topic (`rounds`, `jobs`, `operations`, `health`), or `ready`, `reset`, `caught-up` or
    `ended`. `place`: what a stream that goes on after it is opened with.
    """

    kind: str
    data: dict[str, Any]
    place: str


class EventLines:
    """Makes events of lines. What does not belong to an event, such as a comment, is left out."""

    def __init__(self) -> None:
        self._kind, self._place = "", ""
        self._data: list[str] = []

    def add(self, line: str) -> Told | None:
        """Return the event that this line ends, if it ends one."""
        if not line:
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._place = value
        return None

    def all_of(self, lines: Iterable[str]) -> Iterator[Told]:
        for line in lines:
            told = self.add(line)
            if told is not None:
                yield told

    def _end(self) -> Told | None:
        kind, text = self._kind, "\n".join(self._data)
        self._kind, self._data = "", []
        return Told(kind, json.loads(text), self._place) if kind and text else None


def stream_of(topics: Iterable[str], place: str | None) -> Call[bytes]:
    """Ask for changes of these topics after a place; without one, from now on."""
    return Call(
        "GET",
        path_of("events"),
        given_of(topics=",".join(topics)),
        headers={"Accept": "text/event-stream"}
        | ({} if place is None else {"Last-Event-ID": place}),
    )
