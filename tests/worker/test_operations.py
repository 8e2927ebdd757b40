"""A heartbeat beside long work."""

from __future__ import annotations

import threading

import pytest

from worker import work_queue
from worker.work_queue import beating


def test_a_heartbeat_that_fails_once_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(work_queue, "HEARTBEAT_SECONDS", 0.01)
    beats, beat_again = [0], threading.Event()

    def beat() -> None:
        beats[0] += 1
        if beats[0] == 1:
            raise OSError("database is locked")
        beat_again.set()

    with beating(beat):
        assert beat_again.wait(60)

    assert "A heartbeat failed" in caplog.text
