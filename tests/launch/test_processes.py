"""What is known of processes: which they are, whose children, and whose mark they bear."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attempts import until

from maat.launch.processes import (
    MARK,
    Identity,
    children,
    end_marked,
    identity,
    marked,
    send,
)

Sleeping = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def sleeping() -> Iterator[Sleeping]:
    """Return a function that starts a process with an environment of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def start(command: str = "sleep", **environment: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([command, "1000"], env=environment))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_signal_reaches_the_process_that_is_meant_and_no_later_one_of_its_pid(
    sleeping: Sleeping,
) -> None:
    process = sleeping()
    meant = identity(process.pid)
    assert meant is not None
    assert not send(Identity(process.pid, meant.started - 1), signal.SIGKILL)
    assert process.poll() is None
    assert send(meant, signal.SIGKILL)
    assert process.wait() == -9
    assert not send(meant, signal.SIGKILL)


def test_a_zombie_is_nobody(sleeping: Sleeping) -> None:
    process = sleeping()
    assert process.pid in children(os.getpid())
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: identity(process.pid) is None)
    assert process.pid in children(os.getpid())
    process.wait()
    assert process.pid not in children(os.getpid())


def test_a_name_may_hold_anything(sleeping: Sleeping, tmp_path: Path) -> None:
    odd = tmp_path / "a) Z 1 (b"
    odd.symlink_to("/bin/sleep")
    process = sleeping(str(odd))
    assert identity(process.pid) is not None
    assert process.pid in children(os.getpid())


def test_a_mark_is_a_whole_variable(sleeping: Sleeping, tmp_path: Path) -> None:
    folder = str(tmp_path / "ä b")
    first = sleeping(**{MARK: folder, "B": "x"})
    last = sleeping(**{"B": "x", MARK: folder})
    others = [
        sleeping(**{f"X{MARK}": folder}),
        sleeping(**{f"{MARK}S": folder}),
        sleeping(B=f"{MARK}={folder}"),
        sleeping(),
    ]
    found = [pid for pid, marked_folder in marked() if marked_folder == folder]
    assert sorted(found) == sorted([first.pid, last.pid])
    killed, left = end_marked({folder}.__contains__, seconds=60)
    assert (killed, left) == ([folder, folder], set())
    assert (first.wait(), last.wait()) == (-9, -9)
    assert [other.poll() for other in others] == [None] * 4
