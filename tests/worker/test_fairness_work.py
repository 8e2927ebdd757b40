"""Tests of rho of live jobs: it is worked out once, whatever dies, from what was believed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from live_samples import job, jobs_of, make_cluster, make_owner, set_time, submit
from sqlmodel import col, select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.fairness.formula import VERSION
from backend.fairness.requests import in_period, request_again, skip
from backend.models import (
    AttemptRow,
    Cluster,
    EndedBelief,
    GradientSample,
    Job,
    JobCommand,
    JobFairness,
    Operation,
    OperationState,
    ShareDay,
    StepSample,
    WaitReason,
)
from backend.operations.service import cancel_operation
from maat.laboratory.fairness import IsolatedRuns
from maat.scheduling.cluster import Cluster as EngineCluster
from maat.scheduling.isolation import fair_shares
from maat.scheduling.metrics import finish_time_fairness
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import FairnessRule, JobState, WithoutRho
from maat.workloads.workloads import TraceJob, Workload
from worker.fairness import days, requests, work
from worker.live import step as live

pytestmark = pytest.mark.both_databases


def play(database: Database, cluster_id: str, *, until: float = 6000.0) -> None:
    """Make a round each minute until all jobs have ended."""
    for seconds in np.arange(10.0, until, 60.0).tolist():
        set_time(database, cluster_id, seconds)
        live.step_cluster(database, cluster_id)
        if all(row.finished_seconds is not None for row in jobs_of(database, cluster_id)):
            return
    raise AssertionError("jobs are left")


def rows(database: Database) -> dict[str, JobFairness]:
    with database.session_scope(writes=False) as session:
        return {row.job_id: row for row in session.exec(select(JobFairness))}


def count(database: Database, table: type[WaitReason | GradientSample]) -> int:
    with database.session_scope(writes=False) as session:
        return session.exec(select(sa.func.count()).select_from(table)).one()


def admin(database: Database) -> Principal:
    owner, tenant = make_owner(database)
    return Principal(
        owner, "owner", tenant, "tenant", Role.CLUSTER_ADMIN, PERMISSIONS[Role.CLUSTER_ADMIN]
    )


def ended(database: Database, cluster_id: str, many: int = 3, **fields: object) -> list[str]:
    """Jobs that waited from second 0 and ended after 100 s, and whose rho is asked for."""
    ids = submit(database, cluster_id, count=many, state="succeeded", finished_seconds=100.0)
    with database.session_scope() as session:
        for job_id in ids:
            row = session.get_one(Job, job_id)
            session.add(
                JobFairness(
                    job_id=job_id,
                    cluster_id=cluster_id,
                    tenant_id=row.tenant_id,
                    finished_seconds=100.0,
                    **fields,
                )
            )
            samples = {"t4": [[1, 1, 64, 0.1, 0.0], [1, 2, 64, 0.11, 0.01]]}
            session.add(EndedBelief(job_id=job_id, samples=samples))
    return ids


def test_rho_of_a_job_that_was_alone_is_near_one(database: Database) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, model="cifar10", work_scale=3.0)
    play(database, cluster_id)
    assert work.is_waiting(database)
    assert work.work_out(database)
    assert not work.is_waiting(database)
    row = rows(database)[job_id]
    assert (row.state, row.reason, row.formula_version) == ("succeeded", None, VERSION)
    assert row.contention == pytest.approx(1.0)
    assert row.rho is not None
    assert 0.7 < row.rho < 1.4
    assert row.why is not None
    parts = sum(value for name, value in row.why.items() if name.endswith("_seconds"))
    assert parts == pytest.approx(row.jct_seconds)
    hours, by_type = row.why["held_hours"], row.why["held_gpu_hours"]
    assert 0 < hours * 3600 <= row.jct_seconds
    assert hours <= sum(by_type.values()) <= 16 * hours
    assert row.shape == [["t4", 4, 2], ["a100", 8, 1]]


def test_rho_agrees_with_that_of_the_laboratory_as_far_as_belief_with_truth(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    kinds = (("cifar10", 1.0, 0.0), ("bert", 0.4, 30.0), ("cifar10", 0.6, 200.0))
    jobs = {
        submit(database, cluster_id, model=model, work_scale=scale, submitted_seconds=at)[0]: (
            TraceJob(
                name="",
                submit_seconds=at,
                model=model,
                gpu_count=1,
                work_scale=scale,
                batch_size=None,
            )
        )
        for model, scale, at in kinds
    }
    play(database, cluster_id)
    work.work_out(database)
    cluster = EngineCluster.parse("t4=2x4,a100=1x8")
    workload = Workload("hand-made", tuple(jobs.values()), "sia")
    alone = IsolatedRuns(Scenario(workload, catalog_models(), cluster, policy="sia"))
    gpus = {"t4": 8, "a100": 8}
    for job_id, row in rows(database).items():
        assert row.rho is not None
        assert row.contention is not None
        assert row.jct_seconds is not None
        shares = fair_shares(gpus, row.contention, FairnessRule.MEAN_OF_RATIOS)
        truth = finish_time_fairness(row.jct_seconds, alone.by_type(jobs[job_id], shares), gpus)
        assert row.rho == pytest.approx(truth, rel=0.35)


def test_contention_counts_all_jobs_of_the_cluster_exactly(database: Database) -> None:
    cluster_id, other = make_cluster(database), make_cluster(database, name="other")
    first, *_ = ended(database, cluster_id, 2)
    submit(database, cluster_id, state="pending", submitted_seconds=50.0)
    submit(database, other, state="pending")
    work.work_out(database)
    assert rows(database)[first].contention == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"state": "failed"}, WithoutRho.NOT_SUCCEEDED),
        ({"state": "cancelled"}, WithoutRho.NOT_SUCCEEDED),
        (
            {"workload_kind": "latency-inference", "promised_seconds": 1.0, "batch_size": 8},
            WithoutRho.LATENCY_BOUND,
        ),
        ({"model": "gone from the catalog"}, WithoutRho.NO_MODEL),
        ({"gpu_types": ["rtx"]}, WithoutRho.NO_TYPE),
    ],
)
def test_who_has_no_rho_is_left_out_with_the_reason(
    database: Database, change: dict[str, object], reason: WithoutRho
) -> None:
    (job_id,) = ended(database, make_cluster(database), 1)
    with database.session_scope() as session:
        session.execute(sa.update(Job).where(col(Job.id) == job_id).values(**change))
    work.work_out(database)
    row = rows(database)[job_id]
    assert (row.state, row.rho, row.reason) == ("succeeded", None, reason)


def test_a_job_of_which_nothing_was_kept_is_left_out(database: Database) -> None:
    (job_id,) = ended(database, make_cluster(database), 1)
    with database.session_scope() as session:
        session.execute(sa.delete(EndedBelief))
    work.work_out(database)
    assert rows(database)[job_id].reason == WithoutRho.NO_MODEL


def test_waits_are_told_by_reason_and_what_they_were_told_from_is_deleted(
    database: Database,
) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    rigid = {"adaptivity": "rigid", "gpu_count": 8, "batch_size": 512, "gpu_types": ["a100"]}
    first, second = submit(database, cluster_id, count=2, work_scale=1.0, **rigid)
    play(database, cluster_id)
    assert count(database, WaitReason) > 0
    work.work_out(database)
    waited = rows(database)[second].why
    assert waited is not None
    reasons = {one["code"]: one["seconds"] for one in waited["reasons"]}
    assert max(reasons, key=reasons.__getitem__) in ("BEHIND_IN_ORDER", "WAITING_CAPACITY")
    assert sum(reasons.values()) == pytest.approx(
        waited["waiting_seconds"] + waited["profiling_seconds"]
    )
    began, over = job(database, second).started_seconds, job(database, first).finished_seconds
    assert began is not None
    assert over is not None
    assert began >= over
    assert (count(database, WaitReason), count(database, GradientSample)) == (0, 0)


def test_a_worker_that_stops_in_the_middle_leaves_its_jobs_to_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ended(database, make_cluster(database))
    monkeypatch.setattr(work, "_store", lambda *_: None)  # killed before it stored anything
    work.work_out(database)
    monkeypatch.undo()
    assert not work.is_waiting(database), "it may be at it still"
    with database.session_scope() as session:
        long_ago = utc_now() - timedelta(minutes=1)
        session.execute(sa.update(JobFairness).values(heartbeat_at=long_ago))
    assert work.work_out(database)
    assert {rows(database)[job_id].state for job_id in ids} == {"succeeded"}


def test_who_lost_a_claim_writes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job_id,) = ended(database, make_cluster(database), 1)
    store = work._store

    def late(given: Database, *rest: object) -> None:
        with given.session_scope() as session:  # another worker has claimed it since
            session.execute(sa.update(JobFairness).values(started_at=utc_now()))
        store(given, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "_store", late)
    work.work_out(database)
    assert (rows(database)[job_id].state, rows(database)[job_id].rho) == ("running", None)


def test_a_job_that_takes_too_long_fails_by_the_time_limit_and_others_are_done(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = ended(database, make_cluster(database), 2)
    rho_of = work.rho_of

    def slowly(given: work.Ended, *, look: object) -> object:
        while given.job_id == slow:
            look()  # type: ignore[operator]
            time.sleep(0.01)
        return rho_of(given, look=look)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "rho_of", slowly)
    while work.work_out(database, job_seconds=0.5):
        pass
    found = rows(database)
    assert (found[slow].state, found[slow].reason) == ("failed", WithoutRho.TIME_LIMIT)
    assert found[quick].rho is not None


def test_a_fault_fails_its_job_alone(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, whole = ended(database, make_cluster(database), 2)
    with database.session_scope() as session:
        row = session.get_one(EndedBelief, broken)
        row.samples = {"t4": [["no number"]]}  # type: ignore[list-item]
        session.add(row)
    while work.work_out(database):
        pass
    found = rows(database)
    assert (found[broken].state, found[broken].reason) == ("failed", WithoutRho.FAULT)
    assert found[whole].rho is not None


def test_an_operator_skips_a_job_that_waits_and_one_that_is_worked_at(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, works = ended(database, make_cluster(database), 2)
    principal = admin(database)
    with database.session_scope() as session:
        assert skip(session, principal, waits).state == "cancelled"
    monkeypatch.setattr(work, "LOOK_SECONDS", 0.0)

    def until_skipped(given: work.Ended, *, look: object) -> object:
        with database.session_scope() as session:
            skip(session, principal, works)
        while True:
            look()  # type: ignore[operator]

    monkeypatch.setattr(work, "rho_of", until_skipped)
    work.work_out(database)
    found = rows(database)
    assert {found[one].state for one in (waits, works)} == {"cancelled"}
    assert {found[one].reason for one in (waits, works)} == {WithoutRho.SKIPPED}


def test_rho_is_worked_out_again_and_the_request_says_how_far_it_is(database: Database) -> None:
    cluster_id = make_cluster(database)
    ended(database, cluster_id)
    work.work_out(database)
    before, principal = rows(database), admin(database)
    with database.session_scope() as session:
        session.execute(sa.update(JobFairness).values(formula_version=0))
        operation = request_again(session, principal, in_period(cluster_id, 0.0, 1e6))
    requests.settle(database)
    assert all(row.rho == before[row.job_id].rho for row in rows(database).values())
    work.work_out(database)
    requests.settle(database)
    with database.session_scope(writes=False) as session:
        after = session.get_one(Operation, operation.id)
    assert (after.state, after.done, after.total) == (OperationState.SUCCEEDED, 3.0, 3.0)
    assert {row.formula_version for row in rows(database).values()} == {VERSION}
    assert {k: row.rho for k, row in rows(database).items()} == {
        k: row.rho for k, row in before.items()
    }


def test_a_request_that_is_cancelled_leaves_what_is_not_begun_as_it_was(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    ended(database, cluster_id)
    work.work_out(database)
    new = ended(database, cluster_id, 1)
    principal = admin(database)
    with database.session_scope() as session:
        operation = request_again(session, principal, in_period(cluster_id, 0.0, 1e6))
        cancel_operation(session, principal, operation.id)
    requests.settle(database)
    with database.session_scope(writes=False) as session:
        assert session.get_one(Operation, operation.id).state == OperationState.CANCELLED
    found = rows(database)
    assert {row.state for key, row in found.items() if key not in new} == {"succeeded"}
    assert found[new[0]].state == "queued", "it was not asked for by this request alone"


def test_days_that_are_over_are_kept_once_and_say_what_the_rows_say(database: Database) -> None:
    cluster_id = make_cluster(database)
    with database.session_scope() as session:
        cluster = session.get_one(Cluster, cluster_id)
        cluster.epoch = cluster.epoch.replace(hour=0, minute=0, second=0, microsecond=0)
        session.add(cluster)
    submit(database, cluster_id, state="pending", submitted_seconds=3600.0, max_gpus=4)
    set_time(database, cluster_id, 2 * 86_400.0 + 3600.0)
    assert days.are_due(database)
    assert (days.keep_days(database), days.keep_days(database)) == (2, 0)
    assert not days.are_due(database)
    with database.session_scope(writes=False) as session:
        first, second = session.exec(select(ShareDay).order_by(col(ShareDay.day))).all()
    assert (first.capacity_gpu_seconds, second.capacity_gpu_seconds) == (16 * 86_400,) * 2
    ((deserved, held, demanded),) = first.tenants.values()
    assert (deserved, held, demanded) == (4 * 82_800, 0.0, 4 * 82_800)


def test_a_clusters_first_day_has_no_gpus_from_before_the_cluster(database: Database) -> None:
    cluster_id = make_cluster(database)
    with database.session_scope() as session:
        cluster = session.get_one(Cluster, cluster_id)
        cluster.epoch = cluster.epoch.replace(hour=15, minute=0, second=0, microsecond=0)
    submit(database, cluster_id, state="pending", submitted_seconds=0.0, max_gpus=4)
    set_time(database, cluster_id, 10 * 3600.0)
    assert days.keep_days(database) == 1
    with database.session_scope(writes=False) as session:
        first = session.exec(select(ShareDay)).one()
    assert first.capacity_gpu_seconds == 16 * 9 * 3600
    assert list(first.tenants.values()) == [[4 * 9 * 3600, 0.0, 4 * 9 * 3600]]


def test_killed_in_the_middle_nothing_is_lost_and_nothing_doubled(
    database: Database, tmp_path: Path
) -> None:
    """A real process, killed with -9 between claim and result."""
    ids = ended(database, make_cluster(database))
    begun = tmp_path / "begun"
    script = textwrap.dedent(
        f"""
        import pathlib, time
        from backend.database import Database
        from worker.fairness import work
        def hang(given, *, look):
            pathlib.Path({str(begun)!r}).touch()
            time.sleep(600)
        work.rho_of = hang
        work.work_out(Database({database.engine.url.render_as_string(hide_password=False)!r}))
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    try:
        for _ in range(600):
            if begun.exists():
                break
            time.sleep(0.05)
        assert begun.exists()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert {row.state for row in rows(database).values()} == {"running"}
    with database.session_scope() as session:  # as if the time had passed
        session.execute(
            sa.update(JobFairness).values(heartbeat_at=utc_now() - timedelta(minutes=1))
        )
    while work.work_out(database):
        pass
    found = rows(database)
    assert {found[job_id].state for job_id in ids} == {"succeeded"}
    assert len({found[job_id].rho for job_id in ids}) == 1
    assert job(database, ids[0]).state == JobState.SUCCEEDED


