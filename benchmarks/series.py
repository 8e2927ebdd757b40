"""What recording the series of a run costs: pairs of runs, with and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.table import Cell, Figures

TRACE, CLUSTER = "philly/workload-1.csv", "t4=6x4,rtx=3x8,a100=2x8"
POLICIES = ("sia", "pollux", "tiresias", "las", "fifo")
PAIRS = 7
COLUMNS = {
    "policy": "policy",
    "rounds": "rounds",
    "stretches": "stretches",
    "cpu_seconds": "CPU s",
    "more_cpu": "more CPU %, least",
    "median_more_cpu": "median of pairs",
    "peak_mib": "peak MiB",
    "more_memory": "more memory %",
    "series_kib": "series KiB",
}
NOTES = [
    f"{PAIRS} pairs of runs of each policy, each run in a process of its own, in turn with and "
    "without. CPU seconds of the simulation, without imports and reading, with the series of GPUs "
    "and efficiency worked out. Least: the least of those with over the least of those without, "
    "since whatever else a machine does can only add to a run.",
    "Peak memory of the whole process, least of the runs.",
]
# Without: no job records its changes, and there is nothing to work out.
PLAY = """
import json, sys, time
import maat
from maat.simulation.job_recorder import JobRecorder

trace, profiles, cluster, policy, recorded = sys.argv[1:]
if recorded == "without":
    JobRecorder.begin = lambda self, job: None
given = dict(cluster=cluster, policy=policy, profiles=profiles, progress=False)
began = time.process_time()
result = maat.simulate(trace, **given).result
series = result.series
if recorded == "with":
    series.gpus, series.efficiency
spent = time.process_time() - began
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
kept = sum(values.nbytes for values in vars(series.stretches).values())
print(json.dumps({
    "cpu_seconds": spent,
    "peak_mib": int(peak.split()[1]) / 1024,
    "rounds": result.rounds,
    "stretches": len(series.stretches),
    "series_kib": kept / 1024,
}))
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs, one after the other."""

    recorded: dict[str, float]
    bare: dict[str, float]


def measure() -> Figures:
    title = f"Recording the series of {TRACE.removesuffix('.csv')}, {CLUSTER}"
    data = os.environ.get("MAAT_DATA")
    if not data:
        why = "skipped: MAAT_DATA is not set (the folder that holds sia-artifact)"
        return Figures("series", title, COLUMNS, [], [why])
    return Figures("series", title, COLUMNS, [_row(Path(data), p) for p in POLICIES], list(NOTES))


def _row(data: Path, policy: str) -> dict[str, Cell]:
    _play(data, policy, "with")  # compiles modules that are not compiled yet
    pairs = [_pair(data, policy, recorded_first=number % 2 == 0) for number in range(PAIRS)]
    least = min(pair.recorded["cpu_seconds"] for pair in pairs)
    bare = min(pair.bare["cpu_seconds"] for pair in pairs)
    ratios = [pair.recorded["cpu_seconds"] / pair.bare["cpu_seconds"] for pair in pairs]
    peak = min(pair.recorded["peak_mib"] for pair in pairs)
    one = pairs[0].recorded
    return {
        "policy": policy,
        "rounds": int(one["rounds"]),
        "stretches": int(one["stretches"]),
        "cpu_seconds": least,
        "more_cpu": 100 * (least / bare - 1),
        "median_more_cpu": 100 * (median(ratios) - 1),
        "peak_mib": peak,
        "more_memory": 100 * (peak / min(pair.bare["peak_mib"] for pair in pairs) - 1),
        "series_kib": one["series_kib"],
    }


def _pair(data: Path, policy: str, *, recorded_first: bool) -> Pair:
    """Play two runs; which is first alternates, so that a drift of the machine favours neither."""
    order = ("with", "without") if recorded_first else ("without", "with")
    played = {recorded: _play(data, policy, recorded) for recorded in order}
    return Pair(played["with"], played["without"])


def _play(data: Path, policy: str, recorded: str) -> dict[str, float]:
    folder = data / "sia-artifact"
    given = (folder / "workloads" / TRACE, folder / "profiles", CLUSTER, policy, recorded)
    ran = subprocess.run(
        [sys.executable, "-c", PLAY, *map(str, given)], check=True, capture_output=True, text=True
    )
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return figures
