"""Child processes that answer line by line and can be killed.

Does not compute anything itself.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

START_SECONDS = 60.0  # imports may take that long on a busy machine


@dataclass(frozen=True)
class Answers:
    """The JSON lines that arrived.

    If the child was killed: the wall seconds it was given, and the CPU seconds that it spent on the
    missing line.
    """

    lines: list[dict[str, float | str]]
    killed_after: float | None = None
    spent_without_answer: float | None = None


def ask_child(module: str, arguments: Sequence[str], *, expected: int, seconds: float) -> Answers:
    """Run `python -m module`; kill it if its next line takes longer than `seconds`.

    Its first line says that it is ready; every line has `cpu`, the CPU seconds of the child so far.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    arriving: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, arriving), daemon=True).start()
    lines: list[dict[str, float | str]] = []
    in_time = True
    try:
        while in_time and len(lines) < expected + 1:
            line = arriving.get(timeout=seconds if lines else START_SECONDS)
            if line is None:
                raise RuntimeError(
                    f"{module} {arguments[0]} ended after {max(len(lines) - 1, 0)} of {expected} "
                    "answers"
                )
            lines.append(json.loads(line))
    except queue.Empty:
        in_time = False
    finally:
        process.kill()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if in_time:
        return Answers(lines[1:])
    if not lines:
        raise RuntimeError(f"{module} {arguments[0]} was not ready after {START_SECONDS:.0f} s")
    return Answers(lines[1:], seconds, usage.ru_utime + usage.ru_stime - float(lines[-1]["cpu"]))


def _read(stream: IO[str], arriving: queue.Queue[str | None]) -> None:
    for line in stream:
        arriving.put(line)
    arriving.put(None)
