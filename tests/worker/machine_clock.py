"""The machine's clocks under a test's control: the test lets time pass and sets the wall clock.

The database's own clock stays real.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pytest

from backend import clocktime

HOUR = 3600.0


class MachineClock:
    """`seconds` have truly passed; the wall clock is wrong by `off_seconds`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = self.off_seconds = 0.0
        self._began, self._true_now = datetime.now(UTC), clocktime.utc_now
        for module in [
            module
            for name, module in sys.modules.items()
            if name.partition(".")[0] in ("backend", "worker")
        ]:
            if getattr(module, "utc_now", None) is self._true_now:
                monkeypatch.setattr(module, "utc_now", self.wall)
        monkeypatch.setattr(clocktime, "_boot_seconds", lambda: 5000.0 + self.seconds)

    def wall(self) -> datetime:
        return self._began + timedelta(seconds=self.seconds + self.off_seconds)
