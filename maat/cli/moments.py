"""Moments on the command line: as the API takes them, or a day, which begins at midnight UTC."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer

_DAY = len("2026-11-02")


def moment(text: str | None) -> str | None:
    """`2026-11-02` as `2026-11-02T00:00:00Z`; anything else as it is: the service judges it."""
    if text is None or len(text) != _DAY:
        return text
    try:
        return f"{date.fromisoformat(text)}T00:00:00Z"
    except ValueError:
        return text


From = Annotated[
    str | None,
    typer.Option(
        "--from",
        callback=moment,
        help="Cluster time: a day, such as 2026-11-02, or 2026-11-02T12:00:00Z.",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        callback=moment,
        help="Cluster time, which is left out; a day is its midnight. Default: now.",
    ),
]
