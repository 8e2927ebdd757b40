"""Short notices at the corner of the page: what was done, or what was refused."""

from __future__ import annotations

from typing import Any

from frontend.api import said


def notice(title: str, message: str = "") -> list[dict[str, Any]]:
    return [
        {"action": "show", "title": title, "message": message, "color": "accent", "autoClose": 5000}
    ]


def refusal(error: Exception) -> list[dict[str, Any]]:
    title, remedy = said(error)
    return [
        {
            "action": "show",
            "title": f"⚠ {title}",
            "message": remedy,
            "color": "red",
            "autoClose": 10000,
        }
    ]
