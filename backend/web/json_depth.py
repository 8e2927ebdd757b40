"""Limits how deeply JSON may be nested.

No request of Maat needs more, and code that reads, checks, stores and shows values is recursive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backend.problems import MalformedRequest

MAX_DEPTH = 100


def refuse_deep(text: bytes, value: Any) -> None:
    """Raise MalformedRequest if `value`, parsed from `text`, is nested too deeply."""
    # This test is far cheaper than the search below, and nearly always true.
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
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
