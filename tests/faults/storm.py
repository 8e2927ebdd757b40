"""A storm: a real `maat up` under load, of which anything is killed or paused at random moments."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from up_processes import Up, command_of
from worker_processes import PATIENCE_SECONDS

from worker.engines.local import LocalEngine

SCRIPT = Path(__file__).with_name("storm_script.py")
KINDS = {"rank": 9, "supervisor": 5, "worker": 2, "api": 2, "beat": 1}
"""What is struck, and how often of all strikes."""

_PROGRAMMES = {"worker": "-Q rounds", "api": "uvicorn", "beat": "celery -A worker.app beat"}
_LONGEST_PAUSE = 8.0  # a lease lasts 6 s
_PAUSED_SHARE = 0.2
_TRY_SECONDS = 5.0
ENDED = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True)
class Target:
    """A process that is to be struck."""

    kind: str
    pid: int


@dataclass
class Storm:
    """The service, its cluster, its jobs, and what was done to them.

    `steps`: of a job, one takes 0.05 s. `profiles`: whether jobs that adapt are profiled.
    """

    folder: Path
    seed: int
    steps: int
    profiles: bool = False
    strikes: Counter[str] = field(default_factory=Counter)
    jobs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self._paused: dict[int, float] = {}
        self.up = Up(self.folder / "data", 8600, "--no-demo", "--allow-commands")
        self.up.await_ready()
        self.client = httpx.Client(
            base_url=f"{self.up.url}/api/v1", trust_env=False, timeout=_TRY_SECONDS
        )
        cluster = {
            "name": "here",
            "shape": "t4=2x3,a100=1x2",
            "policy": "sia",
            "round_seconds": 1.0,
            "executor": "local",
        }
        self.cluster_id = self._post("/clusters", cluster)["id"]

    @property
    def out(self) -> Path:
        """What the ranks themselves wrote."""
        return self.folder / "ranks.jsonl"

    @property
    def root(self) -> Path:
        return self.up.folder / "training" / self.cluster_id

    def rows(self, query: str) -> list[Any]:
        """Read the database without Maat."""
        uri = f"file:{self.up.folder / 'maat.db'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=30.0)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(query).fetchall()

    def submit(self, *, adaptive: bool) -> None:
        run = {
            "argv": [sys.executable, "-S", "-E", str(SCRIPT)],
            "cwd": str(self.folder),
            "env": {
                "OUT": str(self.out),
                "STEPS": str(self.steps),
                "REPORTS": "1" if adaptive else "0",
            },
            "stop_seconds": 5.0,
            "max_retries": 100,
            "profile": adaptive and self.profiles,
        }
        shape: dict[str, Any] = {"adaptivity": "rigid", "gpu_count": self.chance.choice((1, 1, 2))}
        if adaptive:
            shape = {"adaptivity": "adaptive", "batch_size": 64, "max_batch_size": 512}
            shape["max_gpus"] = 4
        job = {"name": "job", "model": "storm", "cluster_id": "here", "run": run, **shape}
        self.jobs.append(self._post("/jobs", job)["id"])

    def submit_script(self, argv: list[str], **job: Any) -> str:
        """Submit a command of its own; return the job."""
        run = {"argv": argv, "cwd": str(self.folder), "stop_seconds": 30.0, "max_retries": 100}
        run["profile"] = False
        body = {"name": "job", "model": "script", "cluster_id": "here", "run": run, **job}
        self.jobs.append(self._post("/jobs", body)["id"])
        return self.jobs[-1]

    def keep_load(self, count: int) -> None:
        """Submit jobs until so many are unfinished, adaptive and rigid ones in turn."""
        states = self.rows("SELECT state FROM jobs")
        for _ in range(count - sum(row["state"] not in ENDED for row in states)):
            self.submit(adaptive=len(self.jobs) % 2 == 0)

    def blow(self, kills: int, *, load: int, seconds_between: float) -> None:
        """Kill so many processes, and pause some, while `load` jobs are unfinished."""
        kinds, weights = list(KINDS), list(KINDS.values())
        while sum(self.strikes[kind] for kind in KINDS) < kills:
            self.keep_load(load)
            self._wait(self.chance.expovariate(1.0 / seconds_between))
            kind = self.chance.choices(kinds, weights)[0]
            self._strike(kind, pauses=self.chance.random() < _PAUSED_SHARE)

    def blow_in_order(self, kinds: Sequence[str], *, jobs: int, seconds_between: float) -> None:
        """Kill one of each of these, in this order, as soon as there is one."""
        self.keep_load(jobs)
        for kind in kinds:
            self._wait(self.chance.expovariate(1.0 / seconds_between))
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not self._strike(kind, pauses=False):
                assert time.monotonic() < deadline, f"there is no {kind}"
                self._wait(0.1)

    def _strike(self, kind: str, *, pauses: bool) -> bool:
        """Return whether there was one to strike."""
        target = self._target(kind)
        if target is None:
            return False
        if pauses:
            self._pause(target)
        elif _kill(target.pid):
            self.strikes[kind] += 1
        return True

    def calm(self, seconds: float = 420.0) -> None:
        """Wait until all jobs have ended; then stop Maat."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and (
            {row["state"] for row in self.rows("SELECT state FROM jobs")} - ENDED
        ):
            self._wait(0.3)
        self._resume(everything=True)
        self.up.process.send_signal(signal.SIGTERM)
        self.up.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        self._resume(everything=True)
        self.client.close()
        self.up.kill()
        LocalEngine(self.root, []).strays([])

    def _target(self, kind: str) -> Target | None:
        if kind in _PROGRAMMES:
            found = [p for p in self.up.processes() if _PROGRAMMES[kind] in command_of(p)]
        else:
            found = [
                pid for started in self._started() for pid in _pids(started, kind) if _is_ours(pid)
            ]
        found = [pid for pid in found if pid not in self._paused]
        return Target(kind, self.chance.choice(sorted(found))) if found else None

    def _started(self) -> list[dict[str, Any]]:
        """Return started.json of all attempts that have not ended."""
        found = []
        for folder in sorted((self.root / "attempts").glob("*")):
            if not (folder / "exit.json").exists():
                with suppress(OSError, ValueError):
                    found.append(json.loads((folder / "started.json").read_text()))
        return found

    def _pause(self, target: Target) -> None:
        with suppress(ProcessLookupError):
            os.kill(target.pid, signal.SIGSTOP)
            pause = self.chance.uniform(0.5, _LONGEST_PAUSE)
            self._paused[target.pid] = time.monotonic() + pause
            self.strikes[f"{target.kind} paused"] += 1

    def _resume(self, *, everything: bool = False) -> None:
        now = time.monotonic()
        for pid in [pid for pid, until in self._paused.items() if everything or until <= now]:
            del self._paused[pid]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(min(0.1, max(until - time.monotonic(), 0.0)))
            self._resume()

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        """Make something once, however often the API dies meanwhile."""
        key = {"Idempotency-Key": f"storm-{self.chance.getrandbits(64):x}"}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self.client.post(path, json=body, headers=key)
                if answer.is_success:
                    return answer.json()
                assert answer.status_code >= 500 or answer.status_code == 409, answer.text
            except httpx.HTTPError:
                assert time.monotonic() < deadline, f"{path} was not answered"
            self._wait(0.3)


def _pids(started: dict[str, Any], kind: str) -> list[int]:
    if kind == "supervisor":
        return [started["shim"][0]]
    return [process[0] for process in started["ranks"].values() if process]


def _is_ours(pid: int) -> bool:
    """Return whether this is still a rank or a supervisor: a pid may be another's by now."""
    command = command_of(pid)
    return "maat.launch.shim" in command or "storm_script" in command or "adaptive" in command


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
