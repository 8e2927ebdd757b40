"""Ids that sort by the moment of their making: a prefix that says what it is, and 26 characters of Crockford base 32 (as a ULID)."""

from __future__ import annotations

import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80
_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """A new id such as `job_01kaf3...`. Ids made by one process ascend strictly, within one millisecond too."""
    global _last
    with _lock:
        fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        # Adding one keeps the order where the clock has not moved, or has been set back.
        _last = fresh if fresh >> _RANDOM_BITS > _last >> _RANDOM_BITS else _last + 1
        number = _last
    return f"{prefix}_{''.join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))}"
