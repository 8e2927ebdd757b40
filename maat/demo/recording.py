"""What the service says of a run once it is over: all that the report and the replay need."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from maat.client import Client, calls
from maat.demo.train import GPUS_PER_NODE, NODES, ROUND_SECONDS, Run

_MOST_ROWS = 500


@dataclass(frozen=True)
class Life:
    """An attempt; times are seconds since the first submission.

    `stopped`: when it was asked to end.
    """

    number: int
    kind: str
    gpu_type: str
    gpus_by_node: dict[str, list[int]]
    outcome: str
    queued: float | None
    trained: float | None
    ended: float
    stopped: float | None = None

    @property
    def gpu_count(self) -> int:
        return sum(len(gpus) for gpus in self.gpus_by_node.values())


@dataclass(frozen=True)
class Job:
    """A job that has ended. `laws`: by GPU type, (fixed, per sample) seconds of a pass.

    `samples`, `belief`, `noise`: as the API answers (StepSampleOut, BeliefOut, GradientSampleOut).
    """

    name: str
    batch_size: int
    max_batch_size: int
    work: float
    epochs: int
    submitted: float
    finished: float
    restarts: int
    gpu_hours: float
    laws: Mapping[str, Sequence[float]]
    lives: Sequence[Life]
    samples: Sequence[Any]
    belief: Any
    noise: Sequence[Any]

    @property
    def jct(self) -> float:
        return self.finished - self.submitted


@dataclass(frozen=True)
class Recording:
    """`nodes`: GPU type by name. `outages`: (node, from, to), in seconds as everything here.

    `load`: processes that ran or wanted to on this machine in the minute before, on average.
    """

    nodes: dict[str, str]
    gpus_per_node: int
    round_seconds: float
    jobs: Sequence[Job]
    outages: Sequence[tuple[str, float, float]]
    load: float = 0.0

    @property
    def makespan(self) -> float:
        return max(job.finished for job in self.jobs)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Recording:
        data = json.loads(path.read_text())
        jobs = [
            Job(**{**job, "lives": [Life(**life) for life in job["lives"]]})
            for job in data.pop("jobs")
        ]
        return cls(**data, jobs=jobs)


def record(client: Client, run: Run) -> Recording:
    """Ask the service for everything that it knows of the run's jobs."""
    submitted = {name: client.job(job_id)["submitted_at"] for name, job_id in run.job_ids.items()}
    began = min(_moment(text) for text in submitted.values())
    jobs = [_job(client, run, name, began) for name in run.job_ids]
    outages = [(node, down, run.seconds if up is None else up) for node, down, up in run.outages]
    return Recording(dict(NODES), GPUS_PER_NODE, ROUND_SECONDS, jobs, outages, run.load)


def _job(client: Client, run: Run, name: str, began: float) -> Job:
    job_id, wanted = run.job_ids[name], run.jobs[name]

    def since(text: str | None) -> float | None:
        return None if text is None else _moment(text) - began

    job = client.job(job_id)
    lives = [
        Life(
            attempt["number"],
            attempt["kind"],
            attempt["gpu_type"],
            attempt["gpus_by_node"],
            attempt["outcome"] or "",
            since(attempt["queued_at"]),
            since(attempt["running_at"]),
            since(attempt["ended_at"]) or 0.0,
            since(attempt["stop_asked_at"]),
        )
        for attempt in client.send(calls.attempts(job_id, limit=_MOST_ROWS))["items"]
    ]
    starts = [life.queued for life in lives if life.kind == "train" and life.queued is not None]
    trained = min(starts, default=0.0)  # profiles before it measure other batch sizes
    return Job(
        name=name,
        batch_size=wanted.batch_size,
        max_batch_size=wanted.max_batch_size,
        work=wanted.work,
        epochs=wanted.epochs,
        submitted=_moment(job["submitted_at"]) - began,
        finished=since(job["finished_at"]) or 0.0,
        restarts=job["restarts"],
        gpu_hours=job["gpu_hours"],
        laws=dict(wanted.laws),
        lives=lives,
        samples=client.send(calls.samples(job_id, limit=_MOST_ROWS))["items"],
        belief=client.belief(job_id),
        noise=[
            row
            for row in client.send(calls.gradients(job_id, limit=_MOST_ROWS))["items"]
            if _moment(row["at"]) - began >= trained
        ],
    )


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
