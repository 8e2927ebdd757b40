"""Tests of the routes of fairness: the tenants' shares of a cluster over time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ended_jobs import FAIRNESS, HOUR, Rows, period, read
from fastapi.testclient import TestClient

from backend.database import Database
from backend.models import ShareDay

MakeClient = Callable[..., TestClient]


@pytest.mark.both_databases
def test_tenants_deserve_equal_shares_of_what_is_there_up_to_their_demand(
    client: TestClient, rows: Rows
) -> None:
    rows.capacity(8)
    rows.job("blue", at=2 * HOUR, held=6)
    rows.job("red", since=HOUR, at=2 * HOUR, held=2, max_gpus=3)
    found = read(client, f"{FAIRNESS}/shares", points=10, **period(rows, 0.0, 2 * HOUR))
    blue, red = found["whole"]["tenants"]
    # blue alone deserves 8 of 8 for an hour, then red has its 3 and blue the other 5.
    assert (blue["deserved"], red["deserved"]) == (6.5 / 8, 1.5 / 8)
    assert (blue["actual"], red["actual"]) == (6 / 8, 1 / 8)
    assert red["demanded"] == 1.5 / 8
    assert found["whole"]["gpus"] == 8.0
    ratios = [6 / 6.5, 1 / 1.5]
    assert found["whole"]["jain_index"] == pytest.approx(
        sum(ratios) ** 2 / (2 * sum(one**2 for one in ratios))
    )
    assert len(found["points"]) <= 10
    last = found["points"][-1]
    assert [one["deserved"] for one in last["tenants"]] == pytest.approx([5 / 8, 3 / 8])
    assert found["formula"]


def test_a_tenant_of_three_times_the_weight_deserves_three_times_as_much_from_then_on(
    client: TestClient, rows: Rows
) -> None:
    rows.capacity(8)
    rows.job("blue", at=3 * HOUR, held=4)
    rows.job("red", at=3 * HOUR, held=4)
    for number, (hour, weight) in enumerate(((1, 3.0), (2, 7.0), (47, 1.0)), start=1):
        rows.is_now(hour * HOUR)
        weighed = client.patch(
            "/api/v1/tenants/red", json={"weight": weight}, headers={"If-Match": f'"{number}"'}
        )
        assert weighed.status_code == 200

    def shown(first: float, last: float) -> tuple[float, float]:
        found = read(client, f"{FAIRNESS}/shares", **period(rows, first * HOUR, last * HOUR))
        blue, red = found["whole"]["tenants"]
        assert (blue["actual"], red["actual"]) == (4 / 8, 4 / 8)
        return blue["deserved"], red["deserved"]

    assert shown(0, 1) == (4 / 8, 4 / 8)
    assert shown(1, 2) == (2 / 8, 6 / 8)
    assert shown(2, 3) == (1 / 8, 7 / 8)
    assert shown(0, 2) == (3 / 8, 5 / 8)


def test_a_tenant_whose_weight_was_changed_can_be_removed(client: TestClient) -> None:
    client.post("/api/v1/tenants", json={"name": "brief"}).raise_for_status()
    one = "/api/v1/tenants/brief"
    client.patch(one, json={"weight": 2.0}, headers={"If-Match": '"1"'}).raise_for_status()
    assert client.delete(one, headers={"If-Match": '"2"'}).status_code == 204


@pytest.mark.both_databases
def test_a_gpu_that_two_jobs_share_counts_half_for_each(client: TestClient, rows: Rows) -> None:
    """Both hold both GPUs, red for the second hour only."""
    rows.capacity(2)
    rows.job("blue", at=2 * HOUR, held=2, gpus=(0, 1))
    rows.job("red", since=HOUR, at=2 * HOUR, held=2, gpus=(0, 1))
    found = read(client, f"{FAIRNESS}/shares", points=10, **period(rows, 0.0, 2 * HOUR))
    assert [one["actual"] for one in found["whole"]["tenants"]] == [3 / 4, 1 / 4]
    assert sum(one["actual"] for one in found["points"][-1]["tenants"]) == 1.0


def test_gpus_that_come_later_count_from_then_on(client: TestClient, rows: Rows) -> None:
    rows.capacity(4)
    rows.capacity(12, at=HOUR, number=2)
    rows.job("blue", at=2 * HOUR, held=4)
    found = read(client, f"{FAIRNESS}/shares", **period(rows, 0.0, 2 * HOUR))
    assert found["whole"]["gpus"] == 8.0
    assert found["whole"]["tenants"][0]["deserved"] == 1.0
    assert found["whole"]["tenants"][0]["actual"] == 0.5


def test_what_is_to_come_and_what_was_before_the_cluster_is_no_span(
    client: TestClient, rows: Rows
) -> None:
    rows.capacity(8)
    rows.job("blue", at=2 * HOUR, held=8)
    found = read(client, f"{FAIRNESS}/shares", **period(rows, -100 * HOUR, 100 * HOUR))
    assert found["points"][0]["from"] == found["whole"]["from"]
    assert found["whole"]["tenants"][0]["actual"] == pytest.approx(2 / 47, rel=1e-3)


def test_the_day_on_which_a_cluster_began_outlives_its_allocations(
    client: TestClient, rows: Rows, database: Database
) -> None:
    """It begins within a day; that day was kept, and its allocations are deleted."""
    rows.begins_at(10 * HOUR)
    rows.forget_rounds_before(30 * HOUR)
    with database.session_scope() as session:
        tenant_id, _ = rows.tenant(session, "blue")
        session.add(
            ShareDay(
                cluster_id=rows.cluster.id,
                day=rows.cluster.epoch.date(),
                capacity_gpu_seconds=8 * 14 * HOUR,
                tenants={tenant_id: [4 * 14 * HOUR, 2 * 14 * HOUR, 14 * HOUR]},
            )
        )
    midnight = -10 * HOUR
    for start in (midnight - 24 * HOUR, midnight, 0.0):
        found = read(client, f"{FAIRNESS}/shares", **period(rows, start, 14 * HOUR))
        assert found["whole"]["tenants"][0]["actual"] == pytest.approx(2 / 8)
    for start, end, field in ((2 * HOUR, 14 * HOUR, "/from"), (midnight, 12 * HOUR, "/to")):
        refused = client.get(f"{FAIRNESS}/shares", params=period(rows, start, end))
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert (error["pointer"], error["code"]) == (field, "whole_days_only")


def test_spans_of_days_come_from_the_days_that_are_kept(
    client: TestClient, rows: Rows, database: Database
) -> None:
    with database.session_scope() as session:
        tenant_id, _ = rows.tenant(session, "blue")
        kept = {tenant_id: [0.5 * 86_400, 0.25 * 86_400, 86_400.0]}
        session.add(
            ShareDay(
                cluster_id=rows.cluster.id,
                day=rows.cluster.epoch.date(),
                capacity_gpu_seconds=86_400.0,
                tenants=kept,
            )
        )
    found = read(client, f"{FAIRNESS}/shares", points=2, **period(rows, 0.0, 47 * HOUR))
    first = found["points"][0]
    assert found["step_seconds"] >= 86_400
    assert first["gpus"] == pytest.approx(1.0, abs=70)
    shown = first["tenants"][0]
    assert shown["deserved"] == pytest.approx(2 * shown["actual"])


def test_parts_of_a_day_are_not_read_from_the_rows_that_are_left_of_it(
    client: TestClient, rows: Rows, database: Database
) -> None:
    """The first allocation of a long job stays when those of jobs that ended are deleted."""
    rows.forget_rounds_before(40 * HOUR)
    rows.job("blue", at=45 * HOUR, held=2)
    with database.session_scope() as session:
        blue, red = (rows.tenant(session, name)[0] for name in ("blue", "red"))
        day = {blue: [4.0, 2.0, 2.0], red: [4.0, 6.0, 6.0]}
        session.add(
            ShareDay(
                cluster_id=rows.cluster.id,
                day=rows.cluster.epoch.date(),
                capacity_gpu_seconds=8 * 24 * HOUR,
                tenants={name: [24 * HOUR * gpus for gpus in day[name]] for name in day},
            )
        )
    whole = read(client, f"{FAIRNESS}/shares", **period(rows))["whole"]
    assert [one["actual"] for one in whole["tenants"]] == pytest.approx([2 / 8, 6 / 8])
    refused = client.get(f"{FAIRNESS}/shares", params=period(rows, 0.0, 12 * HOUR))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["code"] == "whole_days_only"
