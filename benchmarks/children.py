"""Child processes that answer line by line and can be killed. Not responsible for what they compute."""

from __future__ import annotations

import json
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
    """JSON lines that came before the end, and seconds after which the child was killed, None where it was not."""

    lines: list[dict[str, float | str]]
    killed_after: float | None


def ask_child(module: str, arguments: Sequence[str], *, expected: int, seconds: float) -> Answers:
    """Run `python -m module`, and kill it when its next line takes longer than `seconds`."""
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    arriving: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, arriving), daemon=True).start()
    lines: list[dict[str, float | str]] = []
    try:
        while len(lines) < expected:
            line = arriving.get(timeout=seconds + (0 if lines else START_SECONDS))
            if line is None:
                raise RuntimeError(f"{module} {arguments[0]} ended after {len(lines)} of {expected} answers")
            lines.append(json.loads(line))
    except queue.Empty:
        return Answers(lines, seconds)
    finally:
        process.kill()
        process.wait()
    return Answers(lines, None)


def _read(stream: IO[str], arriving: queue.Queue[str | None]) -> None:
    for line in stream:
        arriving.put(line)
    arriving.put(None)
