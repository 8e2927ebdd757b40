"""A Maat of its own for the demo: `maat up` as a child, and outages of its nodes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from maat.scheduling.errors import MaatError

_START_SECONDS, _STOP_SECONDS = 120.0, 20.0
_ADDRESS = re.compile(r"Maat is at (\S+)")


class DemoFailed(MaatError):
    """The demo could not be played to its end. The text says why."""


@dataclass(frozen=True)
class Service:
    """A running Maat: its address, and the folder of its data."""

    url: str
    folder: Path

    def take_down(self, cluster: str, node: str) -> None:
        """Kill what runs on a node, as its death would, and keep it out of service."""
        self._outage(cluster, node, "down")

    def bring_back(self, cluster: str, node: str) -> None:
        self._outage(cluster, node, "up")

    def _outage(self, cluster: str, node: str, state: str) -> None:
        done = subprocess.run(
            (sys.executable, "-m", "worker.outage", cluster, node, state),
            env={**_clean_environment(), "MAAT_DATA_DIR": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise DemoFailed(f"The outage of {node} could not be played: {done.stderr.strip()}")


@contextlib.contextmanager
def service(folder: Path, port: int) -> Iterator[Service]:
    """Start Maat on this folder, wait until it answers, and stop it at the end.

    Raises DemoFailed with what it said if it does not start.
    """
    said = folder / "maat-up.out"
    command = (sys.executable, "-m", "maat", "up", "--no-demo", "--allow-commands")
    with said.open("wb") as out:
        process = subprocess.Popen(
            (*command, "--data-dir", str(folder), "--port", str(port)),
            stdout=out,
            stderr=subprocess.STDOUT,
            env=_clean_environment(),
            start_new_session=True,
        )
    try:
        yield Service(_await_address(process, said), folder)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _await_address(process: subprocess.Popen[bytes], said: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        found = _ADDRESS.search(said.read_text(errors="replace"))
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise DemoFailed(f"Maat did not start:\n{said.read_text(errors='replace').strip()}")


def _clean_environment() -> dict[str, str]:
    """Return this environment without settings of another Maat."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MAAT_")}
