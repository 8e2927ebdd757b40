"""What is kept of a job's reasons: while it is pinned, and after it has ended."""

from __future__ import annotations

from typing import Any

from live_samples import job, make_cluster, step_at, submit
from sqlmodel import select

from backend.database import Database
from backend.jobs.explanation import explain
from backend.models import Job, Round
from backend.sight import WHOLE, Sight
from maat.api.job_answers import ExplanationOut


def explained(database: Database, job_id: str, sight: Sight = WHOLE) -> ExplanationOut:
    return explain(job(database, job_id), sight, [])


def test_a_job_that_has_ended_says_why_it_waited_and_why_it_ran_though_rounds_are_gone(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    whole: dict[str, Any] = {
        "adaptivity": "rigid", "gpu_count": 8, "batch_size": 512, "gpu_types": ["a100"],
    }  # fmt: skip
    submit(database, cluster_id, preemptible=False, **whole)
    (second,) = submit(database, cluster_id, submitted_seconds=1.0, **whole)
    step_at(database, cluster_id, *range(30, 4000, 60))
    assert job(database, second).state == "succeeded"
    with database.session_scope() as session:
        for row in session.exec(select(Round)):
            session.delete(row)
    told = explained(database, second)
    assert told["primary"]["code"] == "ENDED"
    assert told["reasons"] == [told["primary"]]
    assert told["waited"] is not None
    assert told["waited"]["code"] == "WAITING_CAPACITY"
    assert told["ran"] is not None
    assert told["ran"]["code"] in {"GRANTED", "PINNED"}
    assert told["choice"] is not None
    assert told["choice"]["chosen"]["gpu_count"] == 8
    nothing_nested = [v for v in told["ran"]["evidence"].values() if isinstance(v, dict | list)]
    assert nothing_nested == []


def test_a_job_that_is_pinned_keeps_what_was_decided_for_it_and_by_which_round(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    (fixed,) = submit(database, cluster_id, work_scale=100.0, preemptible=False)
    step_at(database, cluster_id, 30, 90, 150)
    told = explained(database, fixed)
    assert told["primary"]["code"] == "PINNED"
    evidence = told["primary"]["evidence"]
    held = job(database, fixed)
    assert (evidence["gpu_type"], evidence["gpu_count"]) == (held.gpu_type, len(held.gpus or ()))
    assert evidence["decided_by_round"] == 1
    assert told["choice"] is not None
    assert "remaining_seconds" not in evidence


def test_a_job_that_never_ran_says_why_it_waited(database: Database) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, gpu_types=["a100"], preemptible=False, work_scale=100.0,
           adaptivity="rigid", gpu_count=8, batch_size=512)  # fmt: skip
    (waits,) = submit(database, cluster_id, submitted_seconds=1.0, gpu_types=["a100"])
    step_at(database, cluster_id, 30, 90)
    with database.session_scope() as session:
        session.get_one(Job, waits).cancel_requested = True
    step_at(database, cluster_id, 150)
    told = explained(database, waits)
    assert (told["primary"]["code"], told["ran"], told["choice"]) == ("ENDED", None, None)
    assert told["waited"] is not None
    assert told["waited"]["code"] == "WAITING_CAPACITY"
