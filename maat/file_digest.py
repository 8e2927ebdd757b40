"""Digests of files by their names and texts, such as everybody can compute with sha256sum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def text_digest(text: str) -> str:
    """Return the sha256 of a text in UTF-8, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def files_digest(texts: Mapping[str, str]) -> str:
    """Return what `sha256sum FILES | sha256sum` prints in the folder of the files."""
    return text_digest(
        "".join(f"{text_digest(text)}  {name}\n" for name, text in sorted(texts.items()))
    )
