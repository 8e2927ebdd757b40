"""Measures how much two commands slow each other: alone, then together, in processes of their own.

A step is a line of output: of two lines in a row, the time between them is that of a step (or of as
many as the command prints a line for). The slowdown is the median time together over that alone,
so that a checkpoint or a pause of the machine counts little.
"""

from __future__ import annotations

import itertools
import os
import re
import selectors
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, cast

from maat.scheduling.errors import MaatError, ParameterError

LEAST_STEPS = 10  # of which a median is taken
_STOP_SECONDS = 10.0  # from SIGTERM until SIGKILL
_EXIT_SECONDS = 2.0  # from the end of its output until a command's exit
_SHOWN_CHARACTERS = 300  # of what a command wrote last, in an error


class MeasuringFailed(MaatError):
    """A command could not be measured. The text says which, and what it wrote."""


@dataclass(frozen=True)
class MeasuredCommand:
    """A command of which each line of output that `step_line` finds is a step.

    `name`: what it is called in the table, as jobs are by their model.
    """

    name: str
    argv: tuple[str, ...]
    step_line: re.Pattern[str] = field(default_factory=lambda: re.compile(""))


@dataclass(frozen=True)
class Timing:
    """Seconds of the steps of one command in one run."""

    steps: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.steps)


@dataclass(frozen=True)
class PairSlowdown:
    """What `victim` loses beside `partner`."""

    victim: str
    partner: str
    alone: Timing
    together: Timing

    @property
    def slowdown(self) -> float:
        """Return the step time together over that alone; at least 1: less is noise."""
        return max(self.together.median / self.alone.median, 1.0)


def measure_pair(
    first: MeasuredCommand,
    second: MeasuredCommand,
    *,
    seconds: float,
    warm_up_steps: int = 3,
    env: Mapping[str, str] | None = None,
) -> tuple[PairSlowdown, PairSlowdown]:
    """Run both commands alone, then together, each time for so long; return both slowdowns.

    `warm_up_steps`: of every process, which do not count; `env`: more variables of both. The time
    together counts from when both have warmed up until one ends.

    Raises:
        ParameterError: A command cannot be started.
        MeasuringFailed: A command failed, or did not make LEAST_STEPS steps in a run.
    """
    both = (first, second)
    alone = [_timed((one,), seconds, warm_up_steps, env)[0] for one in both]
    together = _timed(both, seconds, warm_up_steps, env)
    names = ((first.name, second.name), (second.name, first.name))
    found = [
        PairSlowdown(*pair, *timings) for pair, *timings in zip(names, alone, together, strict=True)
    ]
    return found[0], found[1]


@dataclass
class _Run:
    """A running command: when each of its steps was seen, and what it wrote last."""

    command: MeasuredCommand
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    steps: list[float] = field(default_factory=list)
    last: str = ""
    partial: bytes = b""

    def read(self, now: float) -> bool:
        """Take in what was written; return False once there is no more."""
        data = os.read(self.output.fileno(), 65_536)
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            self.last = text.strip() or self.last
            if self.command.step_line.search(text):
                self.steps.append(now)
        if not data and self.partial:
            self.last = self.partial.decode(errors="replace").strip() or self.last
        return bool(data)

    @property
    def wrote(self) -> str:
        """Return a sentence with the last line that it wrote; "" if it wrote none."""
        return f" It wrote last: {self.last[:_SHOWN_CHARACTERS]!r}." if self.last else ""

    def failure(self) -> str:
        """Return how a command ended that failed of itself; "" if it did not."""
        with suppress(subprocess.TimeoutExpired):
            code = self.process.wait(_EXIT_SECONDS)
            if code > 0:
                return f"with exit code {code}"
            if code < 0:
                return f"by signal {-code} ({signal.strsignal(-code) or 'unknown'})"
        return ""


def _timed(
    commands: Sequence[MeasuredCommand],
    seconds: float,
    warm_up_steps: int,
    env: Mapping[str, str] | None,
) -> list[Timing]:
    """Run these commands beside each other, and return the times of their steps."""
    with ExitStack() as stack:
        runs = [stack.enter_context(_running(one, env)) for one in commands]
        ended, first_ended = _watch(runs, seconds, warm_up_steps)
        if first_ended is not None and (failure := first_ended.failure()):
            name = first_ended.command.name
            raise MeasuringFailed(
                f"{name} failed: it ended {failure} while it was measured.{first_ended.wrote} "
                "Run it by itself, and correct it."
            )
        warm = [run.steps[warm_up_steps : warm_up_steps + 1] for run in runs]
        begin = max((times[0] for times in warm if times), default=ended)
        if not all(warm):
            begin = ended
        return [_timing(run, begin, ended) for run in runs]


def _watch(runs: Sequence[_Run], seconds: float, warm_up_steps: int) -> tuple[float, _Run | None]:
    """Read what the commands write until the time is over or one ends.

    Returns when that was, and the command that ended. The time counts from when all have
    warmed up.
    """
    with selectors.DefaultSelector() as waiting:
        for run in runs:
            waiting.register(run.output, selectors.EVENT_READ, run)
        until = time.monotonic() + seconds
        is_warm = False
        while (now := time.monotonic()) < until:
            for key, _ in waiting.select(min(until - now, 0.5)):
                if not key.data.read(time.monotonic()):
                    return time.monotonic(), key.data
            if not is_warm and all(len(run.steps) > warm_up_steps for run in runs):
                is_warm, until = True, time.monotonic() + seconds
        return now, None


def _timing(run: _Run, begin: float, ended: float) -> Timing:
    """Return the times of the steps from `begin` on. Raises MeasuringFailed if they are too few."""
    times = [at for at in run.steps if begin <= at <= ended]
    steps = tuple(after - before for before, after in itertools.pairwise(times))
    if len(steps) < LEAST_STEPS or statistics.median(steps) <= 0:
        raise MeasuringFailed(
            f"{run.command.name} made {len(steps)} steps that count, and {LEAST_STEPS} are needed: "
            f"measure for longer, or say which lines are steps.{run.wrote}"
        )
    return Timing(steps)


@contextmanager
def _running(command: MeasuredCommand, env: Mapping[str, str] | None) -> Iterator[_Run]:
    """Start a command in a group of its own, and end the group in the end."""
    around = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
    try:
        process = subprocess.Popen(
            command.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=around,
            start_new_session=True,
        )
    except OSError as error:
        raise ParameterError(
            f"cannot be started: {error.strerror}",
            field="command",
            value=command.argv[0],
            remedy="Name a programme that this shell finds.",
        ) from None
    with process, cast("IO[bytes]", process.stdout) as output:
        try:
            yield _Run(command, process, output)
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that it has started; kill what does not end."""
    for order, patience in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, order)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
