"""A job that reports what is unlikely is flagged once, and believed less until dismissed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from sqlmodel import col, select
from training_samples import TrainingCluster

from backend.accounts.principals import principal_where
from backend.jobs.flags import dismiss_flag
from backend.models import (
    AttemptRow,
    AuditRecord,
    Job,
    JobFit,
    JobFlag,
    StepSample,
    User,
    Webhook,
    WebhookNotice,
)
from maat.scheduling.events import EventKind
from maat.vocabulary import AttemptState, Doubted, JobState, Outcome, WebhookEvent
from worker.webhooks.messages import told_of

HONEST, LIE = 0.1, 0.002


def submit(cluster: TrainingCluster, seconds: float) -> str:
    """Submit a job whose steps of 32 samples on one t4 were timed, at 100 s of its life."""
    job_id = cluster.submit("train", adaptivity="adaptive", batch_size=32, max_batch_size=256)
    with cluster.database.session_scope() as session:
        row = session.get_one(Job, job_id)
        session.add(
            StepSample(
                job_id=job_id,
                gpu_type="t4",
                node_count=1,
                replica_count=1,
                per_gpu_batch_size=32,
                accumulation_steps=0,
                count=100,
                step_mean=seconds,
                step_m2=0.0,
                sync_mean=0.0,
                believed_step=seconds,
                believed_sync=0.0,
                believed_weight=1.0,
                first_seconds=0.0,
                last_seconds=0.0,
            )
        )
        session.add(
            AttemptRow(
                job_id=job_id,
                cluster_id=row.cluster_id,
                number=1,
                round_number=1,
                state=AttemptState.ENDED.value,
                outcome=Outcome.STOPPED.value,
                reports=True,
                gpu_type="t4",
                gpus_by_node={"t4-0": [0]},
                gpu_count=1,
                ordered_seconds=0.0,
                queued_seconds=0.0,
                running_seconds=0.0,
                ended_seconds=100.0,
                reported_seconds=100.0,
                progress=100.0,
            )
        )
    return job_id


def flags(cluster: TrainingCluster) -> Sequence[JobFlag]:
    with cluster.database.session_scope(writes=False) as session:
        return session.exec(select(JobFlag)).all()


def audited(cluster: TrainingCluster, action: str) -> Sequence[AuditRecord]:
    with cluster.database.session_scope(writes=False) as session:
        return session.exec(select(AuditRecord).where(col(AuditRecord.action) == action)).all()


def believed_seconds(cluster: TrainingCluster, job_id: str) -> float:
    with cluster.database.session_scope(writes=False) as session:
        (fit,) = session.exec(select(JobFit).where(JobFit.job_id == job_id)).all()
        return float(fit.samples[0][3])


def test_a_liar_is_flagged_once_told_of_and_believed_as_usual_until_it_is_dismissed(
    cluster: TrainingCluster,
) -> None:
    for _ in range(3):
        submit(cluster, HONEST)
    liar = submit(cluster, LIE)
    for _ in range(2):
        cluster.forget_everything()  # as another worker would see it
        cluster.wind(60.0)
        cluster.note()
    (flag,) = flags(cluster)
    assert (flag.job_id, flag.kind, flag.attempt) == (liar, Doubted.KIND, 1)
    assert (flag.said, flag.seen) == (pytest.approx(LIE), pytest.approx(HONEST))
    (event,) = cluster.events(liar, EventKind.FLAG)
    assert event["flag"] == Doubted.KIND
    (record,) = audited(cluster, "flag job")
    assert (record.target_id, record.actor_name) == (liar, "rounds")
    assert believed_seconds(cluster, liar) == pytest.approx(HONEST)

    with cluster.database.session_scope() as session:
        owner = session.get_one(Job, liar).owner_id
        principal = principal_where(session, col(User.id) == owner)
        dismiss_flag(session, principal, liar, Doubted.KIND)
        dismiss_flag(session, principal, liar, Doubted.KIND)
    assert len(audited(cluster, "dismiss flag")) == 1
    cluster.wind(60.0)
    cluster.note()
    assert len(flags(cluster)) == 1
    assert believed_seconds(cluster, liar) == pytest.approx(HONEST / 3)  # bounded, as all are


@pytest.mark.both_databases
def test_webhooks_of_its_tenant_hear_of_a_flag(cluster: TrainingCluster) -> None:
    for _ in range(3):
        liar = submit(cluster, HONEST)
    with cluster.database.session_scope() as session:
        job = session.get_one(Job, liar)
        session.add(
            Webhook(
                name="ours",
                owner_id=job.owner_id,
                tenant_id=job.tenant_id,
                url="https://hooks.example/x",
                events=[WebhookEvent.JOB_FLAGGED.value],
                secret=b"x",
            )
        )
    liar = submit(cluster, LIE)
    cluster.note()
    with cluster.database.session_scope(writes=False) as session:
        told = [
            found
            for notice in session.exec(select(WebhookNotice))
            if (found := told_of(session, notice, public_url="http://maat.example"))
        ]
        webhook = session.exec(select(Webhook)).one()
        (flagged,) = (one for one in told if one.event is WebhookEvent.JOB_FLAGGED)
        assert flagged.is_heard_by(webhook)
        webhook.tenant_id = "ten_other"
        assert not flagged.is_heard_by(webhook)
        session.rollback()
    assert flagged.content["job"]["id"] == liar
    assert "0.1 s" in flagged.content["event"]["data"]["reason"]


def test_work_that_a_job_goes_beyond_counts_as_unknown(cluster: TrainingCluster) -> None:
    job_id = submit(cluster, HONEST)
    with cluster.database.session_scope() as session:
        mine = sa.update(AttemptRow).where(col(AttemptRow.job_id) == job_id)
        session.execute(mine.values(total_samples=110.0, least_total_samples=110.0))
    cluster.note()
    assert cluster.state(job_id) != JobState.SUCCEEDED
    with cluster.database.session_scope() as session:
        assert session.get_one(Job, job_id).remaining_work == pytest.approx(10.0)
        mine = sa.update(AttemptRow).where(col(AttemptRow.job_id) == job_id)
        session.execute(mine.values(progress=200.0, reported_seconds=101.0))
    cluster.note()
    cluster.note()
    assert [flag.kind for flag in flags(cluster)] == [Doubted.WORK]
    with cluster.database.session_scope(writes=False) as session:
        assert session.get_one(Job, job_id).remaining_work > 1e6