def command_job(database: Database, **fields: object) -> str:
    """A command that has ended after 1000 s on one t4, and what its agent reported."""
    cluster_id = make_cluster(database, executor="local")
    (job_id,) = ended(database, cluster_id, 1)
    with database.session_scope() as session:
        session.execute(sa.delete(EndedBelief))
        whole = {"batch_size": 64, "finished_seconds": 1000.0, "model": "mine"} | fields
        session.execute(sa.update(Job).where(col(Job.id) == job_id).values(**whole))
        session.execute(sa.update(JobFairness).values(finished_seconds=1000.0))
        session.add(JobCommand(job_id=job_id, argv=["x"], cwd="/", stop_seconds=5.0, max_retries=0))
        times = {"first_seconds": 0.0, "last_seconds": 1000.0}
        measured = {"step_mean": 0.64, "step_m2": 0.0, "sync_mean": 0.0, "count": 100}
        believed = {"believed_step": 0.64, "believed_sync": 0.0, "believed_weight": 1.0}
        session.add(
            StepSample(
                job_id=job_id,
                gpu_type="t4",
                node_count=1,
                replica_count=1,
                per_gpu_batch_size=64,
                accumulation_steps=0,
                **times,
                **measured,
                **believed,
            )
        )
        session.add(
            AttemptRow(
                job_id=job_id,
                cluster_id=cluster_id,
                number=1,
                round_number=1,
                state="ended",
                outcome="succeeded",
                reports=True,
                gpu_type="t4",
                gpus_by_node={"t4-0": [0]},
                gpu_count=1,
                ordered_seconds=0.0,
                running_seconds=10.0,
                progress=64_000.0,
            )
        )
    return job_id


