"""What Linux says of processes: which they are, and which bear the mark of an attempt.

A pid alone names nobody: it may be another's tomorrow. A zombie counts as gone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

MARK = "MAAT_ATTEMPT_DIR"
"""The environment variable by which a process is known to be an attempt's: its folder."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class NeedsLinux(Exception):
    """Processes are started on Linux only. The text says what this machine is."""


class Identity(NamedTuple):
    """A process for ever: its pid, and its start in clock ticks since the machine's boot."""

    pid: int
    started: int


def check_linux() -> None:
    """Raise NeedsLinux on any other system."""
    if sys.platform != "linux":
        raise NeedsLinux(
            f"Training processes can be started on Linux only, and this is {sys.platform}: "
            "run Maat on Linux, or use the simulated executor."
        )


def boot_id() -> str:
    """Return the name of the machine's present life: another one after each boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def identity(pid: int) -> Identity | None:
    """Return which process has this pid now; None if none has."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in b"ZX" else Identity(pid, int(fields[19]))


def children(pid: int) -> list[int]:
    """Return the children of a process, zombies too."""
    return [each for each in _pids() if (found := _stat(each)) and int(found[1]) == pid]


def send(process: Identity, number: signal.Signals) -> bool:
    """Signal this very process; return whether it was there."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if identity(process.pid) != process:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def die_with_parent() -> None:
    """Let the kernel kill this process when the thread that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def marked() -> Iterator[tuple[int, str]]:
    """Yield pid and attempt folder of every process that bears a mark."""
    for pid in _pids():
        folder = _folder_of(pid)
        if folder is not None:
            yield pid, folder


def end_marked(is_meant: Callable[[str], bool], *, seconds: float) -> tuple[list[str], set[str]]:
    """Kill every process of the attempt folders that are meant, and what they start meanwhile.

    Returns the folder of each process killed, and the folders of which some are left after at most
    `seconds`.
    """
    ended: dict[Identity, str] = {}
    deadline = time.monotonic() + seconds
    while True:
        found = [(pid, folder) for pid, folder in marked() if is_meant(folder)]
        for pid, folder in found:
            process = identity(pid)
            if process is not None and _folder_of(pid) == folder:
                send(process, signal.SIGKILL)
                ended[process] = folder
        if not found or time.monotonic() > deadline:
            return list(ended.values()), {folder for _, folder in found}
        time.sleep(0.005)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat from the third on: state, parent, group ..."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command's name stands in brackets and may hold any character.
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _folder_of(pid: int) -> str | None:
    """Return the attempt folder that a process names in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:  # gone, or another user's
        return None
    _, found, rest = (b"\0" + environment).partition(b"\0" + MARK.encode() + b"=")
    return os.fsdecode(rest.partition(b"\0")[0]) if found else None


def _prctl(option: int, value: int) -> None:
    if _LIBC is None:
        check_linux()
    elif _LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
