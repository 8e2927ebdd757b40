"""What a worker does with attempts on this machine: starts, stops, kills and concludes them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from maat.launch.attempt_dir import AttemptDir, Spec, Standing
from maat.launch.processes import Identity, boot_id, check_linux, end_marked, send
from maat.launch.rank import inherited
from maat.launch.room import full_folder
from maat.launch.shim import WAKE

SWEEP_SECONDS = 2.0
"""How long it is waited for killed processes to be gone. The kernel takes milliseconds."""

_RUN = "import sys; sys.path.append(sys.argv.pop(1)); from maat.launch.shim import main; main()"
_PACKAGES = str(Path(__file__).resolve().parents[2])


class StartFailed(Exception):
    """The supervisor could not be started. The text says why."""


def start(directory: AttemptDir, spec: Spec, *, token: str, secrets: Mapping[str, str]) -> bool:
    """Start an attempt. Repeated and simultaneous calls start it once.

    Returns False if somebody else has started it, or is about to. What is half-written is written
    again. Raises NeedsLinux and StartFailed.
    """
    check_linux()
    os.makedirs(directory.path, exist_ok=True)
    os.chmod(directory.path, 0o700)
    lock = directory.take_lock()
    if lock is None:
        return False
    try:
        if directory.has("exit.json") or directory.has("started.json"):
            return False
        directory.keep_room(len(spec.places()))
        directory.write_text("token", token)
        directory.write("secrets.json", secrets)
        directory.write("spec.json", spec.as_json())
        _start_shim(directory, lock)
        return True
    finally:
        os.close(lock)  # the shim has it


def stop(directory: AttemptDir) -> None:
    """Ask the ranks to save and end."""
    _order(directory, "stop", "")


def kill(directory: AttemptDir, *, lost: str = "") -> None:
    """End the ranks at once. `lost`: what they lost, if nobody wanted their end."""
    if lost or not directory.has("kill"):
        _order(directory, "kill", lost)


def conclude_lost(directories: Sequence[AttemptDir]) -> None:
    """End what is left of attempts whose supervisor is gone, and write how they ended.

    An attempt of which a process does not go yet stays as it is.
    """
    taken = [(each, lock) for each in directories if (lock := each.take_lock()) is not None]
    try:
        lost = {each.path: each for each, _ in taken if each.standing_unlocked() is Standing.LOST}
        killed, left = end_marked(lost.__contains__, seconds=SWEEP_SECONDS)
        for path, each in lost.items():
            if path not in left:
                with suppress(OSError):  # no room: it stays as it is until there is some
                    _write_loss(each, swept=killed.count(path))
    finally:
        for _, lock in taken:
            os.close(lock)


def forget(directory: AttemptDir) -> None:
    """Remove what only a running attempt needs, and see that it is never started again.

    Does nothing to an attempt that runs.
    """
    if not os.path.isdir(directory.path):
        return
    lock = directory.take_lock()
    if lock is None:
        return
    try:
        standing = directory.standing_unlocked()
        if standing is Standing.LOST:
            return
        if standing is Standing.ABSENT:
            _write_exit(directory, lost="It was never started.", swept=0)
        directory.clean()
    finally:
        os.close(lock)


def _write_loss(directory: AttemptDir, *, swept: int) -> None:
    started = directory.read("started.json") or {}
    codes = directory.exit_codes()
    done = len(codes) == len(started.get("ranks", ())) and not any(codes.values())
    if done:  # all that was missing is exit.json
        lost = None
    elif started.get("boot_id", boot_id()) != boot_id():
        lost = "The machine was restarted."
    else:
        lost = directory.text("kill") or "Its supervisor was killed."
    _write_exit(directory, lost=lost, swept=swept)


def _write_exit(directory: AttemptDir, *, lost: str | None, swept: int) -> None:
    directory.write(
        "exit.json",
        {
            "codes": directory.exit_codes(),
            "first_failed": None,
            "asked": None,
            "lost": lost,
            "full": None if lost is None else full_folder((directory.path,)),
            "swept": swept,
            "at": time.time(),
        },
    )


def _order(directory: AttemptDir, name: str, text: str) -> None:
    if not os.path.isdir(directory.path) or directory.has("exit.json"):
        return
    directory.write_text(name, text)
    # The shim looks for orders once it has written started.json: before that, none must wake it.
    shim = (directory.read("started.json") or {}).get("shim")
    if shim is not None and directory.is_locked():
        send(Identity(*shim), WAKE)


def _surroundings() -> dict[str, str]:
    """Return the environment of a supervisor: its ranks find the Python that runs Maat first.

    So `python train.py` has the packages that Maat was installed beside, torch among them, though
    nobody has activated a virtual environment.
    """
    found = inherited(os.environ)
    path = found.get("PATH", os.defpath)
    folder = os.path.dirname(sys.executable)
    first = "" if path.split(os.pathsep)[0] == folder else folder + os.pathsep
    return {**found, "PATH": first + path}


def _start_shim(directory: AttemptDir, lock: int) -> None:
    """Start the supervisor with the lock in its hands; return once it is on its own."""
    log = os.open(directory.file("shim.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        # The system's libraries only: neither the folder of a script nor site-packages can put
        # something in their place, and nothing is imported that is not needed.
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _RUN, _PACKAGES, directory.path, str(lock)],
            env=_surroundings(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock,),
            start_new_session=True,
            check=False,
        )
    except OSError as error:
        raise StartFailed(f"{sys.executable} cannot be run: {error.strerror}.") from error
    finally:
        os.close(log)
    if done.returncode != 0:
        last = directory.text("shim.log").strip().splitlines()[-1:] or ["it says nothing"]
        raise StartFailed(f"The supervisor of {directory.path} did not start: {last[0]}")
