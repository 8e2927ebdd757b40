"""What a script leaves to its end still happens, however the agent ends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_runs import Run

pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from maat.agent.steps import STOPPED

pytestmark = pytest.mark.needs_torch

SCRIPT = Path(__file__).with_name("ending.py")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({}, STOPPED),
        pytest.param({"epochs": 1}, 0, marks=pytest.mark.long),
        ({"raises": True}, 1),
        pytest.param({"code": 3}, 3, marks=pytest.mark.long),
    ],
    ids=["stopped", "finished", "another error", "another code"],
)
def test_handlers_threads_children_and_buffers_come_to_their_end(
    new_run: Callable[..., Run], asked: dict[str, Any], code: int
) -> None:
    run = new_run(script=SCRIPT, asked=asked)
    assert run.attempt(1) == {"0": code}, run.logs()
    noted = (run.folder / "out.jsonl").read_text().splitlines()
    ends = [each for each in noted if each not in ("child", "thread")]
    assert ends == ["finally", "atexit after start", "atexit before start", "frozen True"]
    assert {"child", "thread"} <= set(noted)
    assert (run.folder / "diary.txt").read_text() == "not flushed, but kept"
    assert "last words" in run.logs()
