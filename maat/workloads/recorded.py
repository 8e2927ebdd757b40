"""The model of jobs that are replayed as they were recorded: nothing is known but how long."""

from __future__ import annotations

RECORDED = "as-recorded"
"""Its name in a trace. `work_scale` is how many seconds such a job runs on what it asked for."""
MOST_RECORDED_GPUS = 4096
