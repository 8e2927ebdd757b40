"""Tests of a live cluster step by step, on both databases, with real policies and placers.

The executor is the simulated one.
"""

from __future__ import annotations

from typing import Any

import pytest
from live_samples import (
    assert_history_is_whole,
    job,
    jobs_of,
    make_cluster,
    make_owner,
    round_numbers,
    set_time,
    spans_of,
    states_of,
    submit,
    waiting_messages,
)
from sqlmodel import col, select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.database import Database
from backend.jobs.explanation import waited_for
from backend.jobs.resources import show_reason
from backend.models import (
    Cluster,
    ClusterReservation,
    ClusterRuntime,
    Job,
    JobEvent,
    Node,
    Round,
    Tenant,
)
from backend.sight import WHOLE
from maat.vocabulary import JobState
from worker.live import step as live
from worker.rounds.store import SqlRoundStore

pytestmark = pytest.mark.both_databases


def step_at(database: Database, cluster_id: str, *times: float) -> list[int | None]:
    made = []
    for seconds in times:
        set_time(database, cluster_id, seconds)
        made.append(live.step_cluster(database, cluster_id))
    return made


def test_a_job_is_profiled_started_run_and_finished_and_leaves_its_history(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id)
    step_at(database, cluster_id, *range(10, 2000, 60))
    row = job(database, job_id)
    assert (row.state, row.progress, row.remaining_work, row.gpus) == ("succeeded", 1.0, 0.0, None)
    assert row.started_seconds is not None
    assert row.finished_seconds is not None
    assert states_of(database, job_id)[:4] == [
        JobState.PROFILING,
        JobState.PENDING,
        JobState.STARTING,
        JobState.RUNNING,
    ]
    spans = spans_of(database, job_id)
    assert spans[0].from_seconds == row.started_seconds
    assert spans[-1].to_seconds == row.finished_seconds
    assert all(span.total_batch_size is not None for span in spans)
    assert sum(
        (span.to_seconds - span.from_seconds) * span.gpu_count for span in spans if span.to_seconds
    ) == pytest.approx(row.gpu_seconds)
    assert_history_is_whole(database, cluster_id)


def test_a_round_is_made_once_in_every_interval(database: Database) -> None:
    cluster_id = make_cluster(database)
    assert step_at(database, cluster_id, 10, 20, 59, 60, 61, 130) == [1, None, None, 2, None, 3]


def test_a_round_that_came_late_is_not_followed_at_once_by_the_next(database: Database) -> None:
    cluster_id = make_cluster(database)
    assert step_at(database, cluster_id, 10, 115, 121, 146, 185) == [1, 2, None, 3, 4]


def test_rounds_that_were_missed_are_not_made_up(database: Database) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=3)
    assert step_at(database, cluster_id, 10, 70, 100_000) == [1, 2, 3]
    assert {row.state for row in jobs_of(database, cluster_id)} == {"succeeded"}
    assert_history_is_whole(database, cluster_id)


def test_a_paused_cluster_makes_no_rounds(database: Database) -> None:
    cluster_id = make_cluster(database, paused=True)
    assert live.due_clusters(database) == []
    assert step_at(database, cluster_id, 10, 100) == [None, None]


def test_a_clock_that_goes_back_makes_no_round(database: Database) -> None:
    cluster_id = make_cluster(database)
    assert step_at(database, cluster_id, 1000, 500) == [1, None]


def test_a_cancelled_job_gives_back_its_gpus_at_the_next_round(database: Database) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, work_scale=100.0)
    step_at(database, cluster_id, 30, 90)
    assert job(database, job_id).gpus is not None
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        row.cancel_requested = True
        session.add(row)
    step_at(database, cluster_id, 150)
    row = job(database, job_id)
    assert (row.state, row.gpus, row.finished_seconds) == ("cancelled", None, pytest.approx(150))
    with database.session_scope(writes=False) as session:
        assert session.exec(select(Round.gpus_used).order_by(col(Round.number).desc())).first() == 0
    assert_history_is_whole(database, cluster_id)


