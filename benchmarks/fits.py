"""What a fit costs and how well it fits: by process, and by search.

Processes use BLAS differently: a script that imports Maat, the `maat` command, a pool of threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

from benchmarks.table import Cell, Figures

TITLE = "The published fit of the throughput model, by process"
COLUMNS = {
    "process": "process",
    "threads": "BLAS threads of the process",
    "milliseconds": "CPU ms per fit",
    "times": "x of the command's",
}
NOTES = [
    "Eight samples of one job, 300 fits, the first not counted; CPU of all threads of the process.",
    "command: the environment that `maat` sets for itself. script: nothing set, fit_throughput as "
    "it is. pool: the same without its limit.",
]
MEASURE = """
import json, time
from contextlib import nullcontext
from threadpoolctl import threadpool_info
from maat.scheduling import fitting
from maat.scheduling.fitting import published
samples = [
    fitting.Sample(1, 1, m, 0.1 + 0.01 * m + 0.001 * (m % 3), 0.0) for m in (8, 16, 32, 64, 128)
]
samples += [
    fitting.Sample(1, 2, 32, 0.49, 0.06),
    fitting.Sample(1, 4, 32, 0.53, 0.12),
    fitting.Sample(2, 8, 32, 0.7, 0.3),
]
if POOL:
    published.one_blas_thread = nullcontext
search = fitting.FitSearch.PUBLISHED
fitting.fit_throughput(samples, search=search)
began = time.process_time()
for _ in range(300):
    fitting.fit_throughput(samples, search=search)
spent = time.process_time() - began
threads = max(pool["num_threads"] for pool in threadpool_info())
print(json.dumps({"milliseconds": spent / 300 * 1000, "threads": threads}))
"""
ONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def measure() -> Figures:
    rows = [
        _row("command", ONE, pool=False),
        _row("script", {}, pool=False),
        _row("pool", {}, pool=True),
    ]
    least = float(rows[0]["milliseconds"] or 0.0)
    return Figures(
        "fits",
        TITLE,
        COLUMNS,
        [{**row, "times": float(row["milliseconds"] or 0.0) / least} for row in rows],
        list(NOTES),
    )


def _row(process: str, extra: Mapping[str, str], *, pool: bool) -> dict[str, Cell]:
    environment = {name: value for name, value in os.environ.items() if name not in ONE} | extra
    code = MEASURE.replace("POOL", repr(pool))
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    return {"process": process, **json.loads(said)}
