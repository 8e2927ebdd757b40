"""Short notices at the corner of the page: what was done, or what was refused."""

from __future__ import annotations

from typing import TypeAlias

from frontend.api import error_message

Notice: TypeAlias = dict[str, str | int]


def notice(title: str, message: str = "") -> list[Notice]:
    return [
        {"action": "show", "title": title, "message": message, "color": "accent", "autoClose": 5000}
    ]


def refusal(error: Exception) -> list[Notice]:
    title, remedy = error_message(error)
    return [
        {
            "action": "show",
            "title": f"⚠ {title}",
            "message": remedy,
            "color": "red",
            "autoClose": 10000,
        }
    ]
