"""Numerical libraries on one thread during a small fit.

Other uses by the process are not changed. A pool of BLAS threads makes a fit of seven parameters
cost several times the CPU: its threads spin while they wait for each other.
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
    """The lock by which threads of this process take turns.

    A child process that is forked while another thread holds the lock gets a new one.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self.lock = threading.RLock()


_turn = _Turn()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside, and restore the former number afterwards.

    BLAS has one setting for the whole process: two threads that overlap here would each restore
    the other's setting, so they take turns.
    """
    with _turn.lock, _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that are loaded at the first call.

    Finding them takes 2 ms, a limit on those found 20 microseconds.
    """
    import scipy.linalg  # noqa: F401  # has a BLAS of its own beside numpy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
