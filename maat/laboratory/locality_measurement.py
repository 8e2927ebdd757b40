"""Measures what a step of a command costs across nodes: the same GPUs on one node, then on several.

As PAL estimates L_across (section IV-D), by two runs. A script with maat.agent times its own steps,
and ends by itself; of another, each line of rank 0's log that is a step is timed here.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maat.laboratory.measured_runs import STOP_SECONDS, Launcher, why_it_failed
from maat.laboratory.pair_measurement import LEAST_STEPS, MeasuringFailed
from maat.launch.attempt_dir import AttemptDir, Limits, Spec
from maat.models.locality_table import MeasuredSteps
from maat.scheduling.locality import bounded_penalty

START_SECONDS = 900.0
"""How long a run may take until its first step: it loads its data, and waits for its GPUs."""

_LOOK_SECONDS = 0.005  # a step line counts from when it is seen
_MOST_LINES = 100_000


@dataclass(frozen=True)
class SpreadCommand:
    """A command that is measured on `gpu_count` GPUs of one type, one process each.

    `model`: what it is called in the table, as jobs are by their model. `per_gpu_batch_size`: of a
    script with maat.agent; another keeps its own. `step_line`: lines that it finds are steps; None:
    the script says itself what its steps take. `warm_up_steps`: lines that do not count.
    """

    model: str
    argv: tuple[str, ...]
    cwd: str
    gpu_type: str
    gpu_count: int
    per_gpu_batch_size: int
    env: Mapping[str, str] = field(default_factory=dict)
    step_line: re.Pattern[str] | None = None
    warm_up_steps: int = 3


@dataclass(frozen=True)
class MeanStep:
    """The mean time of so many steps, seconds."""

    seconds: float
    steps: int


@dataclass(frozen=True)
class MeasuredSpread:
    """The mean steps of a command on one node, and on `node_count` nodes."""

    command: SpreadCommand
    node_count: int
    within: MeanStep
    across: MeanStep

    @property
    def row(self) -> MeasuredSteps:
        """Return it as a row of a table of locality."""
        command = self.command
        return MeasuredSteps(
            command.model,
            command.gpu_type,
            command.gpu_count,
            command.per_gpu_batch_size,
            self.node_count,
            within_seconds=round(self.within.seconds, 6),
            across_seconds=round(self.across.seconds, 6),
            steps=min(self.within.steps, self.across.steps),
        )

    @property
    def penalty(self) -> float:
        """Return PAL's L_across: at least 1, as less is noise."""
        return bounded_penalty(self.across.seconds / self.within.seconds)


def measure_spread(
    command: SpreadCommand, launcher: Launcher, *, seconds: float, node_count: int = 2
) -> MeasuredSpread:
    """Run a command on one node, then on `node_count`, each time for so many seconds of steps.

    Raises:
        MeasuringFailed: It failed, or did not make LEAST_STEPS steps in a run.
    """
    within, across = (_mean_step(command, launcher, seconds, count) for count in (1, node_count))
    return MeasuredSpread(command, node_count, within, across)


def _mean_step(
    command: SpreadCommand, launcher: Launcher, seconds: float, node_count: int
) -> MeanStep:
    with tempfile.TemporaryDirectory(prefix=".maat-measure-", dir=launcher.folder) as folder:
        attempt = AttemptDir(folder)
        with launcher.running(attempt, _spec(command, folder, seconds, node_count)) as is_over:
            lines = list(_step_times(attempt, is_over, command, seconds))
        found = _reported(attempt) if command.step_line is None else _of_lines(lines, command)
        if found is None or found.steps < LEAST_STEPS:
            raise MeasuringFailed(_too_few(attempt, command, found, node_count))
        return found


def _spec(command: SpreadCommand, folder: str, seconds: float, node_count: int) -> Spec:
    share = command.gpu_count // node_count
    nodes = {f"node-{number}": tuple(range(share)) for number in range(node_count)}
    profile = {"seconds": seconds, "batch_sizes": [command.per_gpu_batch_size]}
    return Spec(
        attempt_id=Path(folder).name,
        job_id=command.model,
        number=1,
        argv=command.argv,
        cwd=command.cwd,
        env=dict(command.env),
        secret_names=(),
        gpu_type=command.gpu_type,
        gpus_by_node=nodes,
        gpus_per_replica=1,
        cuda_devices=None,
        threads=1,
        stop_seconds=STOP_SECONDS,
        limits=Limits(),
        plan=None,
        checkpoint_directory=str(Path(folder) / "checkpoints"),
        profile=profile if command.step_line is None else None,
    )


def _step_times(
    attempt: AttemptDir, is_over: Callable[[], bool], command: SpreadCommand, seconds: float
) -> Iterator[float]:
    """Yield when each step line was seen, until the time is over or the command has ended."""
    until, seen = time.monotonic() + START_SECONDS + seconds, 0
    log, warm = _Lines(Path(attempt.log(0)), command.step_line), False
    while (now := time.monotonic()) < until and seen < _MOST_LINES:
        ended = is_over()
        for _ in range(log.steps()):
            seen += 1
            yield now
        if not warm and seen > command.warm_up_steps:
            warm, until = True, now + seconds
        if ended:
            return
        time.sleep(_LOOK_SECONDS)


class _Lines:
    """The lines of a log, as it grows."""

    def __init__(self, path: Path, step_line: re.Pattern[str] | None) -> None:
        self._path, self._step_line = path, step_line
        self._at, self._partial = 0, b""

    def steps(self) -> int:
        """Return how many steps were written since the last call; 0 where no line is one."""
        if self._step_line is None or not self._path.exists():
            return 0
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        *lines, self._partial = (self._partial + data).split(b"\n")
        find = self._step_line.search
        return sum(find(line.decode(errors="replace")) is not None for line in lines)


def _of_lines(times: list[float], command: SpreadCommand) -> MeanStep | None:
    counted = times[command.warm_up_steps :]
    if len(counted) < 2:
        return None
    return MeanStep((counted[-1] - counted[0]) / (len(counted) - 1), len(counted) - 1)


def _reported(attempt: AttemptDir) -> MeanStep | None:
    """Return the mean over all steps of the script's own report, if it left one."""
    passes: list[Mapping[str, Any]] = (attempt.read("report.json") or {}).get("passes") or []
    steps = sum(one["steps"] for one in passes)
    if not steps:
        return None
    total = sum(one["steps"] * one["step_seconds"]["mean"] for one in passes)
    return MeanStep(total / steps, steps)


def _too_few(
    attempt: AttemptDir, command: SpreadCommand, found: MeanStep | None, node_count: int
) -> str:
    where = f"on {node_count} node{'s' * (node_count > 1)}"
    if failure := why_it_failed(attempt):
        return f"{command.model} failed {where}: {failure} Run it by itself, and correct it."
    if command.step_line is None and found is None:
        return (
            f"{command.model} said {where} of no step what it takes: its script has no maat.agent. "
            "Say which lines of its output are steps (--step-line)."
        )
    return (
        f"{command.model} made {0 if found is None else found.steps} steps that count {where}, and "
        f"{LEAST_STEPS} are needed: measure for longer, or say which lines are steps."
    )
