"""Dependencies that run before a request's body is read.

A sender without valid credentials cannot send a body.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant

Ask = Callable[[Request], Awaitable[Any]]


def before_body(dependency: Ask) -> Ask:
    """Mark a dependency to run before the body is read.

    It takes only the request, stores its answer in the request's state and raises what refuses the
    request.
    """
    dependency.before_body = True  # type: ignore[attr-defined]
    return dependency


def asked_before_body(dependant: Dependant) -> list[Ask]:
    """Return the marked dependencies of a route, each once."""
    return list(dict.fromkeys(_marked(dependant)))


def _marked(dependant: Dependant) -> Iterator[Ask]:
    for inner in dependant.dependencies:
        if getattr(inner.call, "before_body", False) and inner.call is not None:
            yield inner.call
        yield from _marked(inner)
