"""What rounds store of the use of GPUs, and the days that housekeeping sums up of it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
import sqlalchemy as sa
from live_samples import jobs_of, make_cluster, make_owner, set_time, spans_of, submit
from sqlmodel import select

from backend.accounts.identity import Principal
from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import (
    AllocationReading,
    CapacityDay,
    Cluster,
    ClusterReservation,
    SummedDay,
    Tenant,
    UsageDay,
)
from backend.periods import Period
from backend.usage import days as usage_days
from backend.usage.service import usage
from maat.api.usage import UsageBy, UsageOut
from worker import housekeeping
from worker.live import step as live

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR, DAY = 3600.0, 86_400.0
FULL_SIZE = 16  # GPUs of the cluster of live_samples


def admin(database: Database) -> Principal:
    user, tenant = make_owner(database)
    return Principal(user, "owner", tenant, "tenant", Role.CLUSTER_ADMIN, frozenset())


def report(
    database: Database,
    cluster_id: str,
    *,
    begin: float = 0.0,
    end: float = 3 * DAY,
    by: UsageBy = UsageBy.TENANT,
) -> UsageOut:
    period = Period(MIDNIGHT + timedelta(seconds=begin), MIDNIGHT + timedelta(seconds=end))
    who = admin(database)
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        return usage(session, who, cluster=cluster, period=period, by=by, per_day=True)


def cluster_at_midnight(database: Database, **fields: object) -> str:
    return make_cluster(database, epoch=MIDNIGHT, round_seconds=HOUR, **fields)


def step_until(database: Database, cluster_id: str, end: float, *, begin: float = 1.0) -> None:
    at = begin
    while at < end:
        set_time(database, cluster_id, at)
        live.step_cluster(database, cluster_id)
        at += HOUR


@pytest.fixture
def lived(database: Database) -> str:
    """A cluster on which jobs trained for two days and a little."""
    cluster_id = cluster_at_midnight(database)
    submit(database, cluster_id, count=3, work_scale=900.0, labels={"team": "vision"})
    submit(database, cluster_id, count=2, model="bert", work_scale=20.0)
    step_until(database, cluster_id, 2 * DAY + 2 * HOUR)
    return cluster_id


def test_what_was_allocated_is_what_the_jobs_ledgers_say(database: Database, lived: str) -> None:
    found = report(database, lived)
    last_round = 2 * DAY + HOUR + 1.0

    spent = sum(job.gpu_seconds for job in jobs_of(database, lived)) / HOUR
    since = sum(len(job.gpus or ()) for job in jobs_of(database, lived)) * (
        max_now(database, lived) - last_round
    )
    assert found["total"]["allocated_gpu_hours"] == pytest.approx(spent + since / HOUR, rel=1e-6)
    assert found["total"]["profile_gpu_hours"] == 0


def max_now(database: Database, cluster_id: str) -> float:
    with database.session_scope(writes=False) as session:
        return session.get_one(Cluster, cluster_id).anchor_seconds


def test_used_is_less_by_restarts_and_useful_by_efficiency(database: Database, lived: str) -> None:
    total = report(database, lived)["total"]

    assert 0 < total["restart_gpu_hours"] < 0.1 * total["allocated_gpu_hours"]
    assert total["used_gpu_hours"] == pytest.approx(
        total["allocated_gpu_hours"] - total["restart_gpu_hours"]
    )
    assert 0 < total["useful_gpu_hours"] < total["used_gpu_hours"]
    assert total["lost_gpu_hours"] == 0
    assert total["unmeasured_gpu_hours"] == pytest.approx(0, abs=1e-6)


def test_a_span_has_its_counters_at_both_ends_and_when_the_job_ran(
    database: Database, lived: str
) -> None:
    for job in jobs_of(database, lived):
        for span in spans_of(database, job.id):
            assert span.processed_before is not None
            assert span.running_seconds is not None
            assert span.running_seconds >= span.from_seconds
            if span.to_seconds is not None:
                assert span.processed_after is not None
                assert span.gained_after is not None
                assert span.processed_after > span.processed_before


def test_the_first_round_of_a_day_reads_the_counters_of_all_that_hold_gpus(
    database: Database, lived: str
) -> None:
    with database.session_scope(writes=False) as session:
        read = session.exec(select(AllocationReading)).all()

    assert {round(row.at_seconds) for row in read} == {DAY + 1, 2 * DAY + 1}
    assert all(row.gained_samples > 0 for row in read)


@pytest.mark.both_databases
def test_days_that_were_summed_up_say_what_the_raw_rows_said(
    database: Database, lived: str
) -> None:
    before = {by: report(database, lived, by=by) for by in UsageBy}

    assert housekeeping.sum_days(database) == 2
    assert housekeeping.sum_days(database) == 0
    after = {by: report(database, lived, by=by) for by in UsageBy}

    for by in UsageBy:
        assert before[by] | {"as_of": ""} == after[by] | {"as_of": ""}


def test_they_say_it_still_when_the_rounds_are_gone(database: Database, lived: str) -> None:
    with database.session_scope() as session:
        session.get_one(Cluster, lived).keep_rounds = 1
    before = report(database, lived)
    housekeeping.sum_days(database)

    assert housekeeping.prune_rounds(database) > 40
    after = report(database, lived)

    assert before | {"as_of": ""} == after | {"as_of": ""}


@pytest.mark.both_databases
def test_rounds_that_are_deleted_before_their_day_is_over_leave_what_they_found(
    database: Database,
) -> None:
    cluster_id = cluster_at_midnight(database, keep_rounds=2)
    for until in range(4, 52, 4):
        step_until(database, cluster_id, until * HOUR, begin=(until - 4) * HOUR + 1.0)
        housekeeping.prune_rounds(database)
    set_time(database, cluster_id, 2 * DAY + HOUR + 1.0)
    live.step_cluster(database, cluster_id)

    expected = FULL_SIZE * (2 * DAY + HOUR) / HOUR
    of_types = report(database, cluster_id)["gpu_types"]
    assert sum(one["capacity_gpu_hours"] for one in of_types) == pytest.approx(expected)
    assert housekeeping.sum_days(database) == 2
    of_types = report(database, cluster_id)["gpu_types"]
    assert sum(one["capacity_gpu_hours"] for one in of_types) == pytest.approx(expected)


@pytest.mark.both_databases
def test_a_day_that_is_cut_off_in_the_middle_leaves_nothing_and_is_made_again(
    database: Database, lived: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = report(database, lived)

    class Killed(BaseException):
        pass

    def cut(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(usage_days, "_capacity_row", cut)
    with pytest.raises(Killed):
        housekeeping.sum_days(database)
    with database.session_scope(writes=False) as session:
        for table in (UsageDay, CapacityDay, SummedDay):
            assert session.exec(select(sa.func.count()).select_from(table)).one() == 0
    monkeypatch.undo()

    assert housekeeping.sum_days(database) == 2
    assert report(database, lived) | {"as_of": ""} == whole | {"as_of": ""}


def test_a_day_is_not_summed_up_before_late_news_of_it_can_no_longer_come(
    database: Database,
) -> None:
    cluster_id = cluster_at_midnight(database)
    step_until(database, cluster_id, DAY)
    set_time(database, cluster_id, DAY + 300.0)
    live.step_cluster(database, cluster_id)

    assert housekeeping.sum_days(database) == 0
    step_until(database, cluster_id, DAY + 2 * HOUR, begin=DAY + HOUR + 1.0)
    assert housekeeping.sum_days(database) == 1
    with database.session_scope(writes=False) as session:
        assert session.exec(select(SummedDay)).one().day == date(2026, 3, 2)


def test_free_gpus_are_idle_and_those_that_are_reserved_and_free_are_counted(
    database: Database,
) -> None:
    cluster_id = cluster_at_midnight(database)
    owner, _ = make_owner(database)
    with database.session_scope() as session:
        other = Tenant(name="other")
        session.add(other)
        session.flush()
        session.add(
            ClusterReservation(
                cluster_id=cluster_id,
                gpu_type="a100",
                gpu_count=3,
                tenant_id=other.id,
                start_seconds=0.0,
                owner_id=owner,
            )
        )
    step_until(database, cluster_id, 4 * HOUR)

    found = {one["gpu_type"]: one for one in report(database, cluster_id)["gpu_types"]}
    assert found["a100"]["reserved_idle_gpu_hours"] == pytest.approx(3 * 3, rel=1e-3)
    assert found["a100"]["idle_gpu_hours"] == pytest.approx(8 * 3, rel=1e-3)
    assert found["a100"]["utilisation"] == 0
    assert found["t4"]["reserved_idle_gpu_hours"] == 0


def test_gpus_that_lie_free_while_a_job_finds_no_shape_count_as_fragmented(
    database: Database,
) -> None:
    cluster_id = cluster_at_midnight(database, policy="fifo", placer="packed")
    rigid = {"adaptivity": "rigid", "batch_size": 128, "work_scale": 500.0}
    submit(database, cluster_id, count=2, gpu_count=3, gpu_types=["t4"], **rigid)
    submit(database, cluster_id, count=1, gpu_count=8, gpu_types=["t4"], **rigid)
    step_until(database, cluster_id, 4 * HOUR)

    found = {one["gpu_type"]: one for one in report(database, cluster_id)["gpu_types"]}
    assert found["t4"]["idle_gpu_hours"] > 0
    assert found["t4"]["fragmented_gpu_hours"] <= found["t4"]["idle_gpu_hours"]
