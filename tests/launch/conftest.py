"""Attempts in folders of a test, of which nothing is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attempts import Attempt, until

from maat.launch import control
from maat.launch.processes import end_marked


@pytest.fixture
def new_attempt(tmp_path: Path) -> Iterator[Callable[..., Attempt]]:
    """Return a function that makes attempts; at the end, kill all that is left of them."""
    made: list[Attempt] = []

    def new(script: str | None = None, **fields: Any) -> Attempt:
        if script is not None:
            fields["script"] = script
        made.append(Attempt(tmp_path / f"att_{len(made)}", **fields))
        return made[-1]

    yield new
    for attempt in made:
        for worker in attempt.workers:
            worker.kill()
            worker.wait()
        control.kill(attempt.directory)
        until(lambda attempt=attempt: not attempt.directory.is_locked())
        for pid in attempt.supervisors():
            os.kill(pid, signal.SIGKILL)
    folders = {str(attempt.folder) for attempt in made}
    end_marked(folders.__contains__, seconds=10)
