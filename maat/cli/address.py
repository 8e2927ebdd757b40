"""The address of the service and the token for it, checked before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from maat.scheduling.errors import ParameterError


def checked_address(url: str, present: Mapping[str, str] = os.environ) -> str:
    """Return an address that can be asked. Raises ParameterError, which names where it is set."""
    if _is_address(url):
        return url
    raise ParameterError(
        "is no address of a service",
        field="MAAT_URL" if present.get("MAAT_URL") == url else "--url",
        value=url,
        remedy="Give for example http://127.0.0.1:8000.",
    )


def token_of(present: Mapping[str, str] = os.environ) -> str | None:
    """Return the token that is set, if one is. Raises ParameterError, which does not show it."""
    token = present.get("MAAT_TOKEN")
    if token is None or (token.isascii() and token.isprintable()):
        return token
    raise ParameterError(
        "holds characters that no token has",
        field="MAAT_TOKEN",
        remedy="Set it to the token as it was printed, in one line.",
    )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0  # raises ValueError above 65535
            and url.isprintable()
            and " " not in url
        )
    except ValueError:
        return False
