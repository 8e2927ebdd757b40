"""A `maat up` of real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
from worker_processes import PATIENCE_SECONDS, wait_until


class Up:
    """A running `maat up`, and what it said."""

    def __init__(self, folder: Path, port: int, *options: str) -> None:
        self.folder, self._said = folder, folder.with_suffix(".out")
        command = [
            sys.executable,
            "-m",
            "maat",
            "up",
            "--data-dir",
            str(folder),
            "--port",
            str(port),
            *options,
        ]
        with self._said.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=clean_environment(),
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def url(self) -> str:
        return self.said.split("Maat is at ")[1].split()[0]

    def await_ready(self) -> None:
        wait_until(
            lambda: "Maat is at" in self.said or self.process.poll() is not None,
            "it says where it is",
            log=self._said,
        )
        assert "Maat is at" in self.said, self.said

    def processes(self) -> list[int]:
        """Every process that lives on this data folder, the supervisor included."""
        wanted = f"MAAT_DATA_DIR={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found

    def last_round(self) -> int:
        with httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
            cluster = client.get("/api/v1/clusters").json()["items"][0]["id"]
            rounds = client.get(f"/api/v1/clusters/{cluster}/rounds", params={"limit": 1}).json()[
                "items"
            ]
        return int(rounds[0]["number"]) if rounds else 0

    def kill(self) -> None:
        """Kill everything that lives on this data folder."""
        for pid in [self.process.pid, *self.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MAAT_")}


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def one(found: Iterator[int]) -> int:
    (only,) = found
    return only
