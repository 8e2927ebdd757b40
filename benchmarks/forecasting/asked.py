"""Seconds from a what-if question over REST to its answer by the worker of `maat up`.

A live cluster of 64 GPUs with 100 jobs, whose rounds and forecasts go on: jobs of a trace,
or jobs that nearly all outlast the 14 days that a forecast looks ahead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.service.running import NODES, await_jobs, running
from benchmarks.table import Cell, Figures
from maat.api.forecasts import ForecastOut
from maat.client import Client, Unreachable, calls
from maat.client.calls import RawBody
from maat.workloads.generators import generate

GPUS, JOBS, SPEED, TIMES = 64, 100, 6.0, 2
MOST_SECONDS = 300.0
LOOK_SECONDS = 0.1
WORK_SCALES = {"philly": 1.0, "philly, 100 times the work": 100.0}
COLUMNS = {
    "jobs": "jobs",
    "question": "question",
    "active": "jobs left",
    "draws": "draws",
    "first": "first answer s",
    "wall": "last answer s",
    "cpu": "CPU s of the forecaster",
    "load": "load",
}
QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "drain a node": {"drain_nodes": ["a100-0"]},
    "two more a100 nodes": {"add_shape": "a100=2x8"},
    "another policy": {"policy": "srtf"},
    "another placer": {"placer": "packed-sticky"},
}


def measure() -> Figures:
    rows = [row for name, scale in WORK_SCALES.items() for row in _rows(name, scale)]
    title = f"What-if questions over REST: {JOBS} jobs on {GPUS} GPUs"
    notes = [
        f"From POST /forecasts until GET /forecasts/ID has a first and its last answer; asked "
        f"every {LOOK_SECONDS:g} s. The slowest of {TIMES}; load: of the last minute.",
        f"A round every {60 / SPEED:g} s of wall time, with forecasts after rounds.",
    ]
    return Figures("forecasts_asked", title, COLUMNS, rows, notes)


def _rows(jobs: str, work_scale: float) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    with TemporaryDirectory() as folder, running(Path(folder)) as maat:
        cluster = _filled(maat.client, work_scale)
        forecaster = _forecaster_of(maat.pid)
        cold = _asked(maat.client, forecaster, cluster, QUESTIONS["drain a node"])
        rows.append({"jobs": jobs, "question": "the first since the start", **cold})
        for name, changes in QUESTIONS.items():
            found = [_asked(maat.client, forecaster, cluster, changes) for _ in range(TIMES)]
            slowest = max(found, key=lambda row: float(row["wall"] or 0))
            rows.append({"jobs": jobs, "question": name, **slowest})
    return rows


def _filled(client: Client, work_scale: float) -> str:
    """Return a cluster in which rounds have given half of the GPUs to the jobs of a trace."""
    body: RawBody = {"name": "asked", "nodes": NODES[GPUS], "speed": SPEED}
    cluster: str = client.send(calls.create_cluster(body))["id"]
    client.submit_jobs(
        [
            {
                "name": job.name,
                "model": job.model,
                "cluster_id": cluster,
                "max_gpus": max(16, job.gpu_count),
                "work_scale": work_scale,
            }
            for job in generate("philly", jobs=JOBS, seed=3).jobs
        ]
    )
    await_jobs(client, cluster)
    return cluster


def _asked(
    client: Client, forecaster: int, cluster: str, changes: Mapping[str, Any]
) -> dict[str, Cell]:
    begun, cpu = time.perf_counter(), _cpu_seconds(forecaster)
    forecast = client.ask_forecast({"cluster_id": cluster, "changes": dict(changes)})
    first: float | None = None
    while forecast["state"] in ("queued", "running"):
        time.sleep(LOOK_SECONDS)
        if time.perf_counter() - begun > MOST_SECONDS:
            raise RuntimeError(f"a question has no answer after {MOST_SECONDS:g} s")
        try:
            forecast = client.forecast(forecast["id"])
        except Unreachable:  # a busy machine may close a connection that is about to be used
            continue
        if first is None and forecast["draws"]:
            first = time.perf_counter() - begun
    wall = time.perf_counter() - begun
    spent = {"first": first, "wall": wall, "cpu": _cpu_seconds(forecaster) - cpu}
    return {**_figures(forecast), **spent, "load": os.getloadavg()[0]}


def _figures(forecast: ForecastOut) -> dict[str, Cell]:
    if forecast["after"] is None:
        raise RuntimeError(f"a question has no answer: {forecast['error']}")
    return {"active": forecast["after"]["jobs"], "draws": forecast["draws"]}


def _forecaster_of(service: int) -> int:
    """Return the process of the same `maat up` that forecasts."""
    parent = _parent_of(service)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if b"forecasts@%h" in command and _parent_of(int(folder.name)) == parent:
                return int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise RuntimeError("maat up has no process that forecasts")


def _parent_of(process: int) -> int:
    return int(_stat(process)[1])


def _cpu_seconds(process: int) -> float:
    user, system = _stat(process)[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[str]:
    """Return what /proc says of a process, from its state on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
