"""Starts the processes of a run that is measured, on this machine or by Slurm, and ends them."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maat.launch import control
from maat.launch.attempt_dir import AttemptDir, Spec, Standing
from maat.launch.processes import NeedsLinux
from maat.scheduling.errors import ParameterError

STOP_SECONDS = 30.0
"""Time of a process from SIGTERM until it is killed."""

_LOOK_SECONDS = 0.05
_SHOWN_CHARACTERS = 300  # of what a run wrote last, in an error
_TOLD = {0, -signal.SIGTERM, 128 + signal.SIGTERM}  # exit codes of a process that was told to end
_NOT_PASSED_ON = ("MAAT_", "SLURM_", "CUDA")  # variables of the process that starts it
_SRUN_LOG = "srun.log"


class Launcher(Protocol):
    """Starts runs.

    `running` is entered for one run, gives a function that says whether it is over, and ends it.
    `folder`: in which the folder of a run must be; None: anywhere on this machine.
    """

    @property
    def folder(self) -> Path | None: ...
    def running(
        self, attempt: AttemptDir, spec: Spec
    ) -> AbstractContextManager[Callable[[], bool]]: ...


@dataclass(frozen=True)
class LocalLauncher:
    """Every node of a run is this machine: nodes differ for emulated devices alone."""

    folder: Path | None = None

    @contextmanager
    def running(self, attempt: AttemptDir, spec: Spec) -> Iterator[Callable[[], bool]]:
        """Raises ParameterError where processes cannot be started."""
        try:
            control.start(attempt, spec, token="", secrets=_variables(os.environ))
        except (NeedsLinux, control.StartFailed) as error:
            raise _not_started(str(error)) from None
        try:
            yield lambda: not attempt.is_locked()
        finally:
            control.stop(attempt)
            if not _waits(lambda: not attempt.is_locked(), STOP_SECONDS):
                control.kill(attempt)
                _waits(lambda: not attempt.is_locked(), STOP_SECONDS)
            if attempt.standing() is Standing.LOST:
                control.conclude_lost([attempt])


@dataclass(frozen=True)
class SlurmLauncher:
    """Nodes are those that srun gives. `folder`: all nodes see it. `options`: more of srun's."""

    folder: Path
    options: tuple[str, ...] = ()

    @contextmanager
    def running(self, attempt: AttemptDir, spec: Spec) -> Iterator[Callable[[], bool]]:
        """Raises ParameterError if there is no srun."""
        attempt.write("secrets.json", _variables(os.environ))
        attempt.write("spec.json", spec.as_json())
        with open(attempt.file(_SRUN_LOG), "wb") as log:
            try:
                process = subprocess.Popen(
                    srun_words(spec, attempt.path, self.options),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                raise _not_started(f"srun: {error.strerror}") from None
        try:
            yield lambda: process.poll() is not None
        finally:
            attempt.write_text("stop", "")
            for order in (None, signal.SIGTERM, signal.SIGKILL):
                if process.poll() is None and order is not None:
                    process.send_signal(order)
                if _waits(lambda: process.poll() is not None, STOP_SECONDS):
                    break


def srun_words(spec: Spec, folder: str, options: tuple[str, ...]) -> list[str]:
    """Return the command by which Slurm starts all ranks of a spec; all nodes give the same."""
    (each,) = {len(gpus) for gpus in spec.gpus_by_node.values()}
    kind = f"gpu:{spec.gpu_type}" if spec.gpu_type else "gpu"
    return [
        "srun",
        f"--nodes={len(spec.gpus_by_node)}",
        f"--ntasks-per-node={each}",
        f"--gres={kind}:{each}",
        f"--job-name=maat-measure-{spec.job_id}",
        f"--chdir={folder}",
        *options,
        "--export=ALL",
        "--mpi=none",
        "--kill-on-bad-exit=1",
        "--wait=0",
        *(sys.executable, "-P", "-m", "maat.launch.rank", "."),
    ]


def why_it_failed(attempt: AttemptDir) -> str:
    """Return a sentence on the first rank that failed, or on Slurm; "" if none did."""
    for rank, ended in attempt.exits().items():
        if ended["code"] not in _TOLD:
            wrote = _last_line(attempt.text(f"rank-{rank}.log"))
            return f"rank {rank} ended with exit code {ended['code']}.{wrote}"
    if not attempt.exits() and attempt.has(_SRUN_LOG):
        return f"Slurm started no process.{_last_line(attempt.text(_SRUN_LOG))}"
    return ""


def words_of(text: str, *, field: str) -> tuple[str, ...]:
    """Return the words of a line, as a shell reads it. Raises ParameterError."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ParameterError(
            f"could not be read by a shell: {error}",
            field=field,
            value=text,
            remedy="Close every quotation.",
        ) from None


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: each for name, each in environ.items() if not name.startswith(_NOT_PASSED_ON)}


def _waits(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until something holds; return False if it does not in this time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f" It wrote last: {lines[-1][:_SHOWN_CHARACTERS]!r}." if lines else ""


def _not_started(why: str) -> ParameterError:
    remedy = "Run it on Linux, and with --slurm where Slurm is installed."
    return ParameterError(f"cannot be started: {why}", field="command", remedy=remedy)