def test_a_job_that_can_never_run_fails_and_says_why_while_the_others_go_on(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    (good,) = submit(database, cluster_id)
    (bad,) = submit(database, cluster_id, model="gone-from-the-catalog")
    step_at(database, cluster_id, 30, 90)
    assert (job(database, bad).state, job(database, bad).gpus) == ("failed", None)
    assert job(database, good).gpus is not None
    assert_history_is_whole(database, cluster_id)
    with database.session_scope(writes=False) as session:
        event = session.exec(
            select(JobEvent).where(JobEvent.job_id == bad, JobEvent.state == "failed")
        ).one()
    assert event.data["field"] == "model"


def test_a_job_that_is_over_still_says_what_it_waited_for(database: Database) -> None:
    cluster_id = make_cluster(database)
    whole: dict[str, Any] = {
        "adaptivity": "rigid",
        "gpu_count": 8,
        "batch_size": 512,
        "gpu_types": ["a100"],
        "preemptible": False,
    }
    submit(database, cluster_id, **whole)
    (second,) = submit(database, cluster_id, submitted_seconds=1.0, **whole)
    step_at(database, cluster_id, *range(30, 4000, 60))
    row = job(database, second)
    assert row.state == "succeeded"

    with database.session_scope(writes=False) as session:
        admin = Principal(
            "usr_x", "x", "ten_x", "x", Role.CLUSTER_ADMIN, PERMISSIONS[Role.CLUSTER_ADMIN]
        )
        found = waited_for(session, admin, row)

    assert found is not None
    assert found["code"] == "WAITING_CAPACITY"
    assert "GPUs that it" in found["sentence"]
    assert found["as_of_round"] == spans_of(database, second)[0].round_number - 1


def test_every_active_job_knows_why_it_has_what_it_has(database: Database) -> None:
    cluster_id = make_cluster(database)
    ids = submit(database, cluster_id, count=24, work_scale=100.0)
    step_at(database, cluster_id, 30)
    rows = [job(database, job_id) for job_id in ids]
    assert {row.as_of_round for row in rows} == {1}
    assert all((row.gpus is not None) == (row.reason_code == "GRANTED") for row in rows)
    assert any(row.gpus is None for row in rows)


def reserve(database: Database, cluster_id: str, **fields: Any) -> str:
    owner, tenant = make_owner(database)
    settings = {"tenant_id": tenant, "start_seconds": 0.0, **fields}
    with database.session_scope() as session:
        row = ClusterReservation(cluster_id=cluster_id, owner_id=owner, **settings)
        session.add(row)
    return row.id


def test_a_round_leaves_reserved_gpus_to_their_holder_and_says_to_the_others_for_whom_they_are(
    database: Database,
) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    first, second = submit(
        database, cluster_id, count=2, work_scale=100.0, gpu_types=["a100"], gpu_count=8
    )
    reserve(
        database,
        cluster_id,
        gpu_type="a100",
        gpu_count=8,
        tenant_id=None,
        job_id=second,
        end_seconds=200.0,
    )
    step_at(database, cluster_id, 30)
    assert (job(database, first).gpus, job(database, second).gpus) == (None, list(range(8, 16)))
    why = show_reason(job(database, first), WHOLE)
    assert (why["code"], why["sentence"]) == (
        "WAITING_RESERVATION",
        f"GPUs that it could use are reserved for others: a100 for job {second}.",
    )
    assert why["evidence"]["binding_limit"] == f"reservation:a100:job {second}"


def test_a_reservation_for_a_tenant_is_named_by_the_tenant_and_binds_only_while_it_holds(
    database: Database,
) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    (mine,) = submit(database, cluster_id, work_scale=100.0, gpu_types=["a100"], gpu_count=8)
    with database.session_scope() as session:
        other = Tenant(name="vision")
        session.add(other)
        session.flush()
        other_id = other.id
    reserve(
        database,
        cluster_id,
        gpu_type="a100",
        gpu_count=1,
        tenant_id=other_id,
        start_seconds=0.0,
        end_seconds=100.0,
    )
    step_at(database, cluster_id, 30)
    assert job(database, mine).gpus is None
    assert (
        show_reason(job(database, mine), WHOLE)["sentence"]
        == "GPUs that it could use are reserved for others: a100 for tenant vision."
    )
    step_at(database, cluster_id, 130)
    assert job(database, mine).gpus is not None


def test_a_reservation_for_a_job_that_has_ended_or_of_a_type_that_is_gone_holds_nobody_up(
    database: Database,
) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    waits, gone = submit(
        database, cluster_id, count=2, work_scale=100.0, gpu_types=["a100"], gpu_count=8
    )
    reserve(database, cluster_id, gpu_type="a100", gpu_count=8, tenant_id=None, job_id=gone)
    reserve(database, cluster_id, gpu_type="h100", gpu_count=8)
    with database.session_scope() as session:
        row = session.get_one(Job, gone)
        row.state, row.finished_seconds = "cancelled", 0.0
    assert step_at(database, cluster_id, 30) == [1]
    assert job(database, waits).gpus == list(range(8, 16))


def test_inference_runs_beside_training_and_a_promise_gets_what_keeps_it(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    kinds = {"gpu_types": ["a100"], "work_scale": 5.0}
    (batch,) = submit(database, cluster_id, workload_kind="batch-inference", **kinds)
    (kept,) = submit(
        database,
        cluster_id,
        workload_kind="latency-inference",
        batch_size=64,
        promised_seconds=30.0,
        **kinds,
    )
    (never,) = submit(
        database,
        cluster_id,
        workload_kind="latency-inference",
        batch_size=64,
        promised_seconds=1e-4,
        **kinds,
    )
    step_at(database, cluster_id, 30, 90)
    assert job(database, batch).gpus is not None
    assert len(job(database, kept).gpus or ()) == 1, (
        "one GPU keeps the promise, more would be worth no more"
    )
    assert (job(database, never).gpus, job(database, never).reason_code) == (
        None,
        "NO_COMPATIBLE_GPU_TYPE",
    )
    assert job(database, never).reason_evidence["promised_seconds"] == 1e-4


def test_a_job_keeps_its_gpus_when_a_node_before_them_goes(database: Database) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, work_scale=100.0, gpu_types=["a100"], max_gpus=1)
    step_at(database, cluster_id, 30)
    assert job(database, job_id).gpus == [8]
    with database.session_scope() as session:
        session.delete(session.exec(select(Node).where(Node.name == "t4-0")).one())
    step_at(database, cluster_id, 90)
    row = job(database, job_id)
    assert (row.gpus, row.gpu_type, row.restarts, row.state) == ([4], "a100", 0, "running")
    assert len(spans_of(database, job_id)) == 1


def test_a_job_whose_node_goes_is_preempted_and_finds_another_place(database: Database) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    (job_id,) = submit(database, cluster_id, work_scale=100.0, gpu_types=["t4"], gpu_count=4)
    step_at(database, cluster_id, 30, 150)
    assert job(database, job_id).gpus == [0, 1, 2, 3]
    with database.session_scope() as session:
        session.delete(session.exec(select(Node).where(Node.name == "t4-0")).one())
    step_at(database, cluster_id, 210)
    assert states_of(database, job_id)[-2:] == [JobState.PREEMPTED, JobState.RESTARTING]
    assert (job(database, job_id).gpus, job(database, job_id).restarts) == ([0, 1, 2, 3], 1)
    assert [span.from_seconds for span in spans_of(database, job_id)] == pytest.approx([30, 210])


def test_every_stretch_of_a_moved_job_has_its_batch_even_where_it_is_the_one_before(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(
        database,
        cluster_id,
        work_scale=100.0,
        gpu_types=["a100"],
        adaptivity="rigid",
        gpu_count=1,
        batch_size=128,
    )
    step_at(database, cluster_id, 30, 150)
    with database.session_scope() as session:
        node = session.exec(select(Node).where(Node.name == "a100-0")).one()
        node.drained_gpus = [0]
        session.add(node)
    step_at(database, cluster_id, 210, 330, 390)
    spans = spans_of(database, job_id)
    assert len(spans) == 2
    assert [span.total_batch_size for span in spans] == [128, 128]


def test_jobs_leave_gpus_that_are_drained(database: Database) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, work_scale=100.0, gpu_types=["a100"], max_gpus=1)
    step_at(database, cluster_id, 30, 150)
    assert job(database, job_id).gpus == [8]
    with database.session_scope() as session:
        node = session.exec(select(Node).where(Node.name == "a100-0")).one()
        node.drained_gpus = [0]
        session.add(node)
    step_at(database, cluster_id, 210)
    assert job(database, job_id).gpus != [8]
    with database.session_scope(writes=False) as session:
        assert (
            session.exec(select(Round).order_by(col(Round.number).desc()))
            .first()
            .gpus_by_type["a100"]["capacity"]
            == 7
        )  # type: ignore[union-attr]


def test_a_step_that_dies_before_its_commit_leaves_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id)
    with monkeypatch.context() as patch:
        patch.setattr(SqlRoundStore, "_write_runtime", _die)
        with pytest.raises(Died):
            step_at(database, cluster_id, 30)
    assert (
        round_numbers(database, cluster_id),
        job(database, job_id).state,
        states_of(database, job_id),
    ) == ([], "submitted", [])
    assert step_at(database, cluster_id, 31) == [1]


