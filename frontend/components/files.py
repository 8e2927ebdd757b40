"""Files that a visitor chooses: the box to drop them on, and their text.

A file that is not text, or empty, is refused by name.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

from dash import dcc, html

from frontend.attributes import aria
from maat.compression import problem_and_remedy
from maat.encodings import decoded

MAX_FILE_BYTES = 8_000_000  # in base64 it still fits into what the service takes of a page

_MOST_BEYOND_ASCII = 0.3  # share of the bytes of a text in Windows-1252
_NOT_UTF8 = "not UTF-8, read as Windows-1252: letters beyond ASCII may be others"


class NoText(ValueError):
    """A file without text that can be read. Its message names the file."""


def file_box(
    box_id: str,
    *,
    words: str,
    choose: str,
    accept: str,
    several: bool,
    label: str,
    most_bytes: int = MAX_FILE_BYTES,
) -> dcc.Upload:
    """A box to drop files on. `accept`: endings and kinds of the files that it takes; empty: any.

    `most_bytes`: of all files together, at most MAX_FILE_BYTES. The box holds what
    assets/upload.js refuses others by, and larger ones, by name.
    """
    limit: dict[str, Any] = {"data-most-bytes": most_bytes, "data-accept": accept}
    target = html.Div(
        [words, html.A(choose, href="#", role="button", className="choose", **aria(label))],
        className="panel-state",
        style={"minHeight": "64px", "border": "1px dashed var(--line)"},
        **limit,
    )
    return dcc.Upload(
        target, id=box_id, accept=accept or None, multiple=several, max_size=most_bytes
    )


class ChosenText(NamedTuple):
    """The text of a chosen file. `note`: on how it was read; "" if there is nothing to say."""

    name: str
    text: str
    note: str


async def texts_in(
    contents: str | Sequence[str], names: str | Sequence[str] | None
) -> list[ChosenText]:
    """Return every chosen file, in their order. Raises NoText."""
    return [
        await _text_in(content, name)
        for content, name in zip(_listed(contents), _listed(names), strict=True)
    ]


async def _text_in(content: str, name: str) -> ChosenText:
    try:
        read = await asyncio.to_thread(_bytes_of, content)
    except ValueError:
        raise NoText(f"{name} did not arrive whole. Choose it again.") from None
    if packed := problem_and_remedy(read):
        problem, remedy = packed
        raise NoText(f"{name} {problem}. {remedy}")
    text, not_utf8 = await asyncio.to_thread(decoded, read)
    if "\0" in text or (not_utf8 and _beyond_ascii(read) > _MOST_BEYOND_ASCII):
        raise NoText(f"{name} is a binary file, no text. Choose another file.")
    if not text.strip():
        raise NoText(f"{name} is empty. Choose another file.")
    return ChosenText(name, text, _NOT_UTF8 if not_utf8 else "")


def _beyond_ascii(read: bytes) -> float:
    """Return the share of bytes that are no ASCII."""
    return 1.0 - len(read.decode("ascii", "ignore")) / len(read)


def _listed(given: str | Sequence[str] | None) -> Sequence[str]:
    return [given or ""] if given is None or isinstance(given, str) else given


def _bytes_of(contents: str) -> bytes:
    return base64.b64decode(contents.split(",", 1)[-1])
