"""The beat's scheduler, with a sign of life.

As a program it reports by its exit code whether the beat of this machine is alive.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from celery import beat
from celery.schedules import schedule

from backend.settings import get_settings

STALE_SECONDS = 30.0


_BEGAN, _BEGAN_AT = datetime.now(UTC), time.monotonic()


def steady_now() -> datetime:
    """Return the time by which messages are due.

    It advances evenly even when the machine's clock is set, so that no message is delayed.
    """
    return _BEGAN + timedelta(seconds=time.monotonic() - _BEGAN_AT)


def every(seconds: float) -> schedule:
    return schedule(timedelta(seconds=seconds), nowfun=steady_now)


class BeatScheduler(beat.Scheduler):  # type: ignore[misc]  # Celery has no types
    """Keeps its times in memory: after a restart everything is due at once."""

    def tick(self, *args: Any, **kwargs: Any) -> float:
        _show_life()
        seconds: float = super().tick(*args, **kwargs)
        return seconds


def alive_file() -> Path:
    return get_settings().data_path / "beat.alive"


def _show_life() -> None:
    file = alive_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def is_alive() -> bool:
    file = alive_file()
    # The file's time may be in the future if the clock was set back.
    return file.exists() and abs(time.time() - file.stat().st_mtime) < STALE_SECONDS


if __name__ == "__main__":
    sys.exit(0 if is_alive() else 1)
