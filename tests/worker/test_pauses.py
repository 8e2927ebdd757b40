"""Paused jobs of a live cluster: they give back their GPUs, wait apart, and come back."""

from __future__ import annotations

import pytest
from live_samples import (
    assert_history_is_whole,
    job,
    make_cluster,
    spans_of,
    states_of,
    step_at,
    submit,
)
from sqlmodel import col, select

from backend.database import Database
from backend.models import Job, JobPause
from maat.vocabulary import JobState
from worker.live.memory import MEMORY

pytestmark = pytest.mark.both_databases


def ask(database: Database, job_id: str, *, pause: bool) -> None:
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        row.pause_requested = pause
        session.add(row)


def pauses_of(database: Database, job_id: str) -> list[tuple[float, float | None]]:
    statement = select(JobPause).where(JobPause.job_id == job_id).order_by(col(JobPause.id))
    with database.session_scope(writes=False) as session:
        return [(one.from_seconds, one.to_seconds) for one in session.exec(statement)]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_paused_job_gives_back_its_gpus_and_goes_on_where_it_was(
    database: Database, restarts: bool
) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, work_scale=100.0)
    step_at(database, cluster_id, 30, 90, 150)
    ask(database, job_id, pause=True)
    if restarts:
        MEMORY.forget(database)
    step_at(database, cluster_id, 210)
    row = job(database, job_id)
    done = row.progress
    assert (row.state, row.gpus, row.reason_code) == ("paused", None, "HELD_BY_USER")
    assert row.paused_since_seconds == pytest.approx(210)
    assert done > 0
    assert spans_of(database, job_id)[-1].to_seconds == pytest.approx(210)
    step_at(database, cluster_id, 270, 330)
    assert (job(database, job_id).state, job(database, job_id).progress) == ("paused", done)
    ask(database, job_id, pause=False)
    if restarts:
        MEMORY.forget(database)
    step_at(database, cluster_id, 390, 450)
    row = job(database, job_id)
    assert row.gpus is not None
    assert row.paused_since_seconds is None
    assert row.submitted_seconds == 0.0
    assert states_of(database, job_id)[-4:] == [
        JobState.PAUSED,
        JobState.PENDING,
        JobState.RESTARTING,
        JobState.RUNNING,
    ]
    assert row.progress > done
    assert pauses_of(database, job_id) == [(pytest.approx(210), pytest.approx(390))]
    assert row.unwaited_seconds == 0.0
    assert_history_is_whole(database, cluster_id)


def test_the_gpus_of_a_paused_job_are_another_ones_in_the_same_round(database: Database) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed")
    first, second = submit(
        database, cluster_id, count=2, adaptivity="rigid", gpu_count=8, batch_size=512,
        gpu_types=["a100"], work_scale=100.0,
    )  # fmt: skip
    step_at(database, cluster_id, 90)
    runs, waits = (first, second) if job(database, first).gpus else (second, first)
    assert job(database, waits).gpus is None
    ask(database, runs, pause=True)
    step_at(database, cluster_id, 150)
    assert job(database, runs).state == "paused"
    assert job(database, waits).gpus is not None
    assert_history_is_whole(database, cluster_id)


def test_a_job_that_is_held_before_it_ran_does_not_start_and_has_not_waited(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    held, other = submit(database, cluster_id, count=2, work_scale=100.0)
    ask(database, held, pause=True)
    step_at(database, cluster_id, 30, 90, 150)
    assert (job(database, held).state, job(database, held).gpus) == ("paused", None)
    assert job(database, other).gpus is not None
    ask(database, held, pause=False)
    step_at(database, cluster_id, 210, 270)
    row = job(database, held)
    assert row.gpus is not None
    assert row.started_seconds == pytest.approx(210)
    assert row.unwaited_seconds == pytest.approx(180)
    assert_history_is_whole(database, cluster_id)


def test_a_pause_that_is_taken_back_before_the_round_changes_nothing(database: Database) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, work_scale=100.0)
    step_at(database, cluster_id, 30, 90)
    before = states_of(database, job_id)
    ask(database, job_id, pause=True)
    ask(database, job_id, pause=False)
    step_at(database, cluster_id, 150)
    assert states_of(database, job_id)[: len(before)] == before
    assert JobState.PAUSED not in states_of(database, job_id)
    assert job(database, job_id).gpus is not None


def test_a_paused_job_can_be_cancelled(database: Database) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, work_scale=100.0)
    step_at(database, cluster_id, 30, 90)
    ask(database, job_id, pause=True)
    step_at(database, cluster_id, 150)
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        row.cancel_requested = True
        session.add(row)
    step_at(database, cluster_id, 210)
    row = job(database, job_id)
    assert (row.state, row.finished_seconds) == ("cancelled", pytest.approx(210))
    assert pauses_of(database, job_id) == [(pytest.approx(150), pytest.approx(210))]
    assert_history_is_whole(database, cluster_id)


def test_a_worker_that_is_killed_before_it_applies_the_round_pauses_the_job_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, work_scale=100.0)
    step_at(database, cluster_id, 30, 90)
    ask(database, job_id, pause=True)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("worker.rounds.store.SqlRoundStore.applied", killed)
        with pytest.raises(KeyboardInterrupt):
            step_at(database, cluster_id, 150)
    MEMORY.forget(database)
    step_at(database, cluster_id, 210, 270)
    assert states_of(database, job_id).count(JobState.PAUSED) == 1
    assert len(pauses_of(database, job_id)) == 1
    assert_history_is_whole(database, cluster_id)
