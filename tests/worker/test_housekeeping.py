"""What housekeeping deletes, and what it must not, on both databases."""

from __future__ import annotations

from datetime import timedelta

from live_samples import make_cluster, round_numbers, set_time, waiting_messages
from sqlmodel import select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import AuditRecord, IdempotencyKey, OutboxMessage
from worker import housekeeping
from worker.live import step as live


def test_only_the_rounds_that_a_cluster_wants_are_kept(database: Database) -> None:
    few, many = (
        make_cluster(database, name="few", keep_rounds=3),
        make_cluster(database, name="many", keep_rounds=100),
    )
    for cluster_id in (few, many):
        for seconds in range(0, 480, 60):
            set_time(database, cluster_id, seconds + 1.0)
            live.step_cluster(database, cluster_id)
    assert housekeeping.prune_rounds(database) == 5
    assert round_numbers(database, few) == [6, 7, 8]
    assert round_numbers(database, many) == list(range(1, 9))
    set_time(database, few, 1000.0)
    assert live.step_cluster(database, few) == 9


def test_rounds_are_deleted_in_portions_until_none_is_left_over(
    database: Database, monkeypatch: object
) -> None:
    cluster_id = make_cluster(database, keep_rounds=1)
    for seconds in range(0, 420, 60):
        set_time(database, cluster_id, seconds + 1.0)
        live.step_cluster(database, cluster_id)
    housekeeping.AT_ONCE, before = 2, housekeeping.AT_ONCE
    try:
        assert housekeeping.prune_rounds(database) == 6
    finally:
        housekeeping.AT_ONCE = before
    assert round_numbers(database, cluster_id) == [7]


def test_changes_that_still_wait_for_the_executor_stay(database: Database) -> None:
    cluster_id = make_cluster(database)
    with database.session_scope() as session:
        done = OutboxMessage(
            cluster_id=cluster_id, round_number=1, payload={}, applied_at=utc_now()
        )
        session.add_all([done, OutboxMessage(cluster_id=cluster_id, round_number=2, payload={})])
    assert housekeeping.prune_outbox(database) == 1
    assert waiting_messages(database, cluster_id) == [2]


def test_answers_to_repeated_requests_are_kept_for_their_time(database: Database) -> None:
    ages = {"old": timedelta(hours=25), "young": timedelta(hours=23)}
    with database.session_scope() as session:
        session.add_all(
            IdempotencyKey(
                principal="p",
                route="r",
                key=key,
                digest="d",
                status=201,
                body={},
                created_at=utc_now() - age,
            )
            for key, age in ages.items()
        )
    assert housekeeping.prune_idempotency_keys(database, hours=24) == 1
    with database.session_scope(writes=False) as session:
        assert session.exec(select(IdempotencyKey.key)).all() == ["young"]


def test_records_of_changes_are_kept_for_their_time(database: Database) -> None:
    with database.session_scope() as session:
        for days, action in ((31, "old"), (29, "young")):
            row = AuditRecord(
                at=utc_now() - timedelta(days=days),
                actor_kind="program",
                actor_name="maat",
                action=action,
                target_kind="none",
                target_id="",
            )
            session.add(row)
    assert housekeeping.prune_audit(database, days=30) == 1
    with database.session_scope(writes=False) as session:
        assert session.exec(select(AuditRecord.action)).all() == ["young"]
