"""Attempts of small commands, and what tests ask of their processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maat.launch import control
from maat.launch.attempt_dir import AttemptDir, Limits, Spec
from maat.launch.processes import Identity, identity, marked

PATIENCE_SECONDS = 60.0
FOR_EVER = 10_000.0

WAITS = "trap 'exit 143' TERM; echo ready; sleep 1000 & while :; do wait; done"
IGNORES = "trap '' TERM; echo ready; sleep 1000 & while :; do wait; done"
LEAVES_CHILDREN = f"setsid sleep 1000 & sleep 1000 & {WAITS}"


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds; fail if it never does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@dataclass
class Attempt:
    """An attempt in a folder of a test."""

    folder: Path
    script: str = WAITS
    ranks: int = 2
    stop_seconds: float = FOR_EVER
    secrets: Mapping[str, str] = field(default_factory=dict)
    token: str = "token-of-the-attempt"
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.directory = AttemptDir(str(self.folder))
        self.workers: list[subprocess.Popen[str]] = []

    @property
    def spec(self) -> Spec:
        spec = Spec(
            attempt_id=self.folder.name,
            job_id="job_1",
            number=3,
            argv=("/bin/sh", "-c", self.script),
            cwd="/",
            env={},
            secret_names=tuple(self.secrets),
            gpu_type="t4",
            gpus_by_node={"node-0": tuple(range(self.ranks))},
            gpus_per_replica=1,
            cuda_devices={},
            threads=1,
            stop_seconds=self.stop_seconds,
            limits=Limits(),
            plan=None,
            checkpoint_directory="/nowhere",
        )
        return spec._replace(**self.changes)

    def start(self) -> bool:
        return control.start(self.directory, self.spec, token=self.token, secrets=self.secrets)

    def started(self) -> Attempt:
        """Start it, and wait until every rank is ready."""
        assert self.start()
        until(lambda: all("ready" in log for log in self.logs()))
        return self

    def start_in_a_worker(self) -> subprocess.Popen[str]:
        """Start it in a process of its own, which then stays, like a worker."""
        code = (
            "import sys, time; from pathlib import Path; from attempts import Attempt\n"
            "folder, script, ranks = sys.argv[1:]\n"
            "print(Attempt(Path(folder), script, int(ranks)).start(), flush=True)\n"
            "time.sleep(1000)"
        )
        here = Path(__file__).resolve().parent
        worker = subprocess.Popen(
            [sys.executable, "-c", code, str(self.folder), self.script, str(self.ranks)],
            env={**os.environ, "PYTHONPATH": f"{here}:{here.parents[1]}"},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.workers.append(worker)
        return worker

    def log(self, rank: int = 0) -> str:
        return self.directory.text(f"rank-{rank}.log")

    def logs(self) -> list[str]:
        return [self.log(rank) for rank in range(self.ranks)]

    def ended(self) -> dict[str, Any]:
        """Wait for exit.json, and return it."""
        until(lambda: self.directory.has("exit.json"))
        found = self.directory.read("exit.json")
        assert found is not None
        return found

    def lost(self) -> dict[str, Any]:
        """Conclude an attempt whose supervisor is gone, and return exit.json."""
        until(lambda: not self.directory.is_locked())
        control.conclude_lost([self.directory])
        return self.ended()

    def shim(self) -> Identity:
        return self._started()["shim"]

    def rank(self, number: int) -> Identity:
        return self._started()["ranks"][str(number)]

    def processes(self) -> list[int]:
        """Return all processes that bear the mark of this attempt."""
        return [pid for pid, folder in marked() if folder == str(self.folder)]

    def supervisors(self) -> list[int]:
        """Return the processes that were started to supervise this attempt."""
        return [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdecimal() and self._is_supervisor(entry)
        ]

    def _is_supervisor(self, process: Path) -> bool:
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            return False
        return str(self.folder) in words and any("maat.launch.shim" in word for word in words)

    def _started(self) -> dict[str, Any]:
        until(lambda: self.directory.has("started.json"))
        data = self.directory.read("started.json")
        assert data is not None
        ranks = {rank: Identity(*each) for rank, each in data["ranks"].items()}
        return {"shim": Identity(*data["shim"]), "ranks": ranks}


def kill_9(process: Identity) -> None:
    """Kill a process that is known to be there, and wait until it is gone."""
    assert identity(process.pid) == process
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: identity(process.pid) != process)
