"""When and where a process of Maat looks for garbage: a command, the service or a worker."""

from __future__ import annotations

import ctypes
import gc

ALLOCATIONS = 100_000


def collect_less_often() -> None:
    """Look for garbage every 100,000 allocations instead of every 700.

    Imported modules, routes, pages and a large cluster are a million objects that stay: every look
    goes through them and finds little. A round of 10,000 jobs spends a fifth of its time on it, and
    all requests of the service wait meanwhile.
    """
    gc.set_threshold(ALLOCATIONS)


def leave_out_what_is_loaded() -> None:
    """Leave all objects that there are now out of every later look for garbage.

    It is called once, when a process has imported and built what it keeps to its end. A process
    that forks afterwards shares this memory with its children.
    """
    gc.freeze()


def give_back_memory() -> None:
    """Give free memory back to the machine, where the allocator keeps it otherwise (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
