"""One request, one transaction; and the small parts beneath: ids, clock, columns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError
from sqlmodel import select

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import Moment, cluster_seconds, reanchor, seconds_at, shown_at, stands_still
from backend.clusters.models import Cluster, ClusterRuntime
from backend.columns import pack_json, unpack_json
from backend.database import Database, after_commit
from backend.ids import new_id
from backend.models import ApiToken, Tenant, User
from backend.settings import Settings

pytestmark = pytest.mark.both_databases


def tenants(database: Database) -> list[str]:
    with database.session_scope(writes=False) as session:
        return sorted(session.exec(select(Tenant.name)))


def test_a_scope_is_committed_at_its_end_and_rolled_back_on_an_exception(
    database: Database,
) -> None:
    with database.session_scope() as session:
        session.add(Tenant(name="kept"))

    def fail() -> None:
        with database.session_scope() as session:
            session.add(Tenant(name="lost"))
            session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert tenants(database) == ["kept"]


def test_what_follows_a_commit_sees_it_and_does_not_follow_a_rollback(database: Database) -> None:
    seen: list[list[str]] = []
    with database.session_scope() as session:
        session.add(Tenant(name="kept"))
        after_commit(session, lambda: seen.append(tenants(database)))

    def fail() -> None:
        with database.session_scope() as session:
            after_commit(session, lambda: seen.append(["never"]))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert seen == [["kept"]]


def test_writers_wait_for_each_other_and_lose_nothing(database: Database) -> None:
    with database.session_scope() as session:
        session.add(Cluster(name="c", policy="sia", placer="packed-sticky", round_seconds=60))

    def bump(_: int) -> None:
        with database.session_scope() as session:
            cluster = session.exec(select(Cluster).with_for_update()).one()
            cluster.version += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bump, range(40)))
    with database.session_scope(writes=False) as session:
        assert session.exec(select(Cluster.version)).one() == 41


def test_a_transaction_that_finds_a_lock_held_too_long_fails_instead_of_waiting_for_good(
    database_url: str,
) -> None:
    impatient = Database(database_url, busy_seconds=0.1)
    try:
        with impatient.session_scope() as session:
            session.add(Tenant(id="ten_held", name="held"))
        with impatient.session_scope() as holder:
            holder.exec(select(Tenant).with_for_update()).all()
            with pytest.raises(OperationalError), impatient.session_scope() as waiting:
                waiting.exec(select(Tenant).with_for_update()).all()
    finally:
        impatient.dispose()


def test_moments_come_back_in_utc_whatever_zone_they_were_written_in(database: Database) -> None:
    there = datetime(
        2026, 11, 20, 13, 30, 0, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30))
    )
    with database.session_scope() as session:
        session.add(Tenant(name="t", created_at=there))
    with database.session_scope(writes=False) as session:
        found = session.exec(select(Tenant.created_at)).one()
    assert (found, found.tzinfo) == (there, UTC)


def test_a_moment_without_a_zone_is_refused(database: Database) -> None:
    with pytest.raises(Exception, match="no time zone"), database.session_scope() as session:
        session.add(Tenant(name="t", created_at=datetime(2026, 1, 1)))


def test_what_a_foreign_key_names_must_exist(database: Database) -> None:
    with pytest.raises(Exception, match=r"(?i)foreign key"), database.session_scope() as session:
        session.add(User(name="u", tenant_id="ten_none", role="viewer"))


def test_large_state_comes_back_as_it_was(database: Database) -> None:
    state = {
        "jobs": [{"id": f"job_{i}", "work": i / 3} for i in range(500)],
        "none": None,
        "text": "\u00e9\u4e2d",
    }
    with database.session_scope() as session:
        cluster = Cluster(name="c", policy="sia", placer="packed-sticky", round_seconds=60)
        session.add(cluster)
        session.flush()
        session.add(ClusterRuntime(cluster_id=cluster.id, executor_state=state))
    with database.session_scope(writes=False) as session:
        assert session.exec(select(ClusterRuntime)).one().executor_state == state


def test_nan_is_never_stored_as_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack_json({"x": float("nan")})
    assert unpack_json(pack_json({"x": 1.5})) == {"x": 1.5}


def test_the_first_start_may_happen_twice_and_at_once(
    empty_database_url: str, tmp_path: Path
) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, demo=True)

    def start(_: int) -> None:
        database = Database(empty_database_url)
        ensure_defaults(database, settings)
        database.dispose()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(start, range(8)))
    database = Database(empty_database_url)
    with database.session_scope(writes=False) as session:
        assert [cluster.name for cluster in session.exec(select(Cluster))] == ["demo"]
        assert [user.name for user in session.exec(select(User))] == ["local"]
        assert session.exec(select(ApiToken)).all() == []
    assert tenants(database) == ["default"]
    database.dispose()


def test_without_demo_there_is_no_cluster(empty_database_url: str, tmp_path: Path) -> None:
    database = Database(empty_database_url)
    ensure_defaults(database, Settings(_env_file=None, data_dir=tmp_path))
    with database.session_scope(writes=False) as session:
        assert session.exec(select(Cluster)).all() == []
    database.dispose()


def test_a_demo_cluster_that_was_renamed_is_not_made_again(
    empty_database_url: str, tmp_path: Path
) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, demo=True)
    database = Database(empty_database_url)
    ensure_defaults(database, settings)
    with database.session_scope() as session:
        session.exec(select(Cluster)).one().name = "lab"
    ensure_defaults(database, settings)
    with database.session_scope(writes=False) as session:
        assert [cluster.name for cluster in session.exec(select(Cluster))] == ["lab"]
    database.dispose()


def test_ids_ascend_in_the_order_of_their_making() -> None:
    made = [new_id("job") for _ in range(5000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(len(one) == len("job_") + 26 for one in made)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def clock(**fields: object) -> Cluster:
    anchor = {
        "anchor_wall": NOON,
        "anchor_boot": "boot-1",
        "anchor_boot_seconds": 500.0,
        "anchor_seconds": 0.0,
    }
    made_with = {"name": "demo", "policy": "sia", "placer": "whole-node", "round_seconds": 60.0}
    return Cluster(**{"epoch": NOON, "speed": 30.0, "paused": False} | made_with | anchor | fields)


def after(
    seconds: float, *, wall_seconds: float | None = None, boot: str | None = "boot-1"
) -> Moment:
    """So long after noon; `wall_seconds`: what the wall clock says instead."""
    return Moment(
        NOON + timedelta(seconds=seconds if wall_seconds is None else wall_seconds),
        boot,
        500.0 + seconds,
    )


def test_cluster_time_passes_as_fast_as_its_speed_says() -> None:
    assert cluster_seconds(clock(), after(10)) == 300.0
    assert cluster_seconds(clock(paused=True, anchor_seconds=7.0), after(3600)) == 7.0


@pytest.mark.parametrize("hours", [-1, 1])
def test_cluster_time_passes_evenly_when_the_wall_clock_is_set(hours: int) -> None:
    assert cluster_seconds(clock(), after(10, wall_seconds=10 + 3600 * hours)) == 300.0


@pytest.mark.parametrize("boot", ["boot-2", None])
def test_on_another_machine_or_after_a_restart_cluster_time_passes_by_the_wall_clock_and_never_back(
    boot: str | None,
) -> None:
    assert cluster_seconds(clock(), after(7, wall_seconds=10, boot=boot)) == 300.0
    set_back = after(10, wall_seconds=-3590, boot=boot)
    cluster = clock()
    assert cluster_seconds(cluster, set_back) == 0.0
    assert stands_still(cluster, set_back)
    assert not stands_still(clock(), after(10, wall_seconds=-3590))
    reanchor(cluster, set_back)
    assert cluster_seconds(cluster, after(20, wall_seconds=-3580, boot=boot)) == 300.0


@given(
    steps=st.lists(
        st.tuples(
            st.floats(0, 1e5),
            st.one_of(st.none(), st.floats(0.001, 1e5)),
            st.one_of(st.none(), st.booleans()),
        ),
        max_size=8,
    )
)
def test_cluster_time_never_jumps_nor_goes_back(
    steps: list[tuple[float, float | None, bool | None]],
) -> None:
    cluster, now = clock(), 0.0
    for seconds, speed, paused in steps:
        now += seconds
        before = cluster_seconds(cluster, after(now))
        reanchor(cluster, after(now), speed=speed, paused=paused)
        assert cluster_seconds(cluster, after(now)) == before
        assert cluster_seconds(cluster, after(now + 1)) >= before


@given(st.floats(0, 1e9))
def test_a_cluster_time_is_the_date_that_it_is_shown_as(seconds: float) -> None:
    shown = datetime.fromisoformat(shown_at(clock(), seconds))
    assert seconds_at(clock(), shown) == pytest.approx(
        seconds, abs=1.1e-3
    )  # dates have milliseconds


def test_settings_name_the_database_in_every_form_that_people_write(tmp_path: Path) -> None:
    def url(**fields: str) -> str:
        return Settings(_env_file=None, data_dir=tmp_path, **fields).sqlalchemy_url

    assert url() == f"sqlite:///{tmp_path / 'maat.db'}"
    assert (
        url(database_url="postgres://u@h/d")
        == url(database_url="postgresql://u@h/d")
        == "postgresql+psycopg://u@h/d"
    )
    assert url(database_url="postgresql+psycopg://u@h/d") == "postgresql+psycopg://u@h/d"
