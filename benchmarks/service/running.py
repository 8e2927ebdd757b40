"""The whole of Maat as `maat up` runs it, on its own port and folder, with a busy cluster."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.service.real_server import free_port
from maat.api.clusters import NodeBody
from maat.client import Client, Unreachable, calls
from maat.client.calls import RawBody

START_SECONDS = 120.0
NODES: dict[int, list[NodeBody]] = {
    64: [
        {"gpu_type": "t4", "gpu_count": 4, "count": 6},
        {"gpu_type": "rtx", "gpu_count": 8, "count": 3},
        {"gpu_type": "a100", "gpu_count": 8, "count": 2},
    ],
    2048: [
        {"gpu_type": "t4", "gpu_count": 4, "count": 128},
        {"gpu_type": "rtx", "gpu_count": 8, "count": 64},
        {"gpu_type": "a100", "gpu_count": 8, "count": 128},
    ],
}


@dataclass(frozen=True)
class Running:
    """A running Maat. `pid`: of the process that serves requests."""

    client: Client
    pid: int
    data_dir: Path


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """Run `maat up`, with its data below a folder."""
    log = folder / "up.log"
    with log.open("wb") as output:
        command = [
            sys.executable,
            "-m",
            "maat",
            "up",
            "--no-demo",
            "--port",
            str(free_port()),
            "--data-dir",
            str(folder / "data"),
        ]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        with Client(_address(log, process)) as client:
            yield Running(client, _service_of(process.pid), folder / "data")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        said = re.search(r"Maat is at (\S+)", log.read_text())
        if said:
            return said[1]
        time.sleep(0.2)
    raise RuntimeError(f"maat up did not start: {log.read_text()}")


def _service_of(parent: int) -> int:
    """Return the child of `maat up` that serves requests."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            above = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if above == parent and b"uvicorn" in command:
            return int(folder.name)
    raise RuntimeError("maat up has no process that serves requests")


def busy_cluster(client: Client, gpus: int, jobs: int, *, speed: float) -> str:
    """Make a cluster with jobs, and wait until rounds have given half of its GPUs away."""
    cluster: str = client.send(
        calls.create_cluster({"name": f"gpus-{gpus}", "nodes": NODES[gpus], "speed": speed})
    )["id"]
    _submit(client, cluster, jobs)
    await_jobs(client, cluster)
    return cluster


def _submit(client: Client, cluster_id: str, count: int) -> None:
    chance = Random(0)
    models = ("cifar10", "bert", "imagenet", "deepspeech2", "yolov3")
    bodies: list[RawBody] = [
        {
            "name": f"team{chance.randrange(20)}-train-{number:04d}",
            "model": chance.choice(models),
            "cluster_id": cluster_id,
            "max_gpus": chance.choice((1, 2, 4, 8)),
            "work_scale": 100.0,
        }
        for number in range(count)
    ]
    for start in range(0, count, 256):
        client.send(calls.submit_jobs(bodies[start : start + 256]))


def await_jobs(client: Client, cluster_id: str) -> None:
    """Wait until rounds have allocated half of the GPUs."""
    end = time.monotonic() + 2 * START_SECONDS
    while time.monotonic() < end:
        try:
            gpus = client.cluster_state(cluster_id)["gpus"]
        except Unreachable:
            gpus = []
        if gpus and sum(gpu["held"] for gpu in gpus) * 2 >= len(gpus):
            return
        time.sleep(1.0)
    raise RuntimeError("no round gave half of the GPUs away")
