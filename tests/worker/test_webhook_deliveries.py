"""Webhooks for events: noticed with the event, told to who may hear, delivered at least once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from live_samples import make_cluster, make_owner, set_time, submit
from report_receiver import Receiver, receiving
from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Cluster,
    Job,
    JobEvent,
    Node,
    Report,
    Tenant,
    User,
    Webhook,
    WebhookDelivery,
    WebhookNotice,
)
from backend.secret_key import secret_key
from backend.settings import Settings
from backend.webhooks.signing import signature
from maat.vocabulary import WebhookEvent
from worker.live import step as live
from worker.webhooks import keeping
from worker.webhooks.courier import Courier, due_webhooks, send_next
from worker.webhooks.notices import take_notices

pytestmark = pytest.mark.both_databases

SECRET, OLD_SECRET = "a-secret-of-more-than-16", "an-old-secret-of-16-or-more"
ALL = [event.value for event in WebhookEvent]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        _env_file=None,
        data_dir=tmp_path,
        database_url=database_url,
        webhooks_to_private_addresses=True,
        webhook_seconds=20.0,
    )


@pytest.fixture
def cluster_id(database: Database) -> str:
    return make_cluster(database)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def hook(
    database: Database, settings: Settings, url: str, *, tenant: str | None = "own", **fields: Any
) -> str:
    """A webhook of the tenant of the jobs; of the deployment if None; else of a new tenant."""
    owner, own = make_owner(database)
    with database.session_scope() as session:
        if tenant not in (None, "own"):
            other = Tenant(name=tenant)
            session.add(other)
            session.flush()
            own = other.id
        row = Webhook(
            tenant_id=None if tenant is None else own,
            owner_id=owner,
            name="pager",
            url=url,
            secret=secret_key(settings).encrypted(SECRET),
            **{"events": ALL, **fields},
        )
        session.add(row)
    return row.id


def tell(database: Database, job_id: str, state: str, **data: Any) -> None:
    """An event of a job, as rounds and requests write them."""
    with database.session_scope() as session:
        job = session.get_one(Job, job_id)
        kind = "deadline" if state == "deadline" else "state"
        told = None if kind == "deadline" else state
        session.add(
            JobEvent(
                job_id=job.id,
                cluster_id=job.cluster_id,
                cluster_seconds=5.0,
                kind=kind,
                state=told,
                data=data,
            )
        )


def send_all(database: Database, settings: Settings) -> None:
    take_notices(database, settings)
    for webhook_id in due_webhooks(database):
        while send_next(database, settings, webhook_id):
            pass


def messages(database: Database) -> list[WebhookDelivery]:
    with database.session_scope(writes=False) as session:
        return list(session.exec(select(WebhookDelivery).order_by(col(WebhookDelivery.number))))


def bring_forward(database: Database) -> None:
    """Let the time of the next try come, the rest end, and signs of life be long ago."""
    past = utc_now() - timedelta(minutes=5)
    with database.session_scope() as session:
        for row in session.exec(select(WebhookDelivery)):
            row.next_try_at = row.heartbeat_at = past
            session.add(row)
        for one in session.exec(select(Webhook)):
            one.rests_until = None
            session.add(one)


def test_what_happens_is_posted_in_order_signed_and_numbered(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    (job_id,) = submit(database, cluster_id)
    hook(database, settings, receiver.url())
    tell(database, job_id, "starting")
    tell(database, job_id, "running")  # of which no webhook is told
    tell(database, job_id, "paused", cause="follows-others")  # nor of this: nobody paused it
    tell(database, job_id, "deadline", seconds_late=60.0)
    tell(database, job_id, "failed", cause="crash", last_lines=["password=hunter2"])
    send_all(database, settings)
    events = receiver.events()
    assert [one["type"] for one in events] == ["job.started", "job.deadline", "job.failed"]
    assert [one["number"] for one in events] == [1, 2, 3]
    assert receiver.ids() == [one["id"] for one in events]
    assert (events[2]["job"]["id"], events[2]["event"]["data"]) == (job_id, {"cause": "crash"})
    for headers, body, _ in receiver.received:
        stamp = int(headers["Maat-Timestamp"])
        assert headers["Maat-Signature"] == f"v1={signature(SECRET, body, timestamp=stamp)}"
        assert b"hunter2" not in body
    assert [(row.state, row.tries, row.answered) for row in messages(database)] == [
        ("succeeded", 1, 204)
    ] * 3
    send_all(database, settings)
    assert len(receiver.received) == 3


def test_a_tenant_never_hears_of_anothers_jobs_and_reports(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    (job_id,) = submit(database, cluster_id)
    owner, tenant_id = make_owner(database)
    own = hook(database, settings, receiver.url())
    other = hook(database, settings, receiver.url(), tenant="others")
    whole = hook(database, settings, receiver.url(), tenant=None)
    elsewhere = make_cluster(database, name="elsewhere")
    hook(database, settings, receiver.url(), cluster_id=elsewhere)
    hook(database, settings, receiver.url(), events=["job.succeeded"])
    hook(database, settings, receiver.url(), active=False)
    tell(database, job_id, "failed")
    with database.session_scope() as session:
        for whose in (tenant_id, None):
            session.add(
                Report(
                    cluster_id=cluster_id,
                    tenant_id=whose,
                    owner_id=owner,
                    period_start=utc_now(),
                    period_end=utc_now(),
                    title="a report",
                    checksum="0",
                    document={},
                )
            )
        node = session.exec(select(Node).where(Node.cluster_id == cluster_id)).first()
        session.execute(
            sa.update(Cluster).where(col(Cluster.id) == cluster_id).values(fault="It is away.")
        )
        session.execute(
            sa.update(Node).where(col(Node.id) == node.id).values(fault="No power.")  # type: ignore[union-attr]
        )
    with database.session_scope() as session:  # it stays away, for another reason: no news
        session.execute(sa.update(Cluster).values(fault="It is still away."))
        session.execute(sa.update(Cluster).where(col(Cluster.id) == cluster_id).values(fault=None))
    send_all(database, settings)
    heard: dict[str, list[str]] = {own: [], other: [], whole: []}
    for one in receiver.events():
        heard.setdefault(one["webhook_id"], []).append(one["type"])
    shared = ["cluster.fault", "cluster.fault", "node.fault", "cluster.recovered"]
    assert {one: sorted(found) for one, found in heard.items() if one in (own, other, whole)} == {
        own: sorted(["job.failed", "report.ready", *shared]),
        other: sorted(shared),
        whole: sorted(["job.failed", "report.ready", "report.ready", *shared]),
    }
    (away,) = (
        one
        for one in receiver.events()
        if (one["webhook_id"], one["type"]) == (other, "cluster.fault")
        and one["cluster"]["id"] == cluster_id
    )
    assert away["fault"] == "It is away."
    assert len(heard) == 4  # and the one that hears of `elsewhere`, whose fault is told too
    (last,) = (found for one, found in heard.items() if one not in (own, other, whole))
    assert last == ["cluster.fault"]


def test_nothing_is_noted_while_no_webhook_is_active(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    (job_id,) = submit(database, cluster_id)
    hook(database, settings, receiver.url(), active=False)
    tell(database, job_id, "failed")
    with database.session_scope(writes=False) as session:
        assert session.exec(select(WebhookNotice)).all() == []


def test_an_event_that_is_rolled_back_is_told_to_nobody(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    (job_id,) = submit(database, cluster_id)
    hook(database, settings, receiver.url())
    event = {"job_id": job_id, "cluster_id": cluster_id, "cluster_seconds": 1.0}
    with database.session_scope() as session:
        session.add(JobEvent(**event, kind="state", state="failed"))
        session.flush()
        session.rollback()
    send_all(database, settings)
    assert receiver.received == []


def test_a_round_tells_of_the_jobs_that_it_starts(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    (job_id,) = submit(database, cluster_id)
    hook(database, settings, receiver.url(), events=["job.started"])
    for number in (1, 2, 3):
        assert live.step_cluster(database, cluster_id) == number
        set_time(database, cluster_id, number * 60.0)
    send_all(database, settings)
    assert [one["job"]["id"] for one in receiver.events()] == [job_id]


def test_a_message_that_fails_waits_lets_others_pass_and_arrives_later(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    first, second = submit(database, cluster_id, count=2)
    with receiving(500) as receiver:
        webhook_id = hook(database, settings, receiver.url())
        tell(database, first, "failed")
        tell(database, second, "failed")
        take_notices(database, settings)
        assert send_next(database, settings, webhook_id)
        assert due_webhooks(database) == []  # it rests
        assert not send_next(database, settings, webhook_id)
        with database.session_scope() as session:
            session.execute(sa.update(Webhook).values(rests_until=None))
        send_all(database, settings)
        assert [row.state for row in messages(database)] == ["queued", "succeeded"]
        (waits, _) = messages(database)
        assert (waits.tries, waits.answered) == (1, 500)
        assert waits.next_try_at > utc_now()
        bring_forward(database)
        send_all(database, settings)
    assert [one["number"] for one in receiver.events()] == [1, 2, 1]
    assert receiver.received[0][1] == receiver.received[2][1]  # the same bytes
    assert [row.state for row in messages(database)] == ["succeeded"] * 2
    with database.session_scope(writes=False) as session:
        assert session.get_one(Webhook, webhook_id).failures == 0


def test_a_message_is_given_up_when_its_time_is_over(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    (job_id,) = submit(database, cluster_id)
    with receiving(500, 500) as receiver:
        hook(database, settings, receiver.url())
        for state in ("starting", "failed"):
            tell(database, job_id, state)
        send_all(database, settings)
        with database.session_scope() as session:
            late = {"until": utc_now() - timedelta(seconds=1)}
            one = sa.update(WebhookDelivery).where(col(WebhookDelivery.number) == 1)
            session.execute(one.values(**late))
        assert keeping.give_up(database) == 1
        gone, waits = messages(database)
        assert (gone.state, waits.state) == ("failed", "queued")
        assert gone.message == (
            "The webhook answered 500. It was given up: its time was over before it arrived."
        )
        assert keeping.prune(database, days=1.0) == 0
        with database.session_scope() as session:
            old = utc_now() - timedelta(days=40)
            session.execute(sa.update(WebhookDelivery).values(finished_at=old))
        assert keeping.prune(database, days=30.0) == 2
    assert len(receiver.received) == 1


KILLED = """
import sys
from backend.database import Database
from backend.settings import Settings
from worker.webhooks.courier import send_next
from worker.webhooks.notices import take_notices
settings = Settings(_env_file=None)
database = Database.of(settings)
take_notices(database, settings)
send_next(database, settings, sys.argv[1])
"""


def test_a_worker_killed_while_it_sends_loses_nothing(
    database: Database, cluster_id: str, settings: Settings, tmp_path: Path
) -> None:
    environment = os.environ | {
        "MAAT_DATA_DIR": str(tmp_path),
        "MAAT_DATABASE_URL": settings.database_url,
        "MAAT_WEBHOOKS_TO_PRIVATE_ADDRESSES": "true",
    }
    secret_key(settings)  # the process reads the same key
    (job_id,) = submit(database, cluster_id)
    with receiving() as receiver:
        receiver.hold.clear()
        webhook_id = hook(database, settings, receiver.url())
        for state in ("starting", "failed"):
            tell(database, job_id, state)
        command = [sys.executable, "-c", KILLED, webhook_id]
        process = subprocess.Popen(command, cwd=ROOT, env=environment)
        assert receiver.arrived.wait(60)
        assert not send_next(database, settings, webhook_id)  # another worker sends to it
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert [row.state for row in messages(database)] == ["running", "queued"]
        receiver.hold.set()
        bring_forward(database)
        send_all(database, settings)
    assert [one["number"] for one in receiver.events()] == [1, 1, 2]
    assert len(set(receiver.ids())) == 2
    assert [row.state for row in messages(database)] == ["succeeded"] * 2


def test_two_workers_tell_each_event_once(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    jobs = submit(database, cluster_id, count=20)
    hook(database, settings, receiver.url())
    for job_id in jobs:
        tell(database, job_id, "failed")
    couriers = [Courier(database, settings) for _ in range(3)]
    for courier in couriers:
        courier.call()
    for courier in couriers:
        courier.wait()
    send_all(database, settings)
    assert [row.number for row in messages(database)] == list(range(1, 21))
    assert sorted(one["job"]["id"] for one in receiver.events()) == sorted(jobs)


def test_while_a_secret_is_replaced_both_sign(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    (job_id,) = submit(database, cluster_id)
    old = secret_key(settings).encrypted(OLD_SECRET)
    until = utc_now() + timedelta(hours=1)
    webhook_id = hook(database, settings, receiver.url(), old_secret=old, old_secret_until=until)
    tell(database, job_id, "starting")
    send_all(database, settings)
    with database.session_scope() as session:
        session.get_one(Webhook, webhook_id).old_secret_until = utc_now()
    tell(database, job_id, "failed")
    send_all(database, settings)
    for (headers, body, _), secrets in zip(
        receiver.received, ([SECRET, OLD_SECRET], [SECRET]), strict=True
    ):
        stamp = int(headers["Maat-Timestamp"])
        signed = [f"v1={signature(one, body, timestamp=stamp)}" for one in secrets]
        assert headers["Maat-Signature"].split(",") == signed


def test_an_owner_who_lost_the_right_is_told_nothing(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    (job_id,) = submit(database, cluster_id)
    hook(database, settings, receiver.url())
    with database.session_scope() as session:
        session.execute(sa.update(User).values(role="submitter"))
    tell(database, job_id, "failed")
    send_all(database, settings)
    (row,) = messages(database)
    assert (row.state, receiver.received) == ("failed", [])
    assert "may no longer have it" in row.message


def test_messages_go_to_no_private_address_unless_the_operator_allows_it(
    database: Database, cluster_id: str, settings: Settings, receiver: Receiver
) -> None:
    (job_id,) = submit(database, cluster_id)
    hook(database, settings, receiver.url())
    tell(database, job_id, "failed")
    strict = settings.model_copy(update={"webhooks_to_private_addresses": False})
    send_all(database, strict)
    (row,) = messages(database)
    assert (row.state, receiver.received) == ("failed", [])
    assert json.loads(row.body)["type"] == "job.failed"
