"""Short notices at the corner of the page: what was done, or what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from frontend.api import error_message

Notice: TypeAlias = dict[str, str | int | dict[str, str]]

_CLOSE = {"aria-label": "Close this notice"}


def notice(title: str, message: str = "") -> list[Notice]:
    return [
        {
            "action": "show",
            "title": title,
            "message": message,
            "color": "accent",
            "autoClose": 5000,
            "closeButtonProps": _CLOSE,
        }
    ]


def submitted(title: str, message: str, warnings: Sequence[str]) -> list[Notice]:
    """A notice that stays for longer if there are warnings."""
    found = notice(title, " ".join([*warnings, message]))
    if warnings:
        found[0] |= {"title": f"⚠ {title}", "color": "yellow", "autoClose": 20000}
    return found


def refusal(error: Exception) -> list[Notice]:
    title, remedy = error_message(error)
    return [
        {
            "action": "show",
            "title": f"⚠ {title}",
            "message": remedy,
            "color": "red",
            "autoClose": 10000,
            "closeButtonProps": _CLOSE,
        }
    ]
