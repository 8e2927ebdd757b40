"""Real workers with the options of `maat up` and the compose file, to be killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

from browser.processes import fork

PATIENCE_SECONDS = 120.0  # only a test that fails waits as long


@dataclass
class Worker:
    """A Celery worker in its own process group, by default with its beat and for all queues."""

    environment: dict[str, str]
    log: Path
    queues: str = "rounds,simulations"
    beats: bool = True
    process: BaseProcess | None = field(default=None)

    @classmethod
    def on(cls, database_url: str, folder: Path, *, broker_url: str = "") -> Worker:
        settings = {
            "MAAT_DATABASE_URL": database_url,
            "MAAT_DATA_DIR": str(folder / "data"),
            "MAAT_BROKER_URL": broker_url,
        }
        return cls({**os.environ, **settings, "OMP_NUM_THREADS": "1"}, folder / "worker.log")

    def only(self, queue: str, name: str) -> Worker:
        """Return another worker for one queue, on the same database and broker.

        It has the beat if the queue is that of the rounds. The caller stops it.
        """
        return replace(
            self,
            log=self.log.with_name(f"{name}.log"),
            queues=queue,
            beats=queue == "rounds",
            process=None,
        )

    def start(self) -> None:
        named = ["-n", f"{self.log.stem}@%h", *(["-B"] if self.beats else [])]
        options = ["--pool=solo", "--loglevel=WARNING", "--without-mingle", "--without-gossip"]
        words = ["celery", "-A", "worker.app", "worker", *named, *options, "-Q", self.queues]
        self.process = fork(words, self.environment, self.log)

    def kill(self) -> None:
        """Kill the worker as the kernel does when memory runs out; its beat then ends by itself."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            pid, self.process = self.process.pid, None
            wait_until(lambda: not group_lives(pid), "the beat of a killed worker ends with it")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.join(PATIENCE_SECONDS)
            self.kill_group()

    def kill_group(self) -> None:
        if self.process is not None and group_lives(self.process.pid):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(
    condition: Callable[[], bool],
    what: str,
    *,
    seconds: float = PATIENCE_SECONDS,
    log: Path | None = None,
) -> None:
    """Poll until the condition holds; fails with what was waited for, and the end of the log."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            tail = "" if log is None else "\n" + log.read_text()[-3000:]
            raise AssertionError(f"waited {seconds:g} s, and it did not happen: {what}{tail}")
        time.sleep(0.05)
