"""Reports by schedule: due once, made once, delivered, and tried again when that fails."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from live_samples import make_cluster
from report_receiver import receiving
from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, Report, ReportDelivery, ReportSchedule, Tenant, User
from backend.secret_key import secret_key
from backend.settings import Settings
from backend.webhooks.signing import signature
from worker import housekeeping, tasks
from worker.reports import channels as report_channels
from worker.reports import due as reports
from worker.reports.channels import Undelivered
from worker.reports.due import (
    MOST_TRIES,
    PAUSES_SECONDS,
    deliver,
    due_deliveries,
    waiting_deliveries,
)

SECRET = "a-secret-of-more-than-16"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        _env_file=None,
        data_dir=tmp_path,
        database_url=database_url,
        reports_folder=str(tmp_path / "reports"),
        webhooks_to_private_addresses=True,
        webhook_seconds=20.0,
    )


@pytest.fixture
def cluster_id(database: Database) -> str:
    return make_cluster(
        database, epoch=utc_now() - timedelta(days=40), anchor_seconds=40 * 86_400.0
    )


def owner(database: Database, *, role: str = "cluster_admin", tenant: str = "blue") -> User:
    with database.session_scope() as session:
        home = session.exec(select(Tenant).where(Tenant.name == tenant)).first()
        if home is None:
            home = Tenant(name=tenant)
            session.add(home)
            session.flush()
        user = User(name=f"{role} of {tenant}", tenant_id=home.id, role=role)
        session.add(user)
        session.flush()
    return user


def schedule(
    database: Database, cluster_id: str, user: User, settings: Settings, **fields: Any
) -> str:
    """A schedule that was due a minute ago."""
    given: dict[str, Any] = {
        "name": "Mondays",
        "every": "week",
        "channel": "folder",
        "forms": ["pdf", "csv", "json"],
        "next_due_at": utc_now() - timedelta(minutes=1),
    } | fields
    if given.get("url"):
        given |= {"channel": "webhook", "secret": secret_key(settings).encrypted(SECRET)}
    row = ReportSchedule(cluster_id=cluster_id, owner_id=user.id, **given)
    with database.session_scope() as session:
        session.add(row)
    return row.id


def only(database: Database) -> ReportDelivery:
    with database.session_scope(writes=False) as session:
        return session.exec(select(ReportDelivery)).one()


def count_reports(database: Database) -> int:
    with database.session_scope(writes=False) as session:
        return len(session.exec(select(Report.id)).all())


def bring_forward(database: Database) -> None:
    """Let the time of the next try come, and the last sign of life be long ago."""
    with database.session_scope() as session:
        row = session.exec(select(ReportDelivery)).one()
        row.next_try_at = row.heartbeat_at = utc_now() - timedelta(minutes=5)
        session.add(row)


def files(settings: Settings) -> list[Path]:
    folder = settings.reports_path
    assert folder is not None
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_schedule_that_is_due_is_delivered_once_and_due_again_next_week(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    schedule_id = schedule(database, cluster_id, owner(database), settings)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: due_deliveries(database), range(4)))
    (delivery_id,) = [one for some in found for one in some]
    assert due_deliveries(database) == []
    with database.session_scope(writes=False) as session:
        due = session.get_one(ReportSchedule, schedule_id).next_due_at
    assert due > utc_now()
    assert (due.weekday(), due.hour) == (0, 6)
    assert deliver(database, settings, delivery_id) == "succeeded"
    assert deliver(database, settings, delivery_id) is None
    row = only(database)
    assert (row.state, row.tries, len(row.files)) == ("succeeded", 1, 3)
    assert count_reports(database) == 1
    written = files(settings)
    assert sorted(str(path.relative_to(settings.reports_path or "")) for path in written) == sorted(
        row.files
    )
    assert {path.suffix for path in written} == {".pdf", ".csv", ".json"}


def test_it_covers_the_last_week_or_month_of_the_clusters_calendar(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    user = owner(database)
    for every in ("week", "month"):
        schedule(database, cluster_id, user, settings, every=every)
    for delivery_id in due_deliveries(database):
        assert deliver(database, settings, delivery_id) == "succeeded"
    with database.session_scope(writes=False) as session:
        week, month = session.exec(select(Report).order_by(col(Report.period_name).desc())).all()
    today = datetime.now(UTC)
    assert week.period_end.weekday() == week.period_start.weekday() == 0
    assert week.period_end - week.period_start == timedelta(days=7)
    assert today - week.period_end < timedelta(days=7)
    assert (month.period_start.day, month.period_end.day) == (1, 1)
    assert month.period_end.month == today.month


def test_files_are_written_whole_and_under_names_that_no_user_chose(
    database: Database, cluster_id: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = owner(database, tenant="../../etc")
    with database.session_scope(writes=False) as session:
        tenant = session.exec(select(Tenant).where(Tenant.name == "../../etc")).one()
    schedule(database, cluster_id, user, settings, name="../x", tenant_id=tenant.id)
    (delivery_id,) = due_deliveries(database)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(report_channels.os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            deliver(database, settings, delivery_id)
    assert files(settings) == []
    bring_forward(database)
    assert waiting_deliveries(database) == [delivery_id]
    assert deliver(database, settings, delivery_id) == "succeeded"
    assert count_reports(database) == 1
    base = settings.reports_path
    assert base is not None
    for path in files(settings):
        assert path.parent.parent.parent == base
        assert ".." not in path.name
        assert not path.name.startswith(".")


def test_a_webhook_that_fails_twice_gets_the_same_event_until_it_answers(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    with receiving(500, 302) as receiver:
        url = receiver.url()
        schedule(database, cluster_id, owner(database), settings, url=url)
        (delivery_id,) = due_deliveries(database)
        assert deliver(database, settings, delivery_id) == "queued"
        row = only(database)
        assert (row.answered, row.tries) == (500, 1)
        assert row.next_try_at > utc_now() + timedelta(seconds=PAUSES_SECONDS[0] - 20)
        assert deliver(database, settings, delivery_id) is None  # its time has not come
        assert waiting_deliveries(database) == []
        bring_forward(database)
        assert waiting_deliveries(database) == [delivery_id]
        assert deliver(database, settings, delivery_id) == "queued"
        assert "Redirects are not followed" in only(database).message
        bring_forward(database)
        assert deliver(database, settings, delivery_id) == "succeeded"
    assert receiver.ids() == [delivery_id] * 3
    assert [path for _, _, path in receiver.received] == ["/hook?x=1"] * 3
    assert len({body for _, body, _ in receiver.received}) == 1
    for headers, body, _ in receiver.received:
        stamp = int(headers["Maat-Timestamp"])
        assert abs(stamp - datetime.now(UTC).timestamp()) < 300
        assert headers["Maat-Signature"] == f"v1={signature(SECRET, body, timestamp=stamp)}"
    event = receiver.events()[0]
    with database.session_scope(writes=False) as session:
        report = session.exec(select(Report)).one()
    assert (event["id"], event["type"]) == (delivery_id, "report.made")
    assert (event["report_id"], event["checksum"]) == (report.id, report.checksum)
    assert event["report"] == report.document
    assert [file["name"][-4:] for file in event["files"]] == [".pdf", ".csv"]
    assert base64.b64decode(event["files"][0]["base64"]).startswith(b"%PDF")
    row = only(database)
    assert (row.state, row.tries, row.answered) == ("succeeded", 3, 204)


def test_a_delivery_that_never_arrives_ends_as_failed(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    with receiving(*[503] * MOST_TRIES) as receiver:
        schedule(database, cluster_id, owner(database), settings, url=receiver.url())
        (delivery_id,) = due_deliveries(database)
        states = []
        for _ in range(MOST_TRIES):
            states.append(deliver(database, settings, delivery_id))
            if states[-1] == "queued":
                bring_forward(database)
    assert states == ["queued"] * (MOST_TRIES - 1) + ["failed"]
    assert count_reports(database) == 1
    bring_forward(database)
    assert waiting_deliveries(database) == []


KILLED = """
import sys
from backend.database import Database
from backend.settings import Settings
from worker.reports.due import deliver
settings = Settings(_env_file=None)
deliver(Database.of(settings), settings, sys.argv[1])
"""


def test_a_worker_killed_while_it_sends_leaves_one_report_and_one_event_id(
    database: Database, cluster_id: str, settings: Settings, tmp_path: Path
) -> None:
    environment = os.environ | {
        "MAAT_DATA_DIR": str(tmp_path),
        "MAAT_DATABASE_URL": settings.database_url,
        "MAAT_WEBHOOKS_TO_PRIVATE_ADDRESSES": "true",
    }
    secret_key(settings)  # the process reads the same key
    with receiving() as receiver:
        receiver.hold.clear()
        schedule(database, cluster_id, owner(database), settings, url=receiver.url())
        (delivery_id,) = due_deliveries(database)
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, delivery_id], cwd=ROOT, env=environment
        )
        assert receiver.arrived.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert only(database).state == "running"
        receiver.hold.set()
        bring_forward(database)
        assert waiting_deliveries(database) == [delivery_id]
        assert deliver(database, settings, delivery_id) == "succeeded"
    assert receiver.ids() == [delivery_id] * 2
    assert len({body for _, body, _ in receiver.received}) == 1
    assert count_reports(database) == 1
    assert due_deliveries(database) == []


def test_a_delivery_whose_workers_all_die_is_given_up(
    database: Database, cluster_id: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    schedule(database, cluster_id, owner(database), settings)
    (delivery_id,) = due_deliveries(database)
    monkeypatch.setattr(reports, "write_to_folder", killed)
    for _ in range(MOST_TRIES):
        with pytest.raises(KeyboardInterrupt):
            deliver(database, settings, delivery_id)
        bring_forward(database)
    assert deliver(database, settings, delivery_id) == "failed"
    assert count_reports(database) == 1


def test_a_schedule_that_is_deleted_while_its_report_is_made_ends_quietly(
    database: Database, cluster_id: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule_id = schedule(database, cluster_id, owner(database), settings)
    (delivery_id,) = due_deliveries(database)
    really = reports.prepare_report

    def deleted_meanwhile(*given: Any, **named: Any) -> Any:
        with database.session_scope() as session:
            session.delete(session.exec(select(ReportDelivery)).one())
            session.flush()
            session.delete(session.get_one(ReportSchedule, schedule_id))
        return really(*given, **named)

    monkeypatch.setattr(reports, "prepare_report", deleted_meanwhile)
    assert deliver(database, settings, delivery_id) == "cancelled"
    assert count_reports(database) == 0
    assert due_deliveries(database) == waiting_deliveries(database) == []


def test_an_owner_who_lost_the_right_gets_no_report(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    users = {
        "demoted": owner(database, role="viewer"),
        "gone": owner(database, role="tenant_manager"),
        "narrowed": owner(database, role="tenant_manager", tenant="green"),
    }
    with database.session_scope() as session:
        gone = session.get_one(User, users["gone"].id)
        gone.active = False
        session.add(gone)
    for name, user in users.items():
        whose = None if name == "narrowed" else user.tenant_id
        schedule(database, cluster_id, user, settings, name=name, tenant_id=whose)
    assert [deliver(database, settings, one) for one in due_deliveries(database)] == ["failed"] * 3
    assert count_reports(database) == 0
    assert files(settings) == [] if (settings.reports_path or Path()).exists() else True


def test_a_tenants_schedule_tells_of_that_tenant_only(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    user = owner(database, role="tenant_manager", tenant="green")
    schedule(database, cluster_id, user, settings, tenant_id=user.tenant_id)
    (delivery_id,) = due_deliveries(database)
    assert deliver(database, settings, delivery_id) == "succeeded"
    with database.session_scope(writes=False) as session:
        report = session.exec(select(Report)).one()
    assert report.tenant_id == user.tenant_id
    assert report.document["tenant"] == "green"


def test_a_schedule_that_is_stopped_or_whose_folder_is_gone_says_so(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    user = owner(database)
    schedule(database, cluster_id, user, settings, active=False)
    assert due_deliveries(database) == []
    schedule(database, cluster_id, user, settings)
    (delivery_id,) = due_deliveries(database)
    without = settings.model_copy(update={"reports_folder": ""})
    without.__dict__.pop("reports_path", None)
    assert deliver(database, without, delivery_id) == "failed"
    assert "no folder" in only(database).message


def test_old_reports_and_deliveries_are_deleted(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    schedule(database, cluster_id, owner(database), settings)
    (delivery_id,) = due_deliveries(database)
    deliver(database, settings, delivery_id)
    assert housekeeping.prune_reports(database, days=1) == 0
    with database.session_scope() as session:
        report = session.exec(select(Report)).one()
        report.made_at = utc_now() - timedelta(days=2)
        session.add(report)
    assert housekeeping.prune_reports(database, days=1) == 1
    assert only(database).report_id is None
    assert len(files(settings)) == 3


def test_what_the_receiver_does_is_told_in_words(
    database: Database, cluster_id: str, settings: Settings
) -> None:
    with receiving() as receiver:
        port = receiver.port
    schedule(database, cluster_id, owner(database), settings, url=f"http://127.0.0.1:{port}/")
    (delivery_id,) = due_deliveries(database)
    assert deliver(database, settings, delivery_id) == "queued"
    assert "cannot be reached: no connection" in only(database).message
    assert issubclass(Undelivered, Exception)
    assert len(PAUSES_SECONDS) + 1 == reports.MOST_TRIES


def test_a_report_that_is_due_is_sent_where_no_round_is(
    database: Database, cluster_id: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.session_scope() as session:
        session.get_one(Cluster, cluster_id).paused = True
    schedule(database, cluster_id, owner(database), settings)
    sent: list[str] = []
    monkeypatch.setattr(tasks, "database", lambda: database)
    monkeypatch.setattr(tasks.deliver_report, "delay", sent.append)
    tasks.tick()
    assert sent == [only(database).id]
