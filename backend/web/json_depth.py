"""How deeply JSON may be nested. No request of Maat needs more; what reads, checks, stores and shows a value calls itself for every level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backend.problems import MalformedRequest

MAX_DEPTH = 100


def refuse_deep(text: bytes, value: Any) -> None:
    """`value` is what `text` says. Raises MalformedRequest where it is nested too deeply."""
    if (
        text.count(b"[") + text.count(b"{") <= MAX_DEPTH
    ):  # far cheaper than a look at the value, and true of nearly all
        return
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item for outer in level for item in _inside(outer) if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise MalformedRequest(f"The body is nested too deeply: at most {MAX_DEPTH} levels are read.")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
