"""Tests of the points of sweeps on both databases: each stored request runs exactly once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from live_samples import make_owner
from remembering_queue import RememberingQueue
from simulation_samples import SMALL, request_simulation, runs_of
from sqlmodel import col, select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.clocktime import utc_now
from backend.columns import pack_json
from backend.database import Database
from backend.models import Operation, SimulationRun, Sweep, SweepPoint
from backend.settings import Settings
from backend.sweeps.requests import sweep_of
from backend.sweeps.resources import show_whole_sweep
from backend.sweeps.service import prepare_sweep, store_sweep, whole_of
from maat.api.sweeps import SweepBody, SweepDetail
from maat.laboratory import content
from maat.laboratory.figures import DEFAULT_RULE, by_rule, untimed
from maat.laboratory.sweep_runner import run_sweep
from worker.laboratory.playing import Laboratory
from worker.simulations import sweeps

ASKING = Principal("usr_x", "x", "ten_x", "x", Role.CLUSTER_ADMIN, PERMISSIONS[Role.CLUSTER_ADMIN])
FASTER = [{"name": "arrival_rate", "values": [1, 2]}]


def ask(database: Database, **fields: Any) -> tuple[str, list[str]]:
    """Ask for a sweep over p as the service does; its id and the keys of points that it queued."""
    user, tenant = make_owner(database)
    role = Role.CLUSTER_ADMIN
    vary = [{"name": "p", "values": [-1, 0.5]}]
    body = SweepBody.model_validate(
        {"name": "s", "trace": SMALL, "cluster": "t4=4x4,a100=2x8", "vary": vary} | fields
    )
    before = queued_keys(database)
    principal = Principal(user, "owner", tenant, "tenant", role, PERMISSIONS[role])
    with database.session_scope(writes=False) as session:
        prepared = prepare_sweep(session, principal, body)
    with database.session_scope() as session:
        sweep = store_sweep(session, principal, prepared, RememberingQueue())
    return sweep.id, sorted(queued_keys(database) - before)


def queued_keys(database: Database) -> set[str]:
    with database.session_scope(writes=False) as session:
        return set(session.exec(select(SweepPoint.key).where(SweepPoint.state == "queued")))


def shown(database: Database, sweep_id: str) -> SweepDetail:
    with database.session_scope(writes=False) as session:
        return show_whole_sweep(whole_of(session, ASKING, session.get_one(Sweep, sweep_id)))


def set_points(database: Database, **values: Any) -> None:
    with database.session_scope() as session:
        session.connection().execute(sa.update(SweepPoint).values(**values))


def cancel(database: Database, sweep_id: str) -> None:
    with database.session_scope() as session:
        operation = session.get_one(Operation, session.get_one(Sweep, sweep_id).operation_id)
        operation.cancel_requested = True
        session.add(operation)


def test_every_point_gets_the_figures_that_the_library_finds_and_the_last_ends_the_operation(
    database: Database,
) -> None:
    sweep_id, keys = ask(database)
    assert sweeps.run_point(database, keys[0]) == "succeeded"
    half = shown(database, sweep_id)
    assert (half["state"], half["done"], half["total"]) == ("running", 1, 2)
    assert sweeps.run_point(database, keys[1]) == "succeeded"
    found = shown(database, sweep_id)
    assert (found["state"], found["done"]) == ("succeeded", 2)
    with database.session_scope(writes=False) as session:
        alone = run_sweep(sweep_of(session.get_one(Sweep, sweep_id).request).points())
    assert [(point["key"], untimed(point["figures"])) for point in found["points"]] == [
        (point.key, untimed(by_rule(point.figures, DEFAULT_RULE))) for point in alone.points
    ]


def test_a_point_is_played_with_the_parameters_of_its_placer(database: Database) -> None:
    sweep_id, keys = ask(
        database, policy="fifo", placer="pal", placer_parameters={"binning": "two"}, vary=FASTER
    )
    assert [sweeps.run_point(database, key) for key in keys] == ["succeeded", "succeeded"]
    assert shown(database, sweep_id)["request"]["placer_parameters"] == {"binning": "two"}
    other_id, others = ask(database, policy="fifo", placer="pal", vary=FASTER)
    assert len(set(keys) | set(others)) == 4
    with database.session_scope() as session:
        other = session.get_one(Sweep, other_id)
        without = other.request.model_dump(mode="json", exclude={"placer_parameters"})
        session.connection().execute(
            sa.update(Sweep).where(col(Sweep.id) == other_id).values(request=pack_json(without))
        )
    assert [sweeps.run_point(database, key) for key in others] == ["succeeded", "succeeded"], (
        "a request from before there were any"
    )


def test_a_point_that_two_sweeps_want_is_played_once_and_ends_both(database: Database) -> None:
    first, keys = ask(database)
    second, more = ask(database)
    assert (len(keys), more) == (2, [])
    for key in keys:
        assert sweeps.run_point(database, key) == "succeeded"
        assert sweeps.run_point(database, key) is None
    assert (shown(database, first)["state"], shown(database, second)["state"]) == (
        "succeeded",
        "succeeded",
    )


def test_a_running_sweep_that_is_cancelled_keeps_what_has_ended(database: Database) -> None:
    sweep_id, keys = ask(database)
    sweeps.run_point(database, keys[0])
    cancel(database, sweep_id)
    sweeps.settle(database)
    assert sweeps.run_point(database, keys[1]) is None
    found = shown(database, sweep_id)
    assert (found["state"], found["done"]) == ("cancelled", 1)
    assert sorted(point["state"] for point in found["points"]) == ["cancelled", "succeeded"]
    assert len(found["rows"]) == 1


def test_a_point_in_play_stops_when_the_last_sweep_that_wants_it_is_cancelled(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "PROGRESS_SECONDS", 0.0)
    sweep_id, keys = ask(database)
    looks = []
    real = sweeps.is_wanted

    def cancelled_at_the_fifth(database: Database, key: str) -> bool:
        looks.append(key)
        if len(looks) == 5:
            cancel(database, sweep_id)
        return real(database, key)

    monkeypatch.setattr(sweeps, "is_wanted", cancelled_at_the_fifth)
    assert sweeps.run_point(database, keys[0]) == "cancelled"
    assert len(looks) == 5
    assert shown(database, sweep_id)["state"] == "cancelled"
    _, again = ask(database)
    assert sorted(again) == sorted(keys)


def test_a_point_that_another_sweep_still_wants_is_played_on(database: Database) -> None:
    first, keys = ask(database)
    second, _ = ask(database)
    cancel(database, first)
    assert [sweeps.run_point(database, key) for key in keys] == ["succeeded", "succeeded"]
    assert (shown(database, first)["state"], shown(database, second)["state"]) == (
        "cancelled",
        "succeeded",
    )


def waiting(database: Database) -> int:
    with database.session_scope(writes=False) as session:
        return sum(one.waiting for one in sweeps.work(session))


def test_a_point_whose_worker_is_gone_is_taken_by_another(database: Database) -> None:
    sweep_id, keys = ask(database)
    set_points(database, state="running", heartbeat_at=utc_now())
    assert waiting(database) == 0
    assert sweeps.run_point(database, keys[0]) is None
    set_points(database, heartbeat_at=utc_now() - timedelta(minutes=5))
    assert waiting(database) == len(keys)
    assert [sweeps.run_point(database, key) for key in keys] == ["succeeded", "succeeded"]
    assert shown(database, sweep_id)["state"] == "succeeded"


def test_a_point_that_was_dropped_just_as_it_was_wanted_again_is_queued(database: Database) -> None:
    _, keys = ask(database)
    set_points(database, state="cancelled")
    assert waiting(database) == 0
    sweeps.queue_wanted_again(database)
    assert waiting(database) == len(keys)


def test_a_point_that_fails_leaves_the_others_their_figures(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id, keys = ask(database)
    with monkeypatch.context() as patched:
        patched.setattr(sweeps, "simulate", lambda *_, **__: 1 / 0)
        assert sweeps.run_point(database, keys[0]) == "failed"
    assert sweeps.run_point(database, keys[1]) == "succeeded"
    found = shown(database, sweep_id)
    assert (
        found["state"],
        sorted(point["state"] for point in found["points"]),
        len(found["rows"]),
    ) == (
        "failed",
        ["failed", "succeeded"],
        1,
    )
    with database.session_scope(writes=False) as session:
        error = session.exec(select(Operation.error)).one()
    assert error is not None
    assert error["status"] == 500


def test_a_point_whose_cluster_is_too_small_for_a_reservation_fails_alone(
    database: Database,
) -> None:
    reserved = [{"gpu_type": "t4", "gpu_count": 9, "tenant": "x"}]
    sizes = [{"name": "cluster_size", "values": [1, 2]}]
    sweep_id, keys = ask(database, cluster="t4=2x4", reservations=reserved, vary=sizes)

    assert sorted(str(sweeps.run_point(database, key)) for key in keys) == ["failed", "succeeded"]

    found = shown(database, sweep_id)
    assert [(p["settings"], p["state"]) for p in found["points"]] == [
        ({"cluster_size": 1}, "failed"),
        ({"cluster_size": 2}, "succeeded"),
    ]
    error = found["points"][0]["error"]
    assert error is not None
    assert "of t4 hold together" in error["detail"]
    assert [row["settings"] for row in found["rows"]] == [{"cluster_size": 2}]
    assert (found["state"], found["done"]) == ("failed", 2)


def test_a_sweep_of_another_version_of_the_engine_is_not_mixed_with_this_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, keys = ask(database)
    monkeypatch.setattr(content, "SIMULATION_VERSION", content.SIMULATION_VERSION + 1)
    assert sweeps.run_point(database, keys[0]) == "failed"


def test_a_point_that_failed_for_another_sweep_tells_this_ones_operation(
    database: Database,
) -> None:
    first, _ = ask(database)
    second, _ = ask(database)
    with database.session_scope(writes=False) as session:
        operations = [session.get_one(Sweep, sweep_id).operation_id for sweep_id in (first, second)]
    set_points(
        database,
        state="failed",
        error={"status": 422, "instance": f"/api/v1/operations/{operations[0]}"},
    )
    sweeps.settle(database)
    for sweep_id, operation_id in zip((first, second), operations, strict=True):
        with database.session_scope(writes=False) as session:
            told = session.get_one(Operation, operation_id).error
        assert told is not None
        errors = [told, *(point["error"] or {} for point in shown(database, sweep_id)["points"])]
        assert {error["instance"] for error in errors} == {f"/api/v1/operations/{operation_id}"}


def test_a_simulation_that_a_dead_worker_left_comes_before_the_points_of_a_later_sweep(
    database: Database, tmp_path: Path
) -> None:
    simulation_id = request_simulation(database, policies=("fifo",))
    _, keys = ask(database)
    long_ago = utc_now() - timedelta(minutes=5)
    left = {"state": "running", "heartbeat_at": long_ago, "started_at": long_ago}
    with database.session_scope() as session:
        session.connection().execute(sa.update(SimulationRun).values(**left))
    assert Laboratory(database, Settings(_env_file=None, data_dir=tmp_path)).play_next()
    assert runs_of(database, simulation_id)[0].state == "succeeded"
    assert queued_keys(database) == set(keys)
