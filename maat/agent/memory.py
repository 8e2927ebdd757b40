"""How many samples of a step a device has room for, as found out by running out of memory."""

from __future__ import annotations

import json
from pathlib import Path

from maat.agent.environment import BatchPlan, Environment
from maat.agent.files import write_whole
from maat.agent.words import say

SAFE_SHARE = 0.9
"""Of a number of samples that was too large: the most that is tried after it."""

_FILE = "samples-that-fit.json"


class MemoryLimits:
    """The most samples of one pass on this type of GPU; kept beside the checkpoints."""

    def __init__(self, environment: Environment) -> None:
        folder, self._gpu_type = environment.checkpoint_directory, environment.gpu_type
        self._path = None if folder is None else folder / _FILE
        self.most: int | None = _read(self._path).get(self._gpu_type)

    def add(self, per_gpu: int) -> None:
        """Note that so many samples were too many."""
        most = max(int(per_gpu * SAFE_SHARE), 1)
        self.most = most if self.most is None else min(self.most, most)
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(self._path, json.dumps({**_read(self._path), self._gpu_type: self.most}))
        except OSError as error:
            say(f"{self._path} cannot be written: {error}")

    def within(self, plan: BatchPlan) -> BatchPlan:
        """Return a plan of the same samples a step, in as many passes as the limit asks for."""
        if self.most is None or plan.per_gpu <= self.most:
            return plan
        return plan.in_passes(-(-plan.per_gpu * plan.passes // self.most))


def _read(path: Path | None) -> dict[str, int]:
    """Return the limits in a file, by type of GPU; none if there is no such file."""
    try:
        found = json.loads(path.read_text()) if path is not None else {}
    except (OSError, ValueError):
        return {}
    return {name: most for name, most in found.items() if isinstance(most, int) and most > 0}
