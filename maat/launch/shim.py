"""The supervisor of one attempt: forks its ranks, ends them together, writes down how they ended.

It belongs to nobody: it has its own session, and init as its parent. It holds the lock of the
attempt's folder as long as it lives. What it is told lies there as a file, `stop` or `kill`; a
signal only makes it look at once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from typing import NamedTuple

from maat.launch.attempt_dir import AttemptDir, Limits
from maat.launch.log_limit import keep_within
from maat.launch.processes import adopt_orphans, boot_id, children, identity
from maat.launch.rank import (
    Gate,
    fork_rank,
    rank_environment,
    read_secrets,
    set_limits,
    write_exit,
)
from maat.launch.room import full_folder

LOOK_SECONDS = 1.0
"""How often it looks for orders when nobody wakes it."""

WAKE = signal.SIGUSR1
_SIGNALS = (WAKE, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Asked(NamedTuple):
    """Why the ranks are asked to end, and until when they may take; None once they are killed.

    "told": by an order. "rank": since another rank failed. "kill": by an order, without grace.
    "timeout": they were told, and did not end in time.
    """

    why: str
    until: float | None


class Shim:
    """The ranks of one attempt, while they run."""

    def __init__(self, directory: AttemptDir) -> None:
        self._directory = directory
        self._spec = directory.spec()
        self._rank_by_pid: dict[int, int] = {}
        self._codes: dict[int, int] = {}
        self._first_failed: int | None = None
        self._asked: Asked | None = None

    def run(self) -> None:
        self._start()
        told = False
        while True:
            self._reap()
            if not self._rank_by_pid:
                break
            self._obey(told)
            self._keep_logs()
            heard = signal.sigtimedwait(_SIGNALS, self._seconds_to_wait())
            told = heard is not None and heard.si_signo == signal.SIGTERM
        swept = _sweep()
        self._keep_logs()
        asked = None if self._asked is None else self._asked.why
        self._directory.write(
            "exit.json",
            {
                "codes": dict(sorted(self._codes.items())),
                "first_failed": self._first_failed,
                "asked": asked,
                "lost": (self._directory.text("kill") or None) if asked == "kill" else None,
                "full": self._full_folder(),
                "swept": swept,
                "at": time.time(),
            },
        )

    def _keep_logs(self) -> None:
        for place in self._spec.places():
            keep_within(self._directory.log(place.rank), self._spec.limits.log_bytes)

    def _full_folder(self) -> str | None:
        """Return where a rank that failed had no room to write; None if it had."""
        if not any(self._codes.values()):
            return None
        return full_folder((self._directory.path, self._spec.checkpoint_directory))

    def _start(self) -> None:
        gate, secrets = Gate(), read_secrets(self._directory)
        for place in self._spec.places():
            environment = rank_environment(
                self._directory, self._spec, place, around=os.environ, secrets=secrets
            )
            pid = fork_rank(self._directory, self._spec, place, environment, gate)
            self._rank_by_pid[pid] = place.rank
        self._directory.remove("secrets.json")
        self._directory.write(
            "started.json",
            {
                "boot_id": boot_id(),
                "shim": identity(os.getpid()),
                "ranks": {rank: identity(pid) for pid, rank in self._rank_by_pid.items()},
                "at": time.time(),
            },
        )
        gate.open(len(self._rank_by_pid))

    def _reap(self) -> None:
        """Note what has ended."""
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    break
                rank = self._rank_by_pid.pop(pid, None)
                if rank is not None:  # else an orphan
                    self._ended(rank, write_exit(self._directory, rank, status, usage))

    def _ended(self, rank: int, code: int) -> None:
        """Take the others along with the first rank that fails."""
        self._codes[rank] = code
        if code != 0 and self._asked is None:
            self._first_failed = rank
            if self._rank_by_pid:
                self._ask("rank")

    def _obey(self, told: bool) -> None:
        asked = self._asked
        if self._directory.has("kill"):
            if asked is None or asked.why != "kill":
                self._kill("kill")
        elif asked is None:
            if told or self._directory.has("stop"):
                self._ask("told")
        elif asked.until is not None and time.monotonic() >= asked.until:
            self._kill("timeout" if asked.why == "told" else asked.why)

    def _ask(self, why: str) -> None:
        """Ask the ranks themselves: their children are theirs to end."""
        for pid in self._rank_by_pid:
            os.kill(pid, signal.SIGTERM)
        self._asked = Asked(why, time.monotonic() + self._spec.stop_seconds)

    def _kill(self, why: str) -> None:
        for pid in self._rank_by_pid:
            os.kill(pid, signal.SIGKILL)
            with suppress(ProcessLookupError):  # it has left its group
                os.killpg(pid, signal.SIGKILL)
        self._asked = Asked(why, None)

    def _seconds_to_wait(self) -> float:
        until = None if self._asked is None else self._asked.until
        left = LOOK_SECONDS if until is None else until - time.monotonic()
        return min(max(left, 0.0), LOOK_SECONDS)


def _sweep() -> int:
    """Kill what the ranks have left behind; return how many processes that were.

    Every orphan is a child of the shim. So nothing is left when it has no child.
    """
    killed = set()
    with suppress(ChildProcessError):
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for pid in children(os.getpid()):
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
                time.sleep(0.005)
    return len(killed)


def main() -> None:
    """Run as `shim DIR LOCK`. LOCK: the descriptor of the folder's lock, held by the starter."""
    directory, lock = AttemptDir(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(lock, False)
    if os.fork():
        os._exit(0)  # the other one is init's child, and has no way to a terminal
    set_limits(Limits(open_files=None))
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    adopt_orphans()
    Shim(directory).run()