def test_a_step_that_dies_between_commit_and_executor_is_carried_out_by_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = make_cluster(database)
    ids = submit(database, cluster_id, count=4, work_scale=100.0)
    with monkeypatch.context() as patch:
        patch.setattr(SqlRoundStore, "applied", _die)
        with pytest.raises(Died):
            step_at(database, cluster_id, 30)
    assert waiting_messages(database, cluster_id) == [1]
    assert {job(database, job_id).state for job_id in ids} == {"pending"}
    assert step_at(database, cluster_id, 90) == [2]
    assert waiting_messages(database, cluster_id) == []
    assert [job(database, job_id).started_seconds for job_id in ids] == pytest.approx([30] * 4)
    assert_history_is_whole(database, cluster_id)


def test_a_history_cut_by_deaths_is_the_history_without_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = make_cluster(database, name="whole"), make_cluster(database, name="cut")
    for cluster_id in (whole, cut):
        submit(database, cluster_id, count=12, work_scale=0.5)
    times = [float(t) for t in range(30, 1800, 60)]
    step_at(database, whole, *times)
    for i, seconds in enumerate(times):
        if i % 3 == 1:
            with monkeypatch.context() as patch:
                patch.setattr(SqlRoundStore, "applied", _die)
                with pytest.raises(Died):
                    step_at(database, cut, seconds)
        else:
            step_at(database, cut, seconds)
    shown = [
        [
            (r.state, r.progress, r.restarts, r.finished_seconds, r.gpu_seconds)
            for r in jobs_of(database, c)
        ]
        for c in (whole, cut)
    ]
    assert [
        pytest.approx(row[1:], nan_ok=True) == other[1:] and row[0] == other[0]
        for row, other in zip(*shown, strict=True)
    ].count(False) == 0
    assert_history_is_whole(database, cut)


