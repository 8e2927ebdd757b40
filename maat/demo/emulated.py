"""GPUs that are not there: a pass takes the time that a law says, and hardly any of the processor.

Gradients and their exchange are real. A pass is made longer, by sleeping after its forward part,
until the emulated GPU would be done with it. So eight GPUs fit on two cores, and the truth of step
times is known:

    seconds of a pass over m samples = fixed + per_sample * m

times the job's own factor where its GPUs are on several nodes.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from maat.demo.jobs import JOBS, Law

_LATE = 1.0  # passes: a pause of the script that is longer is not taken from later sleeps


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

    Without Maat, or on a type that has no law, the model runs as it is.
    """
    job = JOBS[name]
    law = job.laws.get(os.environ.get("MAAT_GPU_TYPE", ""))
    if law is not None:
        node_count = len(json.loads(os.environ.get("MAAT_SHAPE", "{}")))
        gpu = EmulatedGpu(law.times(job.across_nodes) if node_count > 1 else law)
        model.register_forward_hook(lambda _, inputs, __: gpu.hold(len(inputs[0])))
    return model
