"""Fits run on one BLAS thread and leave the process's setting unchanged.

Real libraries, in processes of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest


def threads_seen(script: str) -> Any:
    """The JSON that a script prints in a process with two BLAS threads."""
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "2",
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
    }
    ran = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


FIT = """
import json
from threadpoolctl import threadpool_info
from maat.scheduling import fitting
from maat.scheduling.fitting import published

def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

within = []
class Watched(published.FitLoss):
    def __call__(self, x):
        within.append(threads())
        return super().__call__(x)

import scipy.optimize
before = threads()
published.FitLoss = Watched
FAILING
samples = [
    fitting.Sample(1, 1, 8, 0.2, 0.0),
    fitting.Sample(1, 1, 16, 0.3, 0.0),
    fitting.Sample(1, 2, 16, 0.4, 0.1),
]
try:
    fitting.fit_throughput(samples, search=fitting.FitSearch.PUBLISHED)
except ZeroDivisionError:
    pass
print(json.dumps([before, within, threads()]))
"""
FAILING = """
def fail(self, x):
    within.append(threads())
    raise ZeroDivisionError
Watched.__call__ = fail
"""


@pytest.mark.parametrize("failing", ["", FAILING], ids=["a fit", "a fit that fails"])
def test_blas_has_one_thread_inside_a_fit_and_as_many_as_before_outside(failing: str) -> None:
    before, within, after = threads_seen(FIT.replace("FAILING", failing))
    assert set(before) == {2}
    assert {count for now in within for count in now} == {1}
    assert after == before


OVERLAPPING = """
import json, threading
from threadpoolctl import threadpool_info
from maat.scheduling.one_thread import one_blas_thread

def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

import scipy.linalg
before, within, second_waits = threads(), [], threading.Event()

def first():
    with one_blas_thread():
        within.append(threads())
        other.start()
        second_waits.wait(30)
        within.append(threads())

def second():
    second_waits.set()
    with one_blas_thread():
        within.append(threads())

other = threading.Thread(target=second)
one = threading.Thread(target=first)
one.start()
one.join()
other.join()
print(json.dumps([before, within, threads()]))
"""


def test_threads_that_fit_at_the_same_time_leave_the_process_as_they_found_it() -> None:
    before, within, after = threads_seen(OVERLAPPING)
    assert within == [[1] * len(before)] * 3
    assert after == before


FORKED = """
import json, os, threading
from maat.scheduling.one_thread import one_blas_thread

inside, done = threading.Event(), threading.Event()

def hold():
    with one_blas_thread():
        inside.set()
        done.wait(30)

holder = threading.Thread(target=hold)
holder.start()
inside.wait(30)
child = os.fork()
if not child:
    with one_blas_thread():
        os._exit(0)
print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
done.set()
holder.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_child_forked_while_another_thread_fits_may_fit() -> None:
    assert threads_seen(FORKED) == 0
