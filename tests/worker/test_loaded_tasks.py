"""Which process loads the tasks, and with them the tables and the numeric libraries."""

from __future__ import annotations

import json
import subprocess
import sys

LOADS = """
import json, sys
from celery.signals import celeryd_init
from backend.queue import QUEUE_OF
from worker.app import app

app.loader.init_worker()  # as the beat and every worker begin
app.finalize()
as_beat = sorted({"worker.tasks", "worker.heartbeats", "backend.jobs.models"} & set(sys.modules))
celeryd_init.send(sender="here")
asked = {entry["task"] for entry in app.conf.beat_schedule.values()} | set(QUEUE_OF)
print(json.dumps({
    "as_beat": as_beat,
    "missing": sorted(asked - set(app.tasks)),
    "steps": sorted(step.__name__ for step in app.steps["worker"]),
}))
"""


def test_a_worker_loads_the_tasks_that_are_sent_and_the_beat_loads_none() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS], capture_output=True, check=True, text=True)

    assert json.loads(done.stdout) == {"as_beat": [], "missing": [], "steps": ["Heartbeat"]}
