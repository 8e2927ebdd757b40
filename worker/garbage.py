"""How often a process of a worker looks for garbage."""

from __future__ import annotations

import gc

ALLOCATIONS = 100_000


def collect_less_often() -> None:
    """Look for garbage every 100,000 allocations instead of every 700.

    A large cluster is millions of objects that stay: every look goes through them and finds little,
    and a round of 10,000 jobs spends a fifth of its time on it.
    """
    gc.set_threshold(ALLOCATIONS)
