"""Tests of `maat up` with real processes, which are killed in every way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from up_processes import Up, command_of, one
from worker_processes import PATIENCE_SECONDS, wait_until


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port at which somebody else listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.fixture
def up(tmp_path: Path, taken_port: int) -> Iterator[Up]:
    started = Up(tmp_path / "data", taken_port)
    yield started
    started.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_one_command_serves_survives_its_worker_refuses_a_second_and_ends_clean(
    up: Up, taken_port: int, tmp_path: Path
) -> None:
    up.await_ready()
    assert int(up.url.rsplit(":", 1)[1]) != taken_port
    assert f"Port {taken_port} is taken." in up.said
    assert (up.folder / "maat.db").stat().st_mode & 0o077 == 0
    assert (
        httpx.get(f"{up.url}/api/v1/health", trust_env=False, timeout=PATIENCE_SECONDS).json()[
            "database"
        ]
        == "ok"
    )
    wait_until(lambda: up.last_round() >= 1, "the demo cluster makes a round")

    worker = one(pid for pid in up.processes() if "-Q rounds" in command_of(pid))
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: "The worker was restarted" in up.said, "the worker is started again")
    before = up.last_round()
    wait_until(lambda: up.last_round() >= before + 2, "rounds go on")

    second = subprocess.run(
        [sys.executable, "-m", "maat", "up", "--data-dir", str(up.folder)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert second.returncode == 2
    assert "in use by another Maat" in second.stderr + second.stdout

    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(PATIENCE_SECONDS) == 0
    wait_until(lambda: up.processes() == [], "all processes end")


def test_a_folder_that_cannot_be_written_is_refused_with_advice(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    command = [sys.executable, "-m", "maat", "up", "--data-dir", str(file)]
    found = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert found.returncode == 2
    assert "data_dir" in found.stderr + found.stdout
