"""Tests of the log of a long-running child process: rotated while written, bounded in size."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from maat.cli import child_process
from maat.cli.child_process import Child, ChildSpec, stop_all

PATIENCE_SECONDS = 120.0
LINE = "x" * 90
WRITES = f"""
import sys, signal, itertools
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
for number in itertools.count():
    print(number, {LINE!r}, flush=True)
    if asked:
        break
print("the last line", flush=True)
signal.pause()
"""


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    monkeypatch.setattr(child_process, "LOG_BYTES", 200_000)
    started = Child(
        ChildSpec("writer", (sys.executable, "-c", WRITES), {"PATH": ""}, tmp_path / "writer.log")
    )
    started.start()
    yield started
    stop_all([started], seconds=5.0)


def test_a_log_is_put_aside_while_it_is_written(child: Child) -> None:
    log, older, pid = child.spec.log, child.spec.log.with_suffix(".1.log"), child.pid
    put_aside, sizes = 0, []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while put_aside < 5 and time.monotonic() < deadline:
        if log.stat().st_size > child_process.LOG_BYTES:
            put_aside += 1
        assert child.attend() is None
        sizes += [older.stat().st_size] if older.exists() else []
    child.signal(signal.SIGUSR1)
    while not log.read_bytes().endswith(b"the last line\n") and time.monotonic() < deadline:
        assert child.attend() is None
    assert put_aside == 5
    assert child.pid == pid
    assert max(sizes) <= child_process.LOG_BYTES
    for file in (log, older):
        lines = file.read_text().splitlines()
        assert "\0" not in file.read_text()  # a cut that the writer does not notice leaves a hole
        assert all(
            line == "the last line" or (line.split(" ")[0].isdigit() and line.endswith(LINE))
            for line in lines
        ), lines[0]


def test_a_small_log_stays_where_it_is(tmp_path: Path) -> None:
    log = tmp_path / "small.log"
    child_process.rotate(log)
    log.write_text("a line\n")
    child_process.rotate(log)
    assert log.read_text() == "a line\n"
    assert not log.with_suffix(".1.log").exists()
