"""The CPU seconds that the parts of a live round took in this process.

Measures; decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

READ, RESTORE, OBSERVE, DECIDE, JOURNAL, COMMIT = (
    "read",
    "restore",
    "observe",
    "decide",
    "journal",
    "commit",
)
PARTS = (READ, RESTORE, OBSERVE, DECIDE, JOURNAL, COMMIT)


class StepSeconds:
    """CPU seconds by part. Time in an inner part does not count for the outer one."""

    def __init__(self) -> None:
        self.by_part = dict.fromkeys(PARTS, 0.0)
        self._inner = [0.0]

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        began = time.process_time()
        self._inner.append(0.0)
        try:
            yield
        finally:
            spent = time.process_time() - began
            self.by_part[name] += spent - self._inner.pop()
            self._inner[-1] += spent

    @property
    def total(self) -> float:
        return sum(self.by_part.values())
