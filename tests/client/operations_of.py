"""The operations of the OpenAPI document, and which calls and commands ask for which."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from maat import cli, library
from maat.client import Client, calls
from maat.client.calls import Call
from maat.client.event_stream import stream_of

ANY = "ANY"
"""Stands in a path for an id, a name or an action that the caller chooses."""

_STREAM = "stream of events"  # `events` of a client; `calls.events` are those of a job
_CLIENTS = {"maat", "_maat", "listening", "calls"}  # what commands call a client, and the calls
_MADE_OF = {"every_node": ("nodes",), "follow": ("operation", "cancel_operation")}
"""Methods of a client that are several calls."""


class Operations:
    """The operations of the document: by id, their method and path."""

    def __init__(self, app: FastAPI) -> None:
        self.all = {
            operation["operationId"]: (method.upper(), path)
            for path, methods in app.openapi()["paths"].items()
            for method, operation in methods.items()
        }

    def without(self, asking: Iterable[Call[Any]]) -> set[str]:
        """Return the ids of those that none of these calls asks for."""
        return self.all.keys() - {found for call in asking for found in self._meant(call)}

    def _meant(self, call: Call[Any]) -> list[str]:
        """Return what a call asks for. A path that is written out counts before a pattern."""
        fitting = [
            name
            for name, (method, path) in self.all.items()
            if method == call.method and _fits(path, call.path)
        ]
        exact = [name for name in fitting if self.all[name][1] == call.path]
        return exact or fitting


def _fits(template: str, path: str) -> bool:
    wanted, given = template.split("/"), path.split("/")
    return len(wanted) == len(given) and all(
        other in (one, ANY) or re.fullmatch(r"\{\w+\}", one)
        for one, other in zip(wanted, given, strict=True)
    )


def calls_of_the_client() -> dict[str, Call[Any]]:
    """Return every call of the client by its name, of whatever row; and its stream of events."""
    made = {name: _made(make) for name, make in _functions().items()}
    return made | {_STREAM: stream_of(("jobs",), None)}


def calls_of_commands(maat: Client) -> list[Call[Any]]:
    """Return the calls that stand in the code of the commands, and of the library below them."""
    made = calls_of_the_client()
    return [made[name] for name in _names_in_commands(maat) if name in made]


def _names_in_commands(maat: Client) -> set[str]:
    found = {
        _STREAM if node.attr == "events" else node.attr
        for package in (cli, library)
        for path in Path(package.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and _is_client(node.value)
    }
    found |= {call for name in found for call in _MADE_OF.get(name, ())}
    # A method has the name of its call, but for a few.
    return found | {getattr(getattr(maat, name, None), "__name__", name) for name in found}


def _is_client(value: ast.expr) -> bool:
    name = getattr(value, "id", None) or getattr(value, "attr", None)
    return name in _CLIENTS


def _functions() -> dict[str, Callable[..., Call[Any]]]:
    known = {name: getattr(calls, name) for name in calls.__all__}
    return {
        name: make
        for name, make in known.items()
        if inspect.isfunction(make) and make.__annotations__["return"].startswith("Call[")
    }


def _made(make: Callable[..., Call[Any]]) -> Call[Any]:
    """Call a function of the calls with what it needs."""
    needed = [
        one
        for one in inspect.signature(make).parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    ]
    given = {one.name: {} if "Fields" in str(one.annotation) else ANY for one in needed}
    positional = [given[one.name] for one in needed if one.kind is not one.KEYWORD_ONLY]
    named = {one.name: given[one.name] for one in needed if one.kind is one.KEYWORD_ONLY}
    return make(*positional, **named)
