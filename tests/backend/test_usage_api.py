"""Use and cost over REST: who sees what, what is refused, and days that were summed up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlmodel import delete
from usage_history import (
    DAY,
    MIDNIGHT,
    Held,
    cluster_at,
    lived_job,
    person,
    rounds_every,
    sum_up,
)

from backend.accounts.permissions import Permission, Role
from backend.database import Database
from backend.models import (
    AllocationReading,
    CapacityDay,
    Cluster,
    Job,
    JobAllocation,
    Round,
    SummedDay,
    UsageDay,
    WaitDay,
)
from maat.client.usage_csv import usage_csv

USAGE = "/api/v1/usage"
PRICES = "/api/v1/clusters/demo/prices"
MakeClient = Callable[..., TestClient]
WEEK = {"from": "2026-03-02T00:00:00Z", "to": "2026-03-09T00:00:00Z"}


@pytest.fixture
def lived(client: TestClient, database: Database) -> str:
    """Two tenants on eight T4 for two days and twelve hours."""
    assert client.get("/api/v1/health").status_code == 200
    with database.session_scope() as session:
        cluster = cluster_at(session, 60.0)
        ann, ben = person(session, "red", "ann"), person(session, "blue", "ben")
        eve = person(session, "blue", "eve")
        team = {"team": "vision", "stage": "test"}
        lived_job(session, cluster, ann, Held(0, 10), labels={"team": "vision"})
        lived_job(
            session,
            cluster,
            ben,
            Held(20, 30, efficiency=1.0, starts=1.0),
            submitted=12.0,
            labels=team,
        )
        lived_job(
            session,
            cluster,
            eve,
            Held(30, None, gpus=(4, 5), efficiency=0.25, lost_gpu_hours=0.0),
            submitted=29.0,
            model="cifar10",
        )
        rounds_every(session, cluster, 2.0, until=59.0, fragmented=1, reserved=2)
        return cluster.id


def report(client: TestClient, **asked: str) -> dict[str, Any]:
    answer = client.get(USAGE, params={**WEEK, **asked})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def hours(found: dict[str, Any], part: str = "allocated") -> dict[str, float]:
    return {row["name"]: row["figures"][f"{part}_gpu_hours"] for row in found["rows"]}


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("tenant", {"blue": 100.0, "red": 40.0}),
        ("user", {"ann": 40.0, "ben": 40.0, "eve": 60.0}),
        ("gpu_type", {"t4": 140.0}),
        ("model", {"bert": 80.0, "cifar10": 60.0}),
        ("label", {"team=vision": 80.0, "stage=test": 40.0}),
        ("day", {"2026-03-02": 56.0, "2026-03-03": 60.0, "2026-03-04": 24.0}),
    ],
)
def test_gpu_hours_by_everything_they_can_be_summed_by(
    client: TestClient, lived: str, by: str, expected: dict[str, float]
) -> None:
    found = report(client, by=by, per_day="true")

    assert hours(found) == pytest.approx(expected)
    assert found["total"]["allocated_gpu_hours"] == pytest.approx(140.0)
    assert found["others"] is None
    for row in found["rows"]:
        if row["allocated_gpu_hours_by_day"] is not None:
            assert sum(row["allocated_gpu_hours_by_day"]) == pytest.approx(
                row["figures"]["allocated_gpu_hours"]
            )


def test_used_useful_idle_and_what_could_not_be_used(client: TestClient, lived: str) -> None:
    found = report(client)
    total, (of_type,) = found["total"], found["gpu_types"]

    assert total["restart_gpu_hours"] == pytest.approx(4.0)
    assert total["used_gpu_hours"] == pytest.approx(136.0)
    assert total["useful_gpu_hours"] == pytest.approx(40 * 0.5 + 36 * 1.0 + 60 * 0.25)
    assert of_type["capacity_gpu_hours"] == pytest.approx(480.0)
    assert of_type["idle_gpu_hours"] == pytest.approx(340.0)
    assert of_type["fragmented_gpu_hours"] == pytest.approx(60.0)
    assert of_type["reserved_idle_gpu_hours"] == pytest.approx(120.0)
    assert of_type["utilisation"] == pytest.approx(140 / 480)


def test_waits_are_those_of_the_jobs_first_started(client: TestClient, lived: str) -> None:
    found = report(client)
    waits = {row["name"]: row["waits"] for row in found["rows"]}

    assert found["waits"]["jobs"] == 3
    assert found["waits"]["longest_seconds"] == 8 * 3600
    assert found["waits"]["p90_seconds"] == pytest.approx(8 * 3600, rel=0.01)
    assert found["waits"]["median_seconds"] == pytest.approx(3600, rel=0.01)
    assert waits["blue"]["mean_seconds"] == pytest.approx(4.5 * 3600)
    assert report(client, by="user")["rows"][0]["waits"] is None


def test_today_is_partial_and_the_days_of_the_future_are_not_there(
    client: TestClient, lived: str
) -> None:
    found = report(client)

    assert [(day["day"], day["is_partial"]) for day in found["days"]] == [
        ("2026-03-02", False),
        ("2026-03-03", False),
        ("2026-03-04", True),
    ]
    assert found["period"]["is_partial"] is True


def test_a_viewer_sees_the_own_tenant_and_the_sum_of_all_others(
    client: TestClient, client_as: MakeClient, lived: str
) -> None:
    viewer = client_as(Role.VIEWER, tenant="blue", name="vera")

    for by in ("tenant", "user", "gpu_type", "model", "label", "day"):
        found = report(viewer, by=by, per_day="true")
        assert "'red'" not in str(found)
        assert "'ann'" not in str(found)
        assert found["others"]["name"] == "other tenants"
        assert found["others"]["figures"]["allocated_gpu_hours"] == pytest.approx(40.0)
        assert found["total"]["allocated_gpu_hours"] == pytest.approx(140.0)
    assert hours(report(viewer, by="user")) == pytest.approx({"ben": 40.0, "eve": 60.0})
    assert hours(report(viewer, by="model")) == pytest.approx({"bert": 40.0, "cifar10": 60.0})
    auditor = client_as(Role.AUDITOR, tenant="blue")
    assert hours(report(auditor)) == hours(report(client))


def test_reports_need_their_permission(client_as: MakeClient, lived: str) -> None:
    without = client_as(Role.VIEWER, scopes=[Permission.JOBS_READ])

    assert without.get(USAGE).status_code == 403
    assert without.get(PRICES).status_code == 403


@pytest.mark.both_databases
def test_a_part_of_a_day_is_read_from_raw_rows(client: TestClient, lived: str) -> None:
    asked = {"from": "2026-03-02T22:00:00Z", "to": "2026-03-03T02:00:00Z"}

    assert hours(report(client, **asked)) == pytest.approx({"blue": 16.0})


def test_a_part_of_a_day_whose_rounds_are_gone_is_refused(
    client: TestClient, database: Database, lived: str
) -> None:
    sum_up(database)
    with database.session_scope() as session:
        session.get_one(Cluster, lived).keep_rounds = 1
        session.execute(delete(Round).where(Round.number < 20))

    whole = report(client, **{"from": "2026-03-02T00:00:00Z", "to": "2026-03-03T00:00:00Z"})
    assert hours(whole) == pytest.approx({"red": 40.0, "blue": 16.0})
    answer = client.get(USAGE, params={"from": "2026-03-02T22:00:00Z", "to": WEEK["to"]})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "from"
    assert "2026-03-02T00:00:00.000Z as from" in answer.json()["errors"][0]["remedy"]
    for begin in ("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"):
        answer = client.get(USAGE, params={"from": begin, "to": "2026-03-02T22:00:00Z"})
        (error,) = answer.json()["errors"]
        assert error["field"] == "to"
        assert "2026-03-03T00:00:00.000Z as to" in error["remedy"]
        assert "period" not in error["remedy"]


@pytest.mark.parametrize(
    ("asked", "status", "field"),
    [
        ({"cluster": "nowhere"}, 404, None),
        ({"from": WEEK["to"], "to": WEEK["from"]}, 422, "to"),
        ({"to": WEEK["to"]}, 422, "from"),
        ({"from": "2020-01-01T00:00:00Z", "to": WEEK["to"]}, 422, "to"),
        ({"period": "this-week", "from": WEEK["from"]}, 422, "period"),
        ({"period": "this-decade"}, 422, "period"),
        ({"by": "colour"}, 422, "by"),
        ({"from": "yesterday"}, 422, "from"),
        ({"until": WEEK["to"]}, 422, "until"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_field_and_remedy(
    refusing: TestClient, asked: dict[str, str], status: int, field: str | None
) -> None:
    answer = refusing.get(USAGE, params=asked)

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    if field is not None:
        (error,) = answer.json()["errors"]
        assert error["field"] == field
        assert error["remedy"]


# ---- prices


def price(**fields: Any) -> dict[str, Any]:
    return {"gpu_type": "t4", "price_per_gpu_hour": "0.35", "currency": "EUR"} | fields


def test_an_old_day_costs_what_was_valid_then(client: TestClient, lived: str) -> None:
    first = client.post(PRICES, json=price(valid_from="2026-03-02"))
    assert first.status_code == 201, first.text
    second = client.post(PRICES, json=price(valid_from="2026-03-04", price_per_gpu_hour="1"))
    assert second.json()["is_valid_now"] is True

    found = report(client)
    costs = {row["name"]: row["figures"]["cost"] for row in found["rows"]}

    assert found["currency"] == "EUR"
    assert costs == {"red": "14.00", "blue": f"{76 * 0.35 + 24:.2f}"}
    assert found["total"]["cost"] == f"{116 * 0.35 + 24:.2f}"
    assert found["total"]["unpriced_gpu_hours"] == 0
    assert found["gpu_types"][0]["price_per_gpu_hour"] == "1.00"
    assert found["gpu_types"][0]["fragmented_cost"] == f"{48 * 0.35 + 12:.2f}"
    listed = client.get(PRICES).json()["items"]
    assert [one["valid_until"] for one in listed] == ["2026-03-04", None]


def test_without_a_price_hours_are_shown_and_costs_are_not(client: TestClient, lived: str) -> None:
    total = report(client)["total"]

    assert total["cost"] is None
    assert total["unpriced_gpu_hours"] == pytest.approx(140.0)


def test_a_price_is_corrected_and_removed_by_whom_has_read_it(
    client: TestClient, lived: str
) -> None:
    made = client.post(PRICES, json=price(valid_from="2026-03-02"))
    address, tag = made.headers["Location"], made.headers["ETag"]

    assert client.patch(address, json={"price_per_gpu_hour": "1"}).status_code == 428
    changed = client.patch(address, json={"price_per_gpu_hour": "1"}, headers={"If-Match": tag})
    assert changed.json()["price_per_gpu_hour"] == "1.00"
    assert report(client)["total"]["cost"] == "140.00"
    stale = client.patch(address, json={"price_per_gpu_hour": "2"}, headers={"If-Match": tag})
    assert stale.status_code == 412
    assert client.delete(address).status_code == 428
    gone = client.delete(address, headers={"If-Match": changed.headers["ETag"]})
    assert gone.status_code == 204
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (price(price_per_gpu_hour="-1"), "price_per_gpu_hour"),
        (price(price_per_gpu_hour="1e3"), "price_per_gpu_hour"),
        (price(price_per_gpu_hour=0.35), "price_per_gpu_hour"),
        (price(gpu_type="h900"), "gpu_type"),
        (price(currency="euro"), "currency"),
        (price(valid_from="2026-02-30"), "valid_from"),
    ],
)
def test_a_price_that_cannot_be_is_refused(
    refusing: TestClient, body: dict[str, Any], field: str
) -> None:
    answer = refusing.post(PRICES, json=body)

    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["field"], bool(error["remedy"])) == (field, True)


def test_a_day_has_one_price_and_a_cluster_one_currency(client: TestClient, lived: str) -> None:
    assert client.post(PRICES, json=price()).status_code == 201
    assert client.post(PRICES, json=price()).status_code == 409
    other = client.post(PRICES, json=price(currency="USD", valid_from="2026-03-09"))
    assert other.status_code == 422
    assert other.json()["errors"][0]["field"] == "currency"


def test_only_cluster_admins_set_prices_and_all_who_read_reports_see_them(
    client: TestClient, client_as: MakeClient, lived: str
) -> None:
    manager = client_as(Role.TENANT_MANAGER, tenant="blue")

    assert manager.post(PRICES, json=price()).status_code == 403
    made = client.post(PRICES, json=price())
    assert manager.get(made.headers["Location"]).json() == made.json()
    tag = {"If-Match": made.headers["ETag"]}
    assert manager.delete(made.headers["Location"], headers=tag).status_code == 403


# ---- days that were summed up


@pytest.mark.both_databases
def test_a_summed_day_lies_in_the_order_of_its_key_so_that_a_dimension_lies_together(
    lived: str, database: Database
) -> None:
    sum_up(database)
    of = UsageDay.__table__
    kept = sa.select(*of.primary_key)
    if not database.is_sqlite:  # whose tables are their key's index
        kept = kept.order_by(sa.literal_column("ctid"))
    with database.session_scope(writes=False) as session:
        rows = [tuple(row) for row in session.execute(kept)]
    by_day: dict[date, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_day.setdefault(row[3], []).append(row)
    assert len({row[1] for row in rows}) > 1
    assert all(found == sorted(found) for found in by_day.values())


def test_summed_days_answer_as_raw_rows_do_for_admin_and_viewer(
    client: TestClient, client_as: MakeClient, database: Database, lived: str
) -> None:
    client.post(PRICES, json=price(valid_from="2026-03-03"))
    viewer = client_as(Role.VIEWER, tenant="blue", name="vera")
    ways = [
        (who, by) for who in (client, viewer) for by in ("tenant", "user", "model", "label", "day")
    ]
    before = [report(who, by=by, per_day="true") for who, by in ways]

    assert sum_up(database) == 2
    with database.session_scope() as session:  # what is read now is what was summed up
        session.execute(delete(JobAllocation).where(JobAllocation.to_seconds <= 1.9 * DAY))

    after = [report(who, by=by, per_day="true") for who, by in ways]
    assert [one | {"as_of": ""} for one in after] == [one | {"as_of": ""} for one in before]


quarters = st.integers(0, 4 * 96).map(lambda number: number / 4)
held = st.builds(
    lambda begin, length, gpus, efficiency, starts, lost: Held(
        begin, begin + length, gpus=gpus, efficiency=efficiency, starts=starts, lost_gpu_hours=lost
    ),
    quarters,
    st.integers(1, 300).map(lambda number: number / 4),
    st.sampled_from([(0,), (1, 2), (3, 4, 5, 6)]),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.sampled_from([0.0, 0.5, 30.0]),
)


@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(held, st.sampled_from(["ann", "ben", "eve"])), min_size=1, max_size=6))
def test_days_that_were_summed_up_are_equal_to_raw_rows_whatever_was_held(
    client: TestClient, database: Database, lives: list[tuple[Held, str]]
) -> None:
    with database.session_scope() as session:
        for table in (
            AllocationReading,
            JobAllocation,
            Job,
            Round,
            UsageDay,
            WaitDay,
            CapacityDay,
            SummedDay,
        ):
            session.execute(delete(table))
        cluster = cluster_at(session, 150.0)
        rounds_every(session, cluster, 6.0, until=150.0)
        for span, name in lives:
            owner = person(session, "red" if name == "ann" else "blue", name)
            lived_job(session, cluster, owner, span, model=f"model of {name}")
    asked = {"from": MIDNIGHT.isoformat(), "to": (MIDNIGHT + timedelta(days=6)).isoformat()}
    before = [report(client, by=by, **asked) for by in ("user", "model", "day")]
    sum_up(database)
    after = [report(client, by=by, **asked) for by in ("user", "model", "day")]

    assert [one | {"as_of": ""} for one in after] == [one | {"as_of": ""} for one in before]


# ---- exports


def test_a_name_that_begins_like_a_formula_is_defused_in_csv(
    client: TestClient, database: Database, lived: str
) -> None:
    with database.session_scope() as session:
        cluster = session.get_one(Cluster, lived)
        lived_job(session, cluster, person(session, "=1+1", "@eve"), Held(1, 2))

    text = usage_csv(report(client))  # type: ignore[arg-type]

    assert "tenant,'=1+1," in text
    assert text.splitlines()[-1].startswith("tenant,total,")
    assert len(text.splitlines()) == 1 + 3 + 1


def test_jobs_are_found_by_their_labels(client: TestClient, lived: str) -> None:
    def found(*labels: str) -> int:
        answer = client.get("/api/v1/jobs", params={"label": list(labels), "count": "exact"})
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["items"]) == answer.json()["total"]
        total: int = answer.json()["total"]
        return total

    assert found("team=vision") == 2
    assert found("team=vision", "stage=test") == 1
    assert found("team=speech") == 0
    assert client.get("/api/v1/jobs", params={"label": "team"}).status_code == 422


@pytest.mark.parametrize(
    "labels",
    [{"team": "a b"}, {"": "x"}, {"team=x": "y"}, {"team": ""}, {f"k{n}": "v" for n in range(21)}],
)
def test_labels_that_cannot_be_are_refused(refusing: TestClient, labels: dict[str, str]) -> None:
    body = {"name": "n", "model": "bert", "labels": labels}
    answer = refusing.post("/api/v1/jobs", json=body)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith("/labels")
