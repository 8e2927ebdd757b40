"""One process that `maat up` keeps alive: its group, its log, its back-off. Knows nothing of what the process does."""

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
STEADY_SECONDS = 30.0  # a process that lived this long starts over with the first wait
LOG_BYTES = 10_000_000

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True)
class ChildSpec:
    """What to start. `environment` is the whole of it; `inherited` are file descriptors that the process may use."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    inherited: tuple[int, ...] = ()


class Child:
    """A process in a group of its own, started again where it ends by itself."""

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
                start_new_session=True,  # Ctrl+C in the terminal reaches the supervisor alone
                preexec_fn=dies_with_parent(),  # noqa: PLW1509  (the supervisor has one thread)
            )
        self._started, self._start_at = time.monotonic(), None

    def attend(self) -> str | None:
        """Look after the process and its log: a sentence where something happened to it, None where it is well."""
        rotate(self.spec.log)
        now = time.monotonic()
        if self._start_at is not None:
            if now < self._start_at:
                return None
            self.start()
            return f"{self.spec.name} was started again (process {self.pid})"
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        self.signal(signal.SIGKILL)  # what the dead process left in its group
        self.failures = 1 if now - self._started >= STEADY_SECONDS else self.failures + 1
        wait = min(FIRST_WAIT_SECONDS * 2 ** (self.failures - 1), LONGEST_WAIT_SECONDS)
        self._start_at = now + wait
        return f"{self.spec.name} ended ({ending(code)}); it starts again in {wait:g} s. Its log: {self.spec.log}"

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group; a group that is gone is well."""
        if self._process is not None:
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                return

    def is_gone(self) -> bool:
        """Whether nothing of the group is left."""
        if self._process is None:
            return True
        self._process.poll()  # reaps it
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return True
        return False


def stop_all(children: list[Child], *, seconds: float) -> None:
    """Ask all groups to end, and end those that have not after `seconds`."""
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
    """What a process runs before exec so that the kernel kills it with its parent, however the parent ends (Linux only)."""
    if _LIBC is None:
        return None
    libc, parent = _LIBC, os.getpid()

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the line above
            os._exit(1)

    return prepare


def ending(code: int) -> str:
    """An exit status in words."""
    return f"by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def rotate(log: Path) -> None:
    """Put the content of a log aside that has grown large; one older one is kept. A process may be writing to it: it writes on at the
    beginning, for it appends. What it writes between the copy and the cut is lost; at most LOG_BYTES are kept of each.
    """
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size <= LOG_BYTES:
        return
    with log.open("r+b") as written:
        with suppress(
            OSError
        ):  # a full disk has no room for the older one: then the log is cut all the same
            written.seek(size - LOG_BYTES)
            written.readline()  # the rest of a line
            copy = written.read(LOG_BYTES)
            log.with_suffix(".1.log").write_bytes(
                copy[: copy.rfind(b"\n") + 1] or copy
            )  # the last line may be half there
        written.truncate(0)


def tail(log: Path, *, lines: int = 20) -> str:
    """The last lines of a log, for a person to read."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - 20_000, 0))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
