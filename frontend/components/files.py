"""Files that a visitor chooses: the box to drop them on, and their text.

A file that is not text, or empty, is refused by name.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from frontend.attributes import aria

MAX_FILE_BYTES = 8_000_000  # in base64 it still fits into what the service takes of a page


class NoText(ValueError):
    """A file without text that can be read. Its message names the file."""


def file_box(
    box_id: str, *, words: str, choose: str, accept: str, several: bool, label: str
) -> dcc.Upload:
    """A box to drop files on. `accept`: endings and kinds of the files that it takes; empty: any.

    It holds what assets/upload.js refuses others by, and larger ones, by name.
    """
    limit: dict[str, Any] = {"data-most-bytes": MAX_FILE_BYTES, "data-accept": accept}
    target = html.Div(
        [words, html.A(choose, href="#", role="button", className="choose", **aria(label))],
        className="panel-state",
        style={"minHeight": "64px", "border": "1px dashed var(--line)"},
        **limit,
    )
    return dcc.Upload(
        target, id=box_id, accept=accept or None, multiple=several, max_size=MAX_FILE_BYTES
    )


async def texts_in(
    contents: str | Sequence[str], names: str | Sequence[str] | None
) -> list[tuple[str, str]]:
    """(name, text) of every chosen file, in their order. Raises NoText."""
    return [
        await _text_in(content, name)
        for content, name in zip(_listed(contents), _listed(names), strict=True)
    ]


async def _text_in(content: str, name: str) -> tuple[str, str]:
    try:
        text = await asyncio.to_thread(_decoded, content)
    except ValueError:
        raise NoText(f"{name} is no text in UTF-8. Choose another file.") from None
    if "\0" in text:
        raise NoText(f"{name} is a binary file, no text. Choose another file.")
    if not text.strip():
        raise NoText(f"{name} is empty. Choose another file.")
    return name, text


def _listed(given: str | Sequence[str] | None) -> Sequence[str]:
    return [given or ""] if given is None or isinstance(given, str) else given


def _decoded(contents: str) -> str:
    return base64.b64decode(contents.split(",", 1)[-1]).decode("utf-8-sig")
