"""Places on GPUs: two jobs where two may be, never a third, also under a race."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from live_samples import make_cluster, submit
from sqlalchemy.exc import IntegrityError
from sqlmodel import select

from backend.clusters.repository import nodes_of
from backend.database import Database
from backend.models import AttemptRow, GpuHold
from maat.vocabulary import AttemptKind, AttemptState, StopReason
from worker.training.hold_rows import NoPlace, hold, release

pytestmark = pytest.mark.both_databases


@pytest.fixture
def attempts(database: Database) -> list[str]:
    """Six attempts that were ordered on the first GPU of t4-0."""
    cluster_id = make_cluster(database, executor="local", jobs_per_gpu=2)
    jobs = submit(database, cluster_id, count=6)
    with database.session_scope() as session:
        rows = [_ordered(job_id, cluster_id) for job_id in jobs]
        session.add_all(rows)
    return [row.id for row in rows]


def _ordered(job_id: str, cluster_id: str) -> AttemptRow:
    return AttemptRow(
        job_id=job_id,
        cluster_id=cluster_id,
        number=1,
        round_number=1,
        state=AttemptState.ORDERED.value,
        reports=False,
        gpu_type="t4",
        gpus_by_node={"t4-0": [0]},
        gpu_count=1,
        ordered_seconds=0.0,
    )


def take(database: Database, attempt_id: str, *, places: int = 2, **changed: object) -> bool:
    """Hold the GPUs of an attempt; return False if there is no place."""
    try:
        with database.session_scope() as session:
            row = session.get_one(AttemptRow, attempt_id)
            for name, value in changed.items():
                setattr(row, name, value)
            nodes = {node.name: node for node in nodes_of(session, row.cluster_id)}
            hold(session, row, row.gpus_by_node, nodes, places=places)
    except (IntegrityError, NoPlace):
        return False
    return True


def slots(database: Database) -> list[tuple[str, int]]:
    with database.session_scope(writes=False) as session:
        found = session.exec(select(GpuHold)).all()
        return sorted((one.attempt_id, one.slot) for one in found)


def test_a_gpu_has_as_many_places_as_jobs_may_share_it(
    database: Database, attempts: list[str]
) -> None:
    first, second, third, *_ = attempts
    assert [take(database, one) for one in (first, second, third)] == [True, True, False]
    assert sorted(slots(database)) == sorted([(first, 0), (second, 1)])
    with database.session_scope() as session:
        release(session, [first])
    assert take(database, third)
    assert sorted(slots(database)) == sorted([(third, 0), (second, 1)])


def test_where_jobs_do_not_share_a_gpu_has_one_place(
    database: Database, attempts: list[str]
) -> None:
    assert [take(database, one, places=1) for one in attempts[:2]] == [True, False]


def test_nobody_begins_beside_a_job_that_is_to_end(database: Database, attempts: list[str]) -> None:
    assert take(database, attempts[0], stop_reason=StopReason.MOVED.value)
    assert not take(database, attempts[1])


def test_a_profile_is_alone(database: Database, attempts: list[str]) -> None:
    """It measures the job alone: it takes all places, and waits until all are free."""
    profile = {"kind": AttemptKind.PROFILE.value}
    assert take(database, attempts[0], **profile)
    assert not take(database, attempts[1])
    with database.session_scope() as session:
        release(session, [attempts[0]])
    assert take(database, attempts[1])
    assert not take(database, attempts[2], **profile)


def test_of_many_that_race_two_hold_the_gpu(database: Database, attempts: list[str]) -> None:
    waiting = list(attempts)
    with ThreadPoolExecutor(len(attempts)) as pool:
        for _ in range(3):
            done = list(pool.map(lambda one: take(database, one), waiting))
            waiting = [one for one, holds in zip(waiting, done, strict=True) if not holds]
    assert len(waiting) == 4
    holders = [attempt_id for attempt_id, _ in slots(database)]
    assert sorted(holders) == sorted(set(attempts) - set(waiting))
