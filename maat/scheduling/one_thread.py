"""Numerical libraries on one thread while something small is fitted. What else the process does with them is left as it was.

A pool of BLAS threads makes a fit of seven parameters cost several times the CPU: its threads spin while they wait for each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class _Turn:
    """Whose turn it is in this process. A child that was forked during another thread's turn begins without waiting for that thread."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self.lock = threading.RLock()


_turn = _Turn()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS uses one thread inside, and as many as before afterwards.

    BLAS has one setting for the whole process: two threads that overlap here would each put back what the other had set, so they take turns.
    """
    with _turn.lock, _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """The libraries that are loaded when this is first asked: looking for them takes 2 ms, a limit on what was found 20 microseconds."""
    import scipy.linalg  # noqa: F401  # has a BLAS of its own beside numpy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
