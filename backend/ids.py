"""Ids that sort by creation time.

A prefix names the kind; 26 characters of Crockford base 32 follow (as in a ULID).
"""

from __future__ import annotations

import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80
_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """Return a new id such as `job_01kaf3...`.

    Ids of one process ascend strictly, also within one millisecond.
    """
    global _last
    with _lock:
        fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        # Adding one keeps the order if the clock has not moved or was set back.
        _last = fresh if fresh >> _RANDOM_BITS > _last >> _RANDOM_BITS else _last + 1
        number = _last
    return f"{prefix}_{''.join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))}"
