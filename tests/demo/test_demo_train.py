"""`maat demo train` as its user runs it: some minutes, real processes, a real report."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maat.demo.recording import Recording

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="starts real attempts"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
COMMAND = (sys.executable, "-m", "maat", "demo", "train", "--port", "8450", "--folder")


def test_the_demo_trains_through_an_outage_and_writes_its_report(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = subprocess.run([*COMMAND, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 jobs trained to their end" in done.stdout
    assert "a100-node dies" in done.stdout
    run = Recording.read(folder / "recording.json")
    assert [job.lives[-1].outcome for job in run.jobs] == ["succeeded"] * 3
    assert any(life.outcome == "lost" for job in run.jobs for life in job.lives)
    assert {life.gpu_type for job in run.jobs for life in job.lives} == {"t4", "a100"}
    assert (folder / "report.html").stat().st_size > 100_000
    assert left_over(folder) == []


def test_a_demo_that_is_stopped_lets_nothing_train_on(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with subprocess.Popen([*COMMAND, str(folder)], stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "digits: t4 x 1" in line or "digits: profiling" in line:
                break
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60.0) == 130
    end = time.monotonic() + 30.0
    while left_over(folder) and time.monotonic() < end:
        time.sleep(0.2)
    assert left_over(folder) == []


def left_over(folder: Path) -> list[str]:
    """Return the commands of processes that still work on this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in environment + command:
                found.append(command.replace(b"\0", b" ").decode())
    return found