def test_a_cluster_may_change_its_policy_between_rounds(database: Database) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, count=4, gpu_count=2, work_scale=100.0)
    step_at(database, cluster_id, 30)
    with database.session_scope() as session:
        row = session.get_one(Cluster, cluster_id)
        row.policy, row.policy_parameters, row.placer = "srtf", {}, "packed-sticky"
        session.add(row)
    step_at(database, cluster_id, 90)
    with database.session_scope(writes=False) as session:
        assert session.exec(select(Round.policy).order_by(col(Round.number))).all() == [
            "sia",
            "srtf",
        ]
        assert session.get_one(ClusterRuntime, cluster_id).round_number == 2


def test_a_cluster_whose_executor_this_version_does_not_have_makes_no_round_and_says_why(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    newer = make_cluster(database, name="newer", executor="warp-drive")
    other = make_cluster(database, name="other")
    (job_id,) = submit(database, newer)
    submit(database, other)
    assert step_at(database, other, 30) == [1]
    assert step_at(database, newer, 30) == [None]
    said = [record.getMessage() for record in caplog.records if newer in record.getMessage()]
    assert said == [
        f"cluster {newer} has the executor 'warp-drive', which this version does not have: "
        "no round is made"
    ]
    assert job(database, job_id).state == "submitted"
    assert step_at(database, other, 90) == [2]
    with database.session_scope() as session:
        session.get_one(Cluster, newer).executor = "simulated"
    assert step_at(database, newer, 90) == [1]


class Died(Exception):
    """Stands for the end of the process."""


def _die(*_: object, **__: object) -> None:
    raise Died
