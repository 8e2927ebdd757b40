"""How late rounds are while simulations and forecasts wait: by the clock, so on a quiet machine."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from benchmarks.service.running import Running, busy_cluster, running
from benchmarks.table import Cell, Figures
from maat.client import calls
from maat.client.calls import RawBody

TITLE = "Rounds beside simulations and forecasts: seconds that they begin late"
COLUMNS = {
    "beside": "beside",
    "rounds": "rounds",
    "median": "median (s)",
    "most": "most (s)",
    "played": "runs that ended",
    "load": "load average",
}
GPUS, JOBS, SPEED = 64, 60, 12.0  # a round each 5 s
ROUND_SECONDS = 60.0  # of cluster time
SIMULATIONS, FORECASTS = 40, 20
WATCHED_SECONDS = 60.0
SIMULATION: RawBody = {
    "name": "beside rounds",
    "traces": [{"kind": "generated", "family": "philly", "jobs": 480}],
    "cluster": "t4=6x4,rtx=3x8,a100=2x8",
    "runs": [{"policy": "sia"}, {"policy": "pollux"}],
}
QUESTION: RawBody = {"changes": {"add_nodes": [{"gpu_type": "a100", "gpu_count": 8}]}}


def measure(watched_seconds: float = WATCHED_SECONDS) -> Figures:
    """Watch rounds of a cluster by themselves, then while work of all kinds waits."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as maat:
        cluster_id = busy_cluster(maat.client, GPUS, JOBS, speed=SPEED)
        alone = _watched(maat, cluster_id, "nothing", watched_seconds)
        for _ in range(SIMULATIONS):
            maat.client.send(calls.simulate(SIMULATION))
        for _ in range(FORECASTS):
            maat.client.send(calls.ask_forecast({**QUESTION, "cluster_id": cluster_id}))
        words = f"{SIMULATIONS} simulations, {FORECASTS} questions"
        beside = _watched(maat, cluster_id, words, watched_seconds)
    each = ROUND_SECONDS / SPEED
    notes = [
        f"{os.cpu_count()} cores; {GPUS} GPUs, {JOBS} jobs, a round each {each:g} s; "
        "the worker looks once a second which rounds are due."
    ]
    return Figures("lateness", TITLE, COLUMNS, [alone, beside], notes)


def _watched(maat: Running, cluster_id: str, beside: str, seconds: float) -> dict[str, Cell]:
    """Watch rounds for so long; a round is due an interval after the one before."""
    before = _rounds(maat, cluster_id)[-1:]
    time.sleep(seconds)
    times = before + _rounds(maat, cluster_id, after=before[0])
    late = sorted((b - a - ROUND_SECONDS) / SPEED for a, b in pairwise(times))
    return {
        "beside": beside,
        "rounds": len(late),
        "median": late[len(late) // 2],
        "most": late[-1],
        "played": _ended(maat),
        "load": os.getloadavg()[0],
    }


def _rounds(maat: Running, cluster_id: str, *, after: float = -1.0) -> list[float]:
    """Return when rounds were decided, in cluster seconds."""
    found = _read(
        maat,
        "SELECT at_seconds FROM rounds WHERE cluster_id = ? AND at_seconds > ? ORDER BY number",
        (cluster_id, after),
    )
    return [float(at) for at in found]


def _ended(maat: Running) -> int:
    return int(_read(maat, "SELECT count(*) FROM simulation_runs WHERE state = 'succeeded'")[0])


def _read(maat: Running, statement: str, given: Sequence[object] = ()) -> list[float]:
    with closing(sqlite3.connect(f"file:{maat.data_dir}/maat.db?mode=ro", uri=True)) as database:
        return [row[0] for row in database.execute(statement, given)]
