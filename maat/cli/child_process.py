"""One process that `maat up` keeps alive: its group, its log, its back-off.

Knows nothing of what the process does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
STEADY_SECONDS = 30.0  # after this long, the next failure waits only the first wait again
LOG_BYTES = 10_000_000

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True)
class ChildSpec:
    """What to start.

    `environment` is the complete one; `inherited`: file descriptors that the process may use.
    """

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    inherited: tuple[int, ...] = ()


class Child:
    """A process in its own group, restarted when it ends by itself."""

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.failures = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._start_at: float | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        rotate(self.spec.log)
        with self.spec.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.spec.arguments,
                env=dict(self.spec.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=self.spec.inherited,
                start_new_session=True,  # Ctrl+C in the terminal reaches only the supervisor
                preexec_fn=dies_with_parent(),  # noqa: PLW1509  (the supervisor has one thread)
            )
        self._started, self._start_at = time.monotonic(), None

    def attend(self) -> str | None:
        """Check the process and its log.

        Returns a sentence if something happened to it, None if it is well.
        """
        rotate(self.spec.log)
        now = time.monotonic()
        if self._start_at is not None:
            if now < self._start_at:
                return None
            self.start()
            return f"{self.spec.name} was restarted (process {self.pid})"
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        self.signal(signal.SIGKILL)  # processes that the dead one left in its group
        self.failures = 1 if now - self._started >= STEADY_SECONDS else self.failures + 1
        wait = min(FIRST_WAIT_SECONDS * 2 ** (self.failures - 1), LONGEST_WAIT_SECONDS)
        self._start_at = now + wait
        how = ending(code)
        return f"{self.spec.name} ended ({how}); it restarts in {wait:g} s. Log: {self.spec.log}"

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group; do nothing if it is gone."""
        if self._process is not None:
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                return

    def is_gone(self) -> bool:
        """Return whether no process of the group is left."""
        if self._process is None:
            return True
        self._process.poll()  # removes the zombie
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return True
        return False


def stop_all(children: list[Child], *, seconds: float) -> None:
    """Ask all groups to end, and kill those still running after `seconds`."""
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not all(child.is_gone() for child in children):
        time.sleep(0.05)
    for child in children:
        child.signal(signal.SIGKILL)
    while time.monotonic() < deadline + 2 and not all(child.is_gone() for child in children):
        time.sleep(0.02)


def dies_with_parent() -> Callable[[], None] | None:
    """Return the function to run before exec so that a child dies with its parent.

    The kernel kills it, however the parent ends (Linux only).
    """
    if _LIBC is None:
        return None
    libc, parent = _LIBC, os.getpid()

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before prctl took effect
            os._exit(1)

    return prepare


def ending(code: int) -> str:
    """Return an exit status in words."""
    return f"by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def rotate(log: Path) -> None:
    """Move the content of a large log to a second file; one older file is kept.

    A process may be writing to it: it appends, so it continues at the new end. What it writes
    between the copy and the truncation is lost; at most LOG_BYTES are kept of each file.
    """
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size <= LOG_BYTES:
        return
    with log.open("r+b") as written:
        # On a full disk there is no room for the older one: the log is truncated anyway.
        with suppress(OSError):
            written.seek(size - LOG_BYTES)
            written.readline()  # the rest of a partial line
            copy = written.read(LOG_BYTES)
            # The last line may be incomplete.
            log.with_suffix(".1.log").write_bytes(copy[: copy.rfind(b"\n") + 1] or copy)
        written.truncate(0)


def tail(log: Path, *, lines: int = 20) -> str:
    """Return the last lines of a log for a reader."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - 20_000, 0))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
