"""The request that this task works on: its id, and who asks once that is known.

What is written down and logged takes both from here. Outside a request there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.accounts.principals import Principal


@dataclass
class Asking:
    """A request. `principal`: who makes it; None until identity.py has found out."""

    request_id: str
    principal: Principal | None = None


_ASKING: ContextVar[Asking | None] = ContextVar("asking", default=None)


def asking() -> Asking | None:
    return _ASKING.get()


@contextmanager
def asked(request_id: str) -> Iterator[Asking]:
    """Work on a request. A page's request to the API is one within another."""
    request = Asking(request_id)
    token = _ASKING.set(request)
    try:
        yield request
    finally:
        _ASKING.reset(token)


def note_principal(principal: Principal) -> None:
    """Note who asks, for what this request writes down."""
    found = _ASKING.get()
    if found is not None:
        found.principal = principal
