"""Tests of the event stream: all changes that the reader may see, until the server stops."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlmodel import select
from test_rounds_api import round_row

from backend.accounts.identity import Principal
from backend.accounts.models import ApiToken, User
from backend.accounts.permissions import PERMISSIONS, Role
from backend.accounts.tokens import create_token
from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.events.feed import TOPICS, Feed, GapWatch, Position, present_position
from backend.models import Cluster, Operation, Tenant
from backend.settings import Settings
from benchmarks.service.real_server import PATIENCE_SECONDS, Server, serving

pytestmark = pytest.mark.both_databases

ALL = frozenset(TOPICS)


def principal(role: Role = Role.CLUSTER_ADMIN, tenant_id: str = "ten_x") -> Principal:
    return Principal("usr_x", "x", tenant_id, "x", role, PERMISSIONS[role])


def advance(database: Database, feed: Feed) -> list[tuple[str, dict[str, Any]]]:
    with database.session_scope(writes=False) as session:
        return [(change.topic, change.data) for change in feed.advance(session)]


def here(database: Database) -> Position:
    with database.session_scope(writes=False) as session:
        return present_position(session)


def test_changes_are_told_once_and_in_order(client: TestClient, database: Database) -> None:
    feed = Feed(here(database), ALL, principal())
    jobs = [
        client.post("/api/v1/jobs", json={"name": "train", "model": "bert"}).json()
        for _ in range(3)
    ]
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        session.add(round_row(cluster.id, 1))
    told = advance(database, feed)
    assert told[0] == ("rounds", {"cluster_id": cluster.id, "number": 1})
    assert [data["job_id"] for topic, data in told if topic == "jobs"] == [
        job["id"] for job in jobs
    ]
    assert advance(database, feed) == []


def test_a_stream_goes_on_where_it_broke_off(client: TestClient, database: Database) -> None:
    feed = Feed(here(database), ALL, principal())
    client.post("/api/v1/jobs", json={"name": "first", "model": "bert"})
    advance(database, feed)
    resumed = Position.parse(str(feed.position))
    assert resumed == feed.position
    second = client.post("/api/v1/jobs", json={"name": "second", "model": "bert"}).json()
    assert [data["job_id"] for _, data in advance(database, Feed(resumed, ALL, principal()))] == [
        second["id"]
    ]


def test_an_operation_is_told_again_when_it_moves(client: TestClient, database: Database) -> None:
    feed = Feed(Position(), frozenset({"operations"}), principal())
    body = {
        "name": "s",
        "traces": [{"kind": "generated", "jobs": 2, "hours": 1}],
        "cluster": "t4=1x4",
        "runs": [{}],
    }
    operation_id = client.post("/api/v1/simulations", json=body).json()["operation_id"]
    assert [data["state"] for _, data in advance(database, feed)] == ["queued"]
    assert advance(database, feed) == []
    with database.session_scope() as session:
        operation = session.get_one(Operation, operation_id)
        operation.state, operation.done = "running", 0.5
    assert [(data["state"], data["done"]) for _, data in advance(database, feed)] == [
        ("running", 0.5)
    ]


def test_other_tenants_changes_are_passed_over(client: TestClient, database: Database) -> None:
    own = Feed(here(database), ALL, principal(Role.VIEWER, tenant_id=_tenant_id(database)))
    other = Feed(here(database), ALL, principal(Role.VIEWER))
    client.post("/api/v1/jobs", json={"name": "train", "model": "bert"})
    assert [topic for topic, _ in advance(database, own)] == ["jobs"]
    assert advance(database, other) == []
    assert other.position.job_event_id == own.position.job_event_id > 0


def _tenant_id(database: Database) -> str:
    with database.session_scope(writes=False) as session:
        return session.exec(select(Tenant.id)).one()


def test_only_the_topics_asked_for_are_told(client: TestClient, database: Database) -> None:
    feed = Feed(here(database), frozenset({"rounds"}), principal())
    client.post("/api/v1/jobs", json={"name": "train", "model": "bert"})
    assert advance(database, feed) == []


def test_a_row_whose_transaction_is_still_open_is_waited_for_and_not_for_ever() -> None:
    watch = GapWatch()
    assert watch.settled([5, 6, 8], 4, now=0.0) == 2
    assert watch.settled([7, 8], 6, now=0.5) == 2
    watch = GapWatch()
    assert watch.settled([8, 9], 6, now=0.0) == 0
    assert watch.settled([8, 9], 6, now=1.0) == 0
    assert watch.settled([8, 9], 6, now=3.0) == 2


def test_an_unknown_topic_is_refused(client: TestClient) -> None:
    answer = client.get("/api/v1/events", params={"topics": "rounds,gossip"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["value"] == "gossip"


@pytest.mark.parametrize("bad", ["nonsense", "r1.j2", "r1.j2.o" + "9" * 40])
def test_a_position_that_is_none_is_not_read(bad: str) -> None:
    assert Position.parse(bad) is None


# ---- a real server: streams do not end in a test client


@pytest.fixture(scope="module")
def lasting(
    module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Database]]:
    """A server, which the last test stops, and its database."""
    folder = tmp_path_factory.mktemp("lasting")
    database = Database(module_database_url)
    ensure_defaults(database, Settings(_env_file=None, data_dir=folder, demo=True))
    with serving(
        "backend.app:create_app",
        module_database_url,
        folder,
        event_poll_seconds=0.05,
        event_heartbeat_seconds=0.2,
        event_recheck_seconds=0.1,
    ) as started:
        yield started, database
    database.dispose()


def _is_told_to_read_anew_and_goes_on(url: str, last_event_id: str) -> bool:
    with httpx.stream(
        "GET",
        f"{url}/api/v1/events",
        headers={"Last-Event-ID": last_event_id},
        timeout=PATIENCE_SECONDS,
    ) as stream:
        lines = stream.iter_lines()
        told = _until(lines, "event: ") == "event: reset"
        position = Position.parse(_until(lines, "id: ").removeprefix("id: "))
        return told and position is not None and _until(lines, ":").startswith(":")


def _until(lines: Iterator[str], start: str) -> str:
    return next(line for line in lines if line.startswith(start))


def test_an_open_stream_ends_with_its_token(lasting: tuple[Server, Database]) -> None:
    server, database = lasting
    for end in ("revoked", "expired", "deactivated", "demoted to nothing"):
        assert _stream_ends(server, database, end) in (401, 403), end


def _stream_ends(server: Server, database: Database, end: str) -> int:
    """See a stream end with its token; return the status of the next one."""
    with database.session_scope() as session:
        tenant = session.exec(select(Tenant)).one()
        user = User(name=f"ann {end}", tenant_id=tenant.id, role=Role.VIEWER.value)
        session.add(user)
        session.flush()
        secret = create_token(session, user, name="stream")
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.stream(
        "GET", f"{server.url}/api/v1/events", headers=headers, timeout=PATIENCE_SECONDS
    ) as stream:
        lines = stream.iter_lines()
        assert _until(lines, "event: ") == "event: ready"
        assert _until(lines, ":").startswith(":")  # it goes on past several looks
        with database.session_scope() as session:
            token = session.exec(select(ApiToken).where(ApiToken.user_id == user.id)).one()
            if end == "revoked":
                token.revoked_at = utc_now()
            elif end == "expired":
                token.expires_at = utc_now()
            elif end == "deactivated":
                session.get_one(User, user.id).active = False
            else:
                token.scopes = []
        assert _until(lines, "event: ") == "event: ended"
        list(lines)
    again = httpx.get(f"{server.url}/api/v1/events", headers=headers, timeout=PATIENCE_SECONDS)
    return again.status_code


def test_all_streams_of_a_process_share_one_look_and_name_a_change_alike(
    lasting: tuple[Server, Database],
) -> None:
    server, database = lasting
    address = f"{server.url}/api/v1/events"
    with ExitStack() as streams:
        lines = [
            streams.enter_context(httpx.stream("GET", address, timeout=PATIENCE_SECONDS))
            for _ in range(5)
        ]
        readers = [stream.iter_lines() for stream in lines]
        for reader in readers:
            assert _until(reader, "event: ") == "event: ready"
            _until(reader, ": alive")  # it has caught up, and reads what the others read
        with database.session_scope() as session:
            cluster = session.exec(select(Cluster)).one()
            session.add(round_row(cluster.id, 7))
        told = set()
        for reader in readers:
            assert _until(reader, "event: ") == "event: rounds"
            assert _until(reader, "event: ") == "event: caught-up"
            told.add(_until(reader, "data: "))
        assert len(told) == 1
        assert _until(readers[0], ":").startswith(":")


def test_a_brief_stream_tells_changes_that_came_together_as_one(
    lasting: tuple[Server, Database],
) -> None:
    server, database = lasting
    address = f"{server.url}/api/v1/events?brief=true"
    with httpx.stream("GET", address, timeout=PATIENCE_SECONDS) as stream:
        reader = stream.iter_lines()
        begun = _until(reader, "id: ").removeprefix("id: ")
        _until(reader, ": alive")
        with database.session_scope() as session:
            cluster = session.exec(select(Cluster)).one().id
            session.add_all(round_row(cluster, number) for number in (11, 12, 13))
        assert _until(reader, "event: ") == "event: caught-up"
        told = json.loads(_until(reader, "data: ").removeprefix("data: "))
        assert told["changed"] == {"rounds": [cluster]}
        place = _until(reader, "id: ").removeprefix("id: ")
        assert told["version"].partition(".")[0] == place.partition(".")[0]

    headers = {"Last-Event-ID": begun}
    with httpx.stream("GET", address, headers=headers, timeout=PATIENCE_SECONDS) as again:
        missed = again.iter_lines()
        assert _until(missed, "event: ") == "event: ready"
        assert _until(missed, "event: ") == "event: caught-up"
        told = json.loads(_until(missed, "data: ").removeprefix("data: "))
        assert told["changed"] == {"rounds": [cluster]}


def test_the_health_is_told_to_who_asks_for_it(lasting: tuple[Server, Database]) -> None:
    server, _ = lasting
    address = f"{server.url}/api/v1/events?topics=health"
    with httpx.stream("GET", address, timeout=PATIENCE_SECONDS) as stream:
        reader = stream.iter_lines()
        assert _until(reader, "event: health") == "event: health"
        assert json.loads(_until(reader, "data: ").removeprefix("data: "))["database"] == "ok"


def test_a_stream_that_comes_back_to_a_hub_that_is_ahead_is_told_what_it_missed(
    lasting: tuple[Server, Database],
) -> None:
    server, database = lasting
    address = f"{server.url}/api/v1/events"
    with httpx.stream("GET", address, timeout=PATIENCE_SECONDS) as first:
        reader = first.iter_lines()
        left_at = _until(reader, "id: ").removeprefix("id: ")
        with database.session_scope() as session:
            cluster = session.exec(select(Cluster)).one()
            session.add(round_row(cluster.id, 8))
        assert _until(reader, "event: rounds")
        headers = {"Last-Event-ID": left_at}
        with httpx.stream("GET", address, headers=headers, timeout=PATIENCE_SECONDS) as second:
            missed = second.iter_lines()
            assert _until(missed, "event: ") == "event: ready"
            assert _until(missed, "event: ") == "event: rounds"
            assert json.loads(_until(missed, "data: ").removeprefix("data: "))["number"] == 8


def test_a_stream_tells_what_happens_beats_while_nothing_does_and_ends_with_the_server(
    lasting: tuple[Server, Database],
) -> None:
    url, process = lasting[0].url, lasting[0].process
    for made_up in (
        "r1.j1.o999999999999999",
        "r999999.j1.o1",
        "nonsense",
    ):  # a browser would come back with the same id for ever
        assert _is_told_to_read_anew_and_goes_on(url, made_up)
    with httpx.stream("GET", f"{url}/api/v1/events", timeout=PATIENCE_SECONDS) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert _until(lines, "event: ") == "event: ready"
        assert _until(lines, ":").startswith(":")
        job = httpx.post(
            f"{url}/api/v1/jobs", json={"name": "train", "model": "bert"}, timeout=PATIENCE_SECONDS
        ).json()
        assert _until(lines, "event: ") == "event: jobs"
        data = json.loads(_until(lines, "data: ").removeprefix("data: "))
        assert (data["job_id"], data["state"]) == (job["id"], "submitted")
        position = _until(lines, "id: ").removeprefix("id: ")
        process.send_signal(signal.SIGTERM)
        list(lines)
    process.wait(timeout=PATIENCE_SECONDS)
    assert Position.parse(position) is not None
