"""Whole simulations as cold processes: `maat simulate` on public traces.

Compares with the published simulator if its figure is known.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.table import Cell, Figures

COLUMNS = {
    "trace": "trace",
    "fidelity": "fidelity",
    "jobs": "jobs",
    "rounds": "rounds",
    "cpu_seconds": "CPU s",
    "published_cpu_seconds": "published CPU s",
    "times_under": "x under",
    "peak_mib": "peak MiB",
    "milliseconds_per_round": "policy ms/round",
    "avg_jct_hours": "avg JCT h",
}
NOTES = [
    "CPU seconds and peak memory of the whole process as the kernel counts them: imports "
    "included, nothing cached before.",
    "published: the published simulator on the same trace, measured (solver CBC on one thread).",
]
# The kernel's figure for a child starts at its parent's memory at the start; the process's own
# high-water mark does not.
MAAT_AND_ITS_PEAK = (
    "import atexit, sys; "
    "atexit.register(lambda: sys.stderr.write(open('/proc/self/status').read())); "
    "from maat.__main__ import main; main()"
)
CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"


@dataclass(frozen=True, slots=True)
class Trace:
    path: str
    published_cpu_seconds: float | None


TRACES = (Trace("philly/workload-1.csv", 201.0), Trace("newtrace/workload-1.csv", None))
FIDELITIES = ("sia-artifact", "paper")


def measure() -> Figures:
    title = f"Simulated workloads under Sia, {CLUSTER}"
    data = os.environ.get("MAAT_DATA")
    if not data:
        return Figures(
            "simulate",
            title,
            COLUMNS,
            [],
            ["skipped: MAAT_DATA is not set (the folder that holds sia-artifact)"],
        )
    folder = Path(data, "sia-artifact")
    rows = [_row(folder, trace, fidelity) for trace in TRACES for fidelity in FIDELITIES]
    return Figures("simulate", title, COLUMNS, rows, list(NOTES))


RUNS = 7
# (workload, policy, measured seconds of the published simulator if known, its average JCT in
# seconds)
POLLUX_RUNS = (
    ("workload-1", "tiresias", None, 2473.65),
    ("workload-6", "tiresias", 10.0, 3469.69375),
    ("workload-1", "optimus", None, 4087.1),
    ("workload-6", "optimus", 40.0, 5301.875),
)
POLLUX_COLUMNS = {
    "trace": "trace",
    "policy": "policy",
    "rounds": "rounds",
    "cpu_seconds": "CPU s, least",
    "median_cpu_seconds": "median",
    "published_cpu_seconds": "published s",
    "times_under": "x under",
    "peak_mib": "peak MiB",
    "avg_jct_seconds": "avg JCT s",
    "published_avg_jct_seconds": "published avg JCT s",
}
POLLUX_NOTES = [
    NOTES[0],
    f"least, median: of {RUNS} runs; x under: published over least, since whatever else a machine "
    "does can only add to a run.",
    "published: the published Pollux simulator on the same traces: its run time as it was once "
    "measured, its average JCT as stored beside it.",
]


def measure_pollux() -> Figures:
    title = "Tiresias and Optimus, whole process beside the published simulator, t4=16x4"
    data = os.environ.get("MAAT_DATA")
    if not data:
        return Figures(
            "pollux",
            title,
            POLLUX_COLUMNS,
            [],
            ["skipped: MAAT_DATA is not set (the folder that holds pollux and sia-artifact)"],
        )
    rows = [_pollux_row(Path(data), *run) for run in POLLUX_RUNS]
    load = (
        f"Processes that wanted to run on {os.cpu_count()} cores meanwhile, "
        f"mean of the last 5 minutes: {os.getloadavg()[1]:.0f}."
    )
    return Figures("pollux", title, POLLUX_COLUMNS, rows, [*POLLUX_NOTES, load])


def _pollux_row(
    data: Path,
    trace: str,
    policy: str,
    published_cpu_seconds: float | None,
    published_jct_seconds: float,
) -> dict[str, Cell]:
    command = [
        sys.executable,
        "-c",
        MAAT_AND_ITS_PEAK,
        "simulate",
        str(data / "pollux" / "workloads" / f"{trace}.csv"),
    ]
    command += [
        "--profiles",
        str(data / "sia-artifact" / "profiles"),
        "--cluster",
        "t4=16x4",
        "--policy",
        policy,
    ]
    command += ["--fidelity", "pollux-artifact", "--json"]
    _run(command)  # compiles modules that are not compiled yet
    runs = [_run(command) for _ in range(RUNS)]
    (summary, _, peak_mib), cpu_seconds = runs[-1], [seconds for _, seconds, _ in runs]
    return {
        "trace": trace,
        "policy": policy,
        "rounds": summary["rounds"],
        "cpu_seconds": min(cpu_seconds),
        "median_cpu_seconds": median(cpu_seconds),
        "published_cpu_seconds": published_cpu_seconds,
        "times_under": None
        if published_cpu_seconds is None
        else published_cpu_seconds / min(cpu_seconds),
        "peak_mib": peak_mib,
        "avg_jct_seconds": f"{3600.0 * float(summary['avg_jct_hours'] or 0.0):.2f}",
        "published_avg_jct_seconds": f"{published_jct_seconds:.2f}",
    }


def _row(folder: Path, trace: Trace, fidelity: str) -> dict[str, Cell]:
    command = [
        sys.executable,
        "-c",
        MAAT_AND_ITS_PEAK,
        "simulate",
        str(folder / "workloads" / trace.path),
        "--profiles",
        str(folder / "profiles"),
    ]
    command += ["--cluster", CLUSTER, "--policy", "sia", "--fidelity", fidelity, "--json"]
    summary, cpu_seconds, peak_mib = _run(command)
    return {
        "trace": trace.path.removesuffix(".csv"),
        "fidelity": fidelity,
        "jobs": summary["jobs"],
        "rounds": summary["rounds"],
        "cpu_seconds": cpu_seconds,
        "published_cpu_seconds": trace.published_cpu_seconds,
        "times_under": None
        if trace.published_cpu_seconds is None
        else trace.published_cpu_seconds / cpu_seconds,
        "peak_mib": peak_mib,
        "milliseconds_per_round": 1000.0
        * sum(float(summary[f"{part}_seconds_median"] or 0.0) for part in ("policy", "placement")),
        "avg_jct_hours": summary["avg_jct_hours"],
    }


def _run(command: list[str]) -> tuple[dict[str, Cell], float, float]:
    """Return the process's JSON output, CPU seconds and maximum memory in MiB.

    It keeps the modules that it compiles, as usual.
    """
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        streams = [
            (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
        ]
        pid = os.posix_spawn(command[0], command, environment, file_actions=streams)
        _, status, usage = os.wait4(pid, 0)
        output.seek(0)
        errors.seek(0)
        printed, peak = output.read(), re.search(rb"VmHWM:\s+(\d+) kB", errors.read())
    if os.waitstatus_to_exitcode(status) != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return (
        json.loads(printed),
        usage.ru_utime + usage.ru_stime,
        float(peak[1]) / 1024 if peak else float("nan"),
    )
