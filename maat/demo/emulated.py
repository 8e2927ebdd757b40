"""GPUs that are not there: a pass takes the time that a law says, and hardly any of the processor.

Gradients and their exchange are real. A pass is made longer, by sleeping after its forward part,
until the emulated GPU would be done with it. So eight GPUs fit on two cores, and the truth of step
times is known:

    seconds of a pass over m samples = fixed + per_sample * m
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple


class Law(NamedTuple):
    """Seconds of a pass over m samples: fixed + per_sample * m."""

    fixed: float
    per_sample: float

    def seconds(self, samples: int) -> float:
        return self.fixed + self.per_sample * samples


LAWS: Mapping[str, Mapping[str, Law]] = {
    "digits": {"t4": Law(0.070, 0.0030), "a100": Law(0.060, 0.0008)},
    "translate": {"t4": Law(0.080, 0.0040), "a100": Law(0.055, 0.0010)},
    "matrix": {"t4": Law(0.080, 0.0005), "a100": Law(0.070, 0.0004)},
}
"""By model and GPU type. A faster GPU is worth more to one model than to another: at their initial
batch sizes 1.9 times for digits, 2.4 for translate, 1.2 for matrix."""

_LATE = 1.0  # passes: one that begins later than this begins anew


class EmulatedGpu:
    """Keeps the passes of one process to a law.

    The clock is absolute: what a real pass and its exchange take beyond the sleep of one pass is
    taken from the sleep of the next.
    """

    def __init__(self, law: Law) -> None:
        self._law = law
        self._free_at = 0.0

    def hold(self, samples: int) -> None:
        """Return when the GPU would be done with a pass over so many samples."""
        seconds, now = self._law.seconds(samples), time.perf_counter()
        begins = self._free_at if now - self._free_at < _LATE * seconds else now
        self._free_at = begins + seconds
        time.sleep(max(self._free_at - time.perf_counter(), 0.0))


def emulate(model: Any, name: str) -> Any:
    """Let the passes of a model take the time of the GPU that Maat gave; return the model.

    Without Maat, the model runs as it is.
    """
    gpu_type = os.environ.get("MAAT_GPU_TYPE")
    if gpu_type is not None:
        gpu = EmulatedGpu(LAWS[name][gpu_type])
        model.register_forward_hook(lambda _, inputs, __: gpu.hold(len(inputs[0])))
    return model
