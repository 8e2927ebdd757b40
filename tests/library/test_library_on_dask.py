"""`maat.compare` and `maat.sweep` on a cluster of Dask's that loses a worker meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster
from laboratory.untimed_results import columns_of

import maat

TRACE = maat.generate("philly", jobs=5, hours=1)
CLUSTER = "t4=4x4,a100=2x8"
SEEDS = (0, 1, 2)
FATAL_ROUND = 20


@pytest.fixture(scope="module")
def dask() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def of_a_cell(diary: Path | None = None) -> Callable[..., Any]:
    """Return a policy as a notebook's cell defines it: no other process can import it.

    With a diary it writes down each run that comes to a round, and the first one to do so kills the
    process that it is in.
    """

    def two_each(round_input: Any) -> dict[str, tuple[str, int]]:
        if diary is not None and round_input.round_number == FATAL_ROUND:
            with diary.open("a") as file:
                file.write(f"{os.getpid()}\n")
            kill_this_process_once(diary.with_suffix(".killed"))
        kind, free = round_input.cluster.type_names[-1], int(round_input.cluster.capacity[-1])
        return {job.id: (kind, 2) for job in round_input.jobs[: free // 2]}

    two_each.__module__ = "__main__"
    two_each.__qualname__ = "two_each"
    return two_each


def kill_this_process_once(said: Path) -> None:
    try:
        said.open("x").close()
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_comparison_on_dask_loses_and_repeats_nothing_when_a_worker_is_killed(
    dask: Client, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"cluster": CLUSTER, "seeds": SEEDS, "progress": False}
    expected = maat.compare(["fifo", of_a_cell()], TRACE, workers=1, **given)
    diary = tmp_path / "diary"

    found = maat.compare(["fifo", of_a_cell(diary)], TRACE, executor=dask.get_executor(), **given)

    processes = diary.read_text().split()
    assert len(processes) > len(SEEDS)
    assert str(os.getpid()) not in processes
    assert columns_of(found.runs) == columns_of(expected.runs)
    assert columns_of(found.jobs) == columns_of(expected.jobs)


def test_a_sweep_on_dask_loses_and_repeats_nothing_when_a_worker_is_killed(
    dask: Client, tmp_path: Path
) -> None:
    vary = {"round_seconds": [60, 120]}
    given: dict[str, Any] = {"cluster": CLUSTER, "seeds": SEEDS, "progress": False}
    expected = maat.sweep(TRACE, vary, policy=of_a_cell(), workers=1, **given)
    diary = tmp_path / "diary"

    found = maat.sweep(TRACE, vary, policy=of_a_cell(diary), executor=dask.get_executor(), **given)

    processes = diary.read_text().split()
    assert len(processes) > 2 * len(SEEDS)
    assert str(os.getpid()) not in processes
    assert len(found.failed) == 0
    assert columns_of(found.table) == columns_of(expected.table)
