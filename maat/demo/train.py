"""The play: three models train under Sia, a node dies and returns, and all of them finish."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from maat.api.job_answers import JobOut
from maat.client import Client
from maat.demo.jobs import JOBS, DemoJob
from maat.demo.service import DemoFailed, Service, service

Say = Callable[[str], None]
Found = TypeVar("Found")

CLUSTER, NODES = "demo", {"t4-node": "t4", "a100-node": "a100"}
GPUS_PER_NODE = 4
ROUND_SECONDS = 15.0
SUBMITTED_EVERY_SECONDS = 15.0
MOST_SECONDS = 540.0
_LOST_NODE, _LOST_AFTER, _LOST_SECONDS = "a100-node", 0.35, 45.0
_LOOK_SECONDS = 1.0
_ENDED = {"succeeded", "failed", "cancelled"}


@dataclass(frozen=True)
class Conditions:
    """How the demo is played. `longer`: how many times longer the jobs train than by default."""

    longer: int = 1
    has_outage: bool = True

    def jobs(self) -> dict[str, DemoJob]:
        return {name: job.longer(self.longer) for name, job in JOBS.items()}


@dataclass
class Run:
    """A run of the demo so far.

    `load`: of the machine in the minute before it. `began`: of time.monotonic(). `outages`: (node,
    from, to), in seconds since `began`.
    """

    cluster_id: str
    conditions: Conditions
    load: float = 0.0
    job_ids: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    outages: list[tuple[str, float, float | None]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def jobs(self) -> Mapping[str, DemoJob]:
        return self.conditions.jobs()


def play(
    folder: Path,
    look: Callable[[Client, Run], Found],
    conditions: Conditions,
    *,
    port: int,
    say: Say,
) -> Found:
    """Play the demo with its data in this folder; return what `look` finds before Maat stops.

    Raises DemoFailed if a job does not finish.
    """
    if importlib.util.find_spec("torch") is None:
        raise DemoFailed('The demo trains with PyTorch: pip install "maat[agent]".')
    load = os.getloadavg()[0]
    say("Starting Maat.")
    with service(folder, port) as maat, Client(maat.url) as client:
        say(f"Maat is at {maat.url}: watch it there.")
        run = Run(_create_cluster(client), conditions, load)
        try:
            _train(maat, client, run, say)
        except BaseException:
            _cancel(client, run)
            raise
        return look(client, run)


def _create_cluster(client: Client) -> str:
    nodes = [
        {"name": name, "gpu_type": gpu_type, "gpu_count": GPUS_PER_NODE}
        for name, gpu_type in NODES.items()
    ]
    made = client.create_cluster(
        {
            "name": CLUSTER,
            "nodes": nodes,
            "policy": "sia",
            "round_seconds": ROUND_SECONDS,
            "executor": "local",
        }
    )
    return made["id"]


def _train(maat: Service, client: Client, run: Run, say: Say) -> None:
    waiting, shown = list(run.jobs), ""
    while True:
        due = len(run.job_ids) * SUBMITTED_EVERY_SECONDS
        if waiting and run.seconds >= due:
            name = waiting.pop(0)
            run.job_ids[name] = _submit(client, run, name)
        jobs = {name: client.job(job_id) for name, job_id in run.job_ids.items()}
        line = _line(jobs.values())
        if line != shown:
            say(f"{_clock(run.seconds)}  {line}")
            shown = line
        if run.conditions.has_outage:
            _play_outage(maat, run, list(jobs.values()), say)
        if not waiting and all(job["state"] in _ENDED for job in jobs.values()):
            break
        if run.seconds > MOST_SECONDS * run.conditions.longer:
            raise DemoFailed(f"Not all jobs had ended after {run.seconds:.0f} s: {line}")
        time.sleep(_LOOK_SECONDS)
    failed = [name for name, job in jobs.items() if job["state"] != "succeeded"]
    if failed:
        raise DemoFailed(f"{', '.join(failed)} did not succeed: {_why(jobs[failed[0]])}")


def _submit(client: Client, run: Run, name: str) -> str:
    wanted = run.jobs[name]
    job = client.submit_job(
        {
            "name": name,
            "model": name,
            "cluster_id": run.cluster_id,
            "batch_size": wanted.batch_size,
            "max_batch_size": wanted.max_batch_size,
            "max_gpus": GPUS_PER_NODE,
            "run": {
                "argv": [sys.executable, "-m", f"maat.demo.{name}"],
                "cwd": "/",
                "env": {"EPOCHS": str(wanted.epochs)},
            },
        }
    )
    return job["id"]


def _play_outage(maat: Service, run: Run, jobs: Sequence[JobOut], say: Say) -> None:
    """Take the node away once a third of all work is done and it is in use; bring it back."""
    if not run.outages:
        held = [job["allocation"] for job in jobs]
        uses = any(each and each["gpu_type"] == NODES[_LOST_NODE] for each in held)
        done = sum(job["progress"] for job in jobs) / len(run.jobs)
        if uses and done >= _LOST_AFTER:
            run.outages.append((_LOST_NODE, run.seconds, None))
            say(f"{_clock(run.seconds)}  {_LOST_NODE} dies: every process on it is killed.")
            maat.take_down(run.cluster_id, _LOST_NODE)
        return
    node, down_at, up_at = run.outages[-1]
    if up_at is None and run.seconds - down_at >= _LOST_SECONDS:
        maat.bring_back(run.cluster_id, node)
        run.outages[-1] = (node, down_at, run.seconds)
        say(f"{_clock(run.seconds)}  {node} is back.")


def _cancel(client: Client, run: Run) -> None:
    """Let nothing train on after the demo."""
    for job_id in run.job_ids.values():
        client.cancel_job(job_id)
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline:
        if all(client.job(job_id)["state"] in _ENDED for job_id in run.job_ids.values()):
            return
        time.sleep(_LOOK_SECONDS)


def _line(jobs: Iterable[JobOut]) -> str:
    return "   ".join(_cell(job) for job in jobs)


def _cell(job: JobOut) -> str:
    held = job["allocation"]
    where = f"{held['gpu_type']} x {held['gpu_count']}" if held else job["state"]
    return f"{job['name']}: {where} {10 * int(10 * job['progress'])} %"


def _why(job: JobOut) -> str:
    return job["reason"]["sentence"]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