def test_rho_of_a_command_follows_from_what_its_agent_reported(database: Database) -> None:
    job_id = command_job(database, adaptivity="rigid", gpu_count=1)
    work.work_out(database)
    row = rows(database)[job_id]
    assert row.reason is None, row.detail
    assert row.isolated_seconds is not None
    # 64,000 samples at 100 samples/s after one start of 30 s; a100 lends the model of t4.
    assert row.isolated_seconds["t4"] == pytest.approx(670.0, rel=0.02)
    assert row.rho == pytest.approx(1000 / 670, rel=0.02)


def test_a_command_of_unknown_work_or_without_reports_is_left_out(database: Database) -> None:
    job_id = command_job(database)
    with database.session_scope() as session:
        session.execute(sa.update(AttemptRow).values(progress=None))
    work.work_out(database)
    assert rows(database)[job_id].reason == WithoutRho.UNKNOWN_WORK
    with database.session_scope() as session:
        session.execute(sa.delete(StepSample))
        session.execute(sa.update(JobFairness).values(state="queued"))
    work.work_out(database)
    assert rows(database)[job_id].reason == WithoutRho.NO_MODEL


def test_nothing_is_left_of_the_gradients_of_a_simulated_job_that_was_cancelled(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    (job_id,) = submit(database, cluster_id, model="cifar10", work_scale=3.0)
    for seconds in (10.0, 70.0, 130.0, 190.0):
        set_time(database, cluster_id, seconds)
        live.step_cluster(database, cluster_id)
    assert count(database, GradientSample) > 0
    with database.session_scope() as session:
        session.execute(sa.update(Job).values(cancel_requested=True))
    play(database, cluster_id)
    work.work_out(database)
    assert rows(database)[job_id].reason == WithoutRho.NOT_SUCCEEDED
    assert count(database, GradientSample) == 0
