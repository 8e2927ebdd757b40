"""Tests of a worker's memory between rounds, on both databases.

It saves reading and changes no result: the rows are the truth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from live_samples import (
    job,
    jobs_of,
    make_cluster,
    round_numbers,
    set_time,
    spans_of,
    states_of,
    submit,
)
from machine_clock import MachineClock
from sqlmodel import Session, col, select

from backend.database import Database
from backend.models import Cluster, ClusterRuntime, ExecutorJob, ExecutorSamples, Job, Node
from maat.scheduling.job import JobId
from maat.simulation.job_snapshot import JobSnapshot, samples_to_json
from maat.simulation.simulated_job import SimulatedJob
from worker.executors.protocol import StateChanges
from worker.executors.simulated import SimulatedLive
from worker.live import memory as live_memory
from worker.live import step as live
from worker.live.cluster import LiveCluster
from worker.live.lease import take
from worker.rounds.executor_rows import stored_state

TIMES = [float(seconds) for seconds in range(30, 1500, 60)]
Step = Callable[[str], int | None]


def play(database: Database, cluster_id: str, step: Step) -> None:
    """Rounds in which jobs come, end and are cancelled, GPUs are drained and a node goes."""
    submit(database, cluster_id, count=8, work_scale=0.4)
    for number, seconds in enumerate(TIMES):
        set_time(database, cluster_id, seconds)
        if number == 3:
            submit(database, cluster_id, count=3, work_scale=5.0, submitted_seconds=seconds)
        if number == 6:
            with database.session_scope() as session:
                first = (
                    select(Job)
                    .where(Job.cluster_id == cluster_id, col(Job.finished_seconds).is_(None))
                    .order_by(col(Job.id))
                )
                session.exec(first).first().cancel_requested = True  # type: ignore[union-attr]
        if number == 9:
            change_node(
                database,
                cluster_id,
                "a100-0",
                lambda session, node: setattr(node, "drained_gpus", [0, 5]),
            )
        if number == 12:
            change_node(database, cluster_id, "t4-0", lambda session, node: session.delete(node))
        assert step(cluster_id) == number + 1


def change_node(
    database: Database, cluster_id: str, name: str, change: Callable[[Session, Node], None]
) -> None:
    with database.session_scope() as session:
        change(
            session,
            session.exec(
                select(Node).where(Node.cluster_id == cluster_id, Node.name == name)
            ).one(),
        )


def history(database: Database, cluster_id: str) -> list[Any]:
    """Return all that is stored of the jobs in the order of submission.

    The times of the database's clock are left out.
    """
    told = []
    for row in jobs_of(database, cluster_id):
        values = (
            row.state,
            row.progress,
            row.gpu_seconds,
            row.restarts,
            row.goodput,
            row.gpus,
            row.batch,
            row.reason_code,
            row.as_of_round,
        )
        spans = [
            (span.from_seconds, span.to_seconds, span.gpus, span.total_batch_size)
            for span in spans_of(database, row.id)
        ]
        told.append((*values, states_of(database, row.id), spans))
    return json.loads(json.dumps(told), parse_float=lambda text: round(float(text), 5))  # type: ignore[no-any-return]


def from_rows(database: Database) -> Step:
    def step(cluster_id: str) -> int | None:
        live_memory.MEMORY.forget(database)
        return live.step_cluster(database, cluster_id)

    return step


def test_a_history_made_from_memory_is_the_one_made_from_the_rows(
    database: Database, built: list[str]
) -> None:
    memory, rows = make_cluster(database, name="memory"), make_cluster(database, name="rows")
    play(database, memory, lambda cluster_id: live.step_cluster(database, cluster_id))
    assert built == [memory] * 3, "made from the rows at the start, and where nodes changed"
    play(database, rows, from_rows(database))
    assert built[3:] == [rows] * len(TIMES)
    assert history(database, memory) == history(database, rows)


def test_two_workers_that_take_turns_make_the_history_of_one(
    database: Database, database_url: str, built: list[str]
) -> None:
    one, turns, other = (
        make_cluster(database, name="one"),
        make_cluster(database, name="turns"),
        Database(database_url),
    )
    play(database, one, from_rows(database))
    workers = [database, database, other]
    built.clear()

    def step(cluster_id: str) -> int | None:
        workers.append(workers.pop(0))
        return live.step_cluster(workers[0], cluster_id)

    play(database, turns, step)
    assert len(TIMES) / 2 < len(built) < len(TIMES), (
        "each begins from memory only where the other made no round since"
    )
    assert history(database, turns) == history(database, one)
    other.dispose()


def test_what_is_in_memory_is_not_used_once_somebody_else_has_held_the_lease(
    database: Database, built: list[str]
) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=2)
    step_at(database, cluster_id, 30.0)
    assert take(database, cluster_id) is not None
    with database.session_scope() as session:
        session.get_one(Cluster, cluster_id).lease_until = None
    step_at(database, cluster_id, 90.0)
    assert len(built) == 2


def test_a_look_when_nothing_is_due_costs_no_memory(database: Database, built: list[str]) -> None:
    cluster_id = make_cluster(database)
    assert [step_at(database, cluster_id, seconds) for seconds in (30.0, 40.0, 50.0, 90.0)] == [
        1,
        None,
        None,
        2,
    ]
    assert len(built) == 1


def test_the_rows_say_after_every_step_how_the_executor_stands(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id, kept = make_cluster(database), dict[str, LiveCluster]()
    monkeypatch.setattr(
        live_memory.LiveMemory,
        "keep",
        lambda _memory, _database, cluster, fencing: kept.update({cluster.id: cluster}),
    )

    def step(cluster_id: str) -> int | None:
        number = live.step_cluster(database, cluster_id)
        jobs = simulated_jobs(kept[cluster_id])
        assert standings(database, cluster_id) == {
            job_id: (JobSnapshot.of(j), json_again(samples_to_json(j.agent.belief.by_type)))
            for job_id, j in jobs.items()
        }
        return number

    play(database, cluster_id, step)
    with database.session_scope(writes=False) as session:
        active = set(session.exec(select(Job.id).where(col(Job.finished_seconds).is_(None))))
        assert (
            set(session.exec(select(ExecutorJob.job_id)))
            == set(session.exec(select(ExecutorSamples.job_id)))
            == active
        )


def json_again(value: object) -> Any:
    return json.loads(json.dumps(value))


def simulated_jobs(cluster: LiveCluster) -> dict[JobId, SimulatedJob]:
    assert isinstance(cluster.executor, SimulatedLive)
    return cluster.executor._simulated.jobs


def standings(database: Database, cluster_id: str) -> dict[JobId, Any]:
    with database.session_scope(writes=False) as session:
        stored = stored_state(session, session.get(ClusterRuntime, cluster_id))
    assert stored is not None
    return {
        job_id: (JobSnapshot.from_json(json.loads(found.standing)), json.loads(found.samples))
        for job_id, found in stored.jobs.items()
    }


def test_what_did_not_change_is_not_written(database: Database) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=4, work_scale=100.0)
    step_at(database, cluster_id, 30.0)
    (_, cluster) = live_memory.MEMORY._clusters[database][cluster_id]
    assert cluster.executor.take_changes() == StateChanges()
    one = next(iter(simulated_jobs(cluster).values()))
    one.ledger.done_work += 1.0
    changes = cluster.executor.take_changes()
    assert list(changes.standing) == [one.spec.id]
    assert changes == StateChanges(standing=changes.standing)


def test_no_json_is_made_while_the_writer_holds_the_database(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id, writing, made, begun = make_cluster(database), [False], [0], Database.session_scope
    submit(database, cluster_id, count=4, work_scale=100.0)
    set_time(database, cluster_id, 30.0)

    @contextmanager
    def scope(self: Database, *, writes: bool = True) -> Iterator[Session]:
        with begun(self, writes=writes) as session:
            writing[0] = writes
            try:
                yield session
            finally:
                writing[0] = False

    encode = json.JSONEncoder.iterencode

    def checked(self: json.JSONEncoder, value: object, _one_shot: bool = False) -> Iterator[str]:
        assert not writing[0], value
        made[0] += 1
        return encode(self, value, _one_shot)

    monkeypatch.setattr(Database, "session_scope", scope)
    monkeypatch.setattr(json.JSONEncoder, "iterencode", checked)
    assert live.step_cluster(database, cluster_id) == 1
    assert made[0] > 10
    monkeypatch.undo()
    assert (
        round_numbers(database, cluster_id),
        len([row for row in jobs_of(database, cluster_id) if row.gpus]),
    ) == ([1], 4)


def test_a_job_that_somebody_else_ended_is_not_carried_on(database: Database) -> None:
    cluster_id = make_cluster(database)
    ended, other = submit(database, cluster_id, count=2, work_scale=100.0)
    step_at(database, cluster_id, 30.0)
    with database.session_scope() as session:
        row = session.get_one(Job, ended)
        row.state, row.finished_seconds, row.gpus = "failed", 60.0, None
    assert step_at(database, cluster_id, 90.0) == 2
    assert (job(database, ended).state, job(database, ended).finished_seconds) == ("failed", 60.0)
    assert job(database, other).gpus is not None
    assert set(standings(database, cluster_id)) == {other}


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes but what a test says: two histories can be compared to the last digit."""
    MachineClock(monkeypatch)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The clusters that were made from their rows, each time that one was."""
    made: list[str] = []
    begin = LiveCluster.__init__

    def noted(self: LiveCluster, snapshot: Any) -> None:
        made.append(snapshot.cluster.id)
        begin(self, snapshot)

    monkeypatch.setattr(LiveCluster, "__init__", noted)
    return made


def step_at(database: Database, cluster_id: str, seconds: float) -> int | None:
    set_time(database, cluster_id, seconds)
    return live.step_cluster(database, cluster_id)
