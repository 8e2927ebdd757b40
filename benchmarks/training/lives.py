"""What Maat adds to the start and to the stop of a training script, on the whole of `maat up`.

A start: from the round's order until the script's first step is done, against the script run alone.
A stop: from the moment that a round asks for it until the GPUs are free, without the save.
"""

from __future__ import annotations

import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.service.real_server import free_port
from benchmarks.table import Cell, Figures
from benchmarks.training.moments import BEGUN, FIRST_STEP, LEFT, MOMENTS, SAVE, SAVED
from maat.client import ApiError, Client
from maat.demo.service import service

TIMES = 5
CHILD = "benchmarks.training.child"  # named: to import it takes PyTorch
_PATIENCE_SECONDS = 120.0
_FOLDER = Path(__file__).resolve().parents[2]
Found = TypeVar("Found")

STARTS = {
    "run": "run",
    "alone": "alone: process to first step s",
    "process": "order to process s",
    "first_step": "process to first step s",
    "more": "more than alone s",
}
STOPS = {
    "run": "run",
    "heard": "asked to save s",
    "save": "save s",
    "goodbye": "goodbye s",
    "exit": "Python's end s",
    "free": "ended to free s",
    "more": "asked to free, without the save s",
    "maat": "of it Maat s",
}
START_NOTES = [
    "SQLite, rounds every 2 s, one CPU job at a time: a training with the agent, of at most 20 "
    "steps a second. Wall time. alone: the script without Maat, just before. order: the round "
    "has written it.",
]
STOP_NOTES = [
    "The same runs, cancelled. asked: the round has written that it is to end. save: torch.save "
    "and the disk, as the script tells. goodbye: the agent's last report. Python's end: PyTorch "
    "is unloaded, and the supervisor writes how it ended. free: other jobs may have its GPUs.",
]


@dataclass(frozen=True)
class _Life:
    """The moments of one run, and how long its start took without Maat."""

    alone: float
    ordered: float
    begun: float
    first_step: float
    asked: float
    save: float
    saved: float
    left: float
    ended: float
    free: float


def measure() -> Sequence[Figures]:
    with (
        tempfile.TemporaryDirectory(prefix="maat-bench-", ignore_cleanup_errors=True) as folder,
        service(Path(folder), free_port()) as running,
        Client(running.url) as maat,
    ):
        made = {"name": "here", "executor": "local", "shape": "cpu=1x2", "policy": "fifo"}
        maat.create_cluster({**made, "round_seconds": 2.0})
        lives = [_life(maat, number, Path(folder)) for number in range(1, TIMES + 1)]
    starts = [
        {
            "run": number,
            "alone": one.alone,
            "process": one.begun - one.ordered,
            "first_step": one.first_step - one.begun,
            "more": one.first_step - one.ordered - one.alone,
        }
        for number, one in enumerate(lives, 1)
    ]
    stops = [
        {
            "run": number,
            "heard": one.save - one.asked,
            "save": one.saved - one.save,
            "goodbye": one.left - one.saved,
            "exit": one.ended - one.left,
            "free": one.free - one.ended,
            "more": one.free - one.asked - (one.saved - one.save),
            "maat": one.free - one.asked - (one.saved - one.save) - (one.ended - one.left),
        }
        for number, one in enumerate(lives, 1)
    ]
    return [
        Figures(
            "training_start",
            "A script's start under Maat",
            STARTS,
            [*starts, _median(starts)],
            START_NOTES,
        ),
        Figures(
            "training_stop",
            "A script's stop under Maat",
            STOPS,
            [*stops, _median(stops)],
            STOP_NOTES,
        ),
    ]


def _median(rows: Sequence[dict[str, Any]]) -> dict[str, Cell]:
    names = [name for name in rows[0] if name != "run"]
    return {"run": "median", **{n: statistics.median(row[n] for row in rows) for n in names}}


def _life(maat: Client, number: int, folder: Path) -> _Life:
    alone = _alone()
    run = {
        "argv": [sys.executable, "-m", CHILD],
        "cwd": str(_FOLDER),
        "env": {"OMP_NUM_THREADS": "1"},
        "profile": False,
        "stop_seconds": 60.0,
    }
    job = maat.submit_job(
        {
            "name": f"run-{number}",
            "model": "small",
            "adaptivity": "adaptive",
            "batch_size": 64,
            "max_batch_size": 256,
            "max_gpus": 1,
            "cluster_id": "here",
            "run": run,
        }
    )
    _until(lambda: _moments_so_far(maat, job["id"]).get(FIRST_STEP))
    time.sleep(1.0)
    maat.cancel_job(job["id"])
    over = _until(lambda: _ended(maat, job["id"]))
    told = _moments_so_far(maat, job["id"])
    (exit_file,) = folder.glob(f"training/*/attempts/{over['id']}/exit.json")
    return _Life(
        alone=alone,
        ordered=_moment(over["ordered_at"]),
        begun=told[BEGUN],
        first_step=told[FIRST_STEP],
        asked=_moment(over["stop_asked_at"]),
        save=told[SAVE],
        saved=told[SAVED],
        left=told[LEFT],
        ended=float(json.loads(exit_file.read_text())["at"]),
        free=_moment(over["ended_at"]),
    )


def _alone() -> float:
    """Return how long the script takes until its first step without Maat."""
    text = ""
    with _child() as process:
        assert process.stdout is not None
        for line in process.stdout:
            text += line
            told = _moments_in(text)
            if FIRST_STEP in told:
                return told[FIRST_STEP] - told[BEGUN]
    raise RuntimeError(f"the script ended before its first step: {text}")


@contextlib.contextmanager
def _child() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        ["env", "OMP_NUM_THREADS=1", sys.executable, "-m", CHILD],
        stdout=subprocess.PIPE,
        text=True,
        cwd=_FOLDER,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _moments_so_far(maat: Client, job_id: str) -> dict[str, float]:
    """Return the moments that the script has told so far."""
    try:
        return _moments_in(maat.log(job_id, 1, 0)["text"])
    except ApiError as error:
        if error.status != 404:  # it has not begun to write
            raise
        return {}


def _moments_in(text: str) -> dict[str, float]:
    said = (line.rpartition(" ") for line in text.splitlines())
    return {what: float(number) for what, _, number in said if what in MOMENTS}


def _ended(maat: Client, job_id: str) -> Any:
    (attempt,) = maat.attempts(job_id)
    return attempt if attempt["state"] == "ended" else None


def _moment(shown: str | None) -> float:
    if shown is None:
        raise RuntimeError("the attempt's life has a gap")
    return datetime.fromisoformat(shown).timestamp()


def _until(found: Callable[[], Found]) -> Found:
    """Return what is found once there is something."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if there := found():
            return there
        time.sleep(0.1)
    raise RuntimeError("the script's run got stuck")
