"""What one more GPU was worth, summed by day: each round once, and kept when rounds are deleted."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from live_samples import make_cluster, set_time
from round_rows import COUNTS, round_row
from sqlmodel import select

from backend.database import Database
from backend.marginal_values import service
from backend.marginal_values.service import marginal_values, sums_of_days
from backend.marginal_values.spans import policy_spans
from backend.models import Cluster, MarginalValueDay, Round
from worker import housekeeping
from worker.live import step as live
from worker.rounds.marginal_values import sum_prices

EPOCH = dt.datetime(2026, 11, 2, 12, 0, tzinfo=dt.UTC)  # noon: half a day is left
HALF_DAY = 43_200.0


def a_round(cluster_id: str, number: int, at: float, price: float | None, **more: Any) -> Round:
    given: dict[str, Any] = dict.fromkeys(COUNTS, 1) | {
        "at_seconds": at,
        "policy_version": "one",
        "gpus_by_type": {"t4": {"used": 6, "capacity": 8}},
        "prices": {} if price is None else {"capacity:t4": price, "shape:t4>=4": 9.0},
    }
    return round_row(cluster_id, number, **(given | more))


@pytest.fixture
def cluster_id(database: Database) -> str:
    return make_cluster(database, epoch=EPOCH)


def add(database: Database, *rounds: Round) -> None:
    with database.session_scope() as session:
        session.add_all(rounds)


def days(database: Database) -> list[MarginalValueDay]:
    with database.session_scope(writes=False) as session:
        return list(session.exec(select(MarginalValueDay).order_by(MarginalValueDay.day)))


def test_a_price_counts_by_the_time_that_its_round_stands(
    database: Database, cluster_id: str
) -> None:
    prices = [(0.0, 0.4), (60.0, 0.0), (180.0, None), (240.0, 7.0)]
    add(database, *(a_round(cluster_id, n, at, p) for n, (at, p) in enumerate(prices, start=1)))
    assert sum_prices(database) == 3
    (row,) = days(database)
    assert (row.day, row.rounds) == (EPOCH.date(), 3)
    assert row.seconds == 240.0
    assert row.priced_seconds == 180.0
    assert row.positive_seconds == 60.0
    assert row.value_seconds == pytest.approx(0.4 * 60)
    assert (row.used_seconds, row.capacity_seconds) == (6 * 240.0, 8 * 240.0)
    with database.session_scope(writes=False) as session:
        (value,) = marginal_values(sums_of_days(session, cluster_id, EPOCH.date(), EPOCH.date()))
    assert value.mean_value == pytest.approx(0.4 / 3)
    assert value.positive_share == pytest.approx(1 / 3)


def test_rounds_that_are_not_summed_yet_count_all_the_same(
    database: Database, cluster_id: str
) -> None:
    add(database, *(a_round(cluster_id, n, 60.0 * n, 0.1 * n) for n in range(1, 12)))
    read = []
    for sums_first in (False, True):
        if sums_first:
            sum_prices(database)
        with database.session_scope() as session:
            day = EPOCH.date()
            found = sums_of_days(session, cluster_id, day, day)
            read.append((marginal_values(found), policy_spans(found)))
    assert read[0] == read[1]
    assert days(database)[0].rounds == 10


def test_summing_again_and_in_portions_adds_no_round_twice(
    database: Database, cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "AT_ONCE", 3)
    rounds = [a_round(cluster_id, n, 60.0 * n, 0.1 * n) for n in range(1, 12)]
    add(database, *rounds[:8])
    assert sum_prices(database) == 7
    assert sum_prices(database) == 0
    add(database, *rounds[8:])
    assert sum_prices(database) == 3
    (row,) = days(database)
    assert (row.rounds, row.seconds) == (10, 600.0)
    assert row.value_seconds == pytest.approx(sum(0.1 * n * 60 for n in range(1, 11)))


def test_sums_stay_when_the_rounds_are_deleted(database: Database, cluster_id: str) -> None:
    with database.session_scope() as session:
        row = session.get_one(Cluster, cluster_id)
        row.keep_rounds, row.next_round_number = 1, 6
        session.add(row)
    add(database, *(a_round(cluster_id, n, 60.0 * n, 0.5) for n in range(1, 6)))
    sum_prices(database)
    before = [row.model_dump() for row in days(database)]
    assert housekeeping.prune_rounds(database) == 4
    sum_prices(database)
    assert [row.model_dump() for row in days(database)] == before


def test_days_are_those_of_the_clusters_calendar_in_utc(
    database: Database, cluster_id: str
) -> None:
    add(
        database,
        a_round(cluster_id, 1, HALF_DAY - 20.0, 0.3),
        a_round(cluster_id, 2, HALF_DAY + 40.0, 0.3),
    )
    sum_prices(database)
    first, second = days(database)
    assert (second.day - first.day) == dt.timedelta(days=1)
    assert (first.seconds, second.seconds) == (20.0, 40.0)


def test_a_price_is_not_stretched_over_a_time_without_rounds(
    database: Database, cluster_id: str
) -> None:
    add(database, a_round(cluster_id, 1, 0.0, 0.3), a_round(cluster_id, 2, 7200.0, 0.3))
    sum_prices(database)
    assert [row.seconds for row in days(database)] == [180.0]


def test_rounds_of_policies_without_a_programme_have_no_price_and_none_is_invented(
    database: Database, cluster_id: str
) -> None:
    las = {"policy": "las", "status": "not-needed"}
    kept = {"status": "kept-present"}
    add(
        database,
        a_round(cluster_id, 1, 0.0, None, **las),
        a_round(cluster_id, 2, 60.0, 0.0, **kept),
        a_round(cluster_id, 3, 120.0, 0.2),
        a_round(cluster_id, 4, 180.0, 0.2),
    )
    sum_prices(database)
    with database.session_scope(writes=False) as session:
        found = sums_of_days(session, cluster_id, EPOCH.date(), EPOCH.date())
    by_policy = {value.policy: value for value in marginal_values(found)}
    spans = policy_spans(found)
    assert by_policy["las"].mean_value is None
    assert by_policy["sia"].mean_value == pytest.approx(0.2)
    assert by_policy["sia"].priced_hours == pytest.approx(60 / 3600)
    assert [(span.policy, span.rounds, span.first_seconds) for span in spans] == [
        ("las", 1, 0.0),
        ("sia", 2, 60.0),
    ]


def test_what_a_ceiling_holds_back_needs_no_further_gpu(
    database: Database, cluster_id: str
) -> None:
    at_ceiling = {"prices": {"capacity:t4": 0.0, "ceiling:t4:blue": 0.3}}
    add(
        database,
        a_round(cluster_id, 1, 0.0, None, **at_ceiling),
        a_round(cluster_id, 2, 60.0, 0.2),
        a_round(cluster_id, 3, 120.0, 0.2),
    )
    sum_prices(database)
    with database.session_scope(writes=False) as session:
        found = sums_of_days(session, cluster_id, EPOCH.date(), EPOCH.date())
    (value,) = marginal_values(found)
    assert value.mean_value == pytest.approx(0.1)
    assert value.positive_share == pytest.approx(0.5)


def decided(
    database: Database, cluster_id: str, *policies: tuple[str, float]
) -> list[tuple[str, float, float, int]]:
    """Make a round each minute, of the policies for so many minutes each; return the spans."""
    names = [name for name, minutes in policies for _ in range(int(minutes))]
    add(
        database,
        *(
            a_round(cluster_id, n + 1, 60.0 * n, None, policy=name)
            for n, name in enumerate([*names, names[-1]])
        ),
    )
    sum_prices(database)
    with database.session_scope(writes=False) as session:
        spans = policy_spans(sums_of_days(session, cluster_id, dt.date.min, dt.date.max))
    assert sum(span.hours for span in spans) == pytest.approx(len(names) / 60)
    return [(s.policy, s.first_seconds / 60, s.last_seconds / 60, s.rounds) for s in spans]


def test_a_policy_that_comes_back_decided_before_and_after(
    database: Database, cluster_id: str
) -> None:
    found = decided(database, cluster_id, ("sia", 30), ("srtf", 10), ("sia", 50))
    assert found == [("sia", 0, 30, 30), ("srtf", 30, 40, 10), ("sia", 40, 90, 50)]


def test_a_policy_that_changes_over_days_is_told_once_for_each_time(
    database: Database, cluster_id: str
) -> None:
    found = decided(database, cluster_id, ("sia", 700), ("las", 40), ("sia", 30))
    assert [one[:3] for one in found] == [("sia", 0, 700), ("las", 700, 740), ("sia", 740, 770)]


def test_policies_that_took_turns_within_a_day_overlap(database: Database, cluster_id: str) -> None:
    found = decided(database, cluster_id, ("sia", 9), ("las", 5), ("sia", 5), ("las", 5))
    assert found == [("sia", 0, 19, 14), ("las", 9, 24, 10)]


def test_rounds_that_dealt_the_gpus_count_with_what_a_tenant_that_wants_one_would_gain(
    database: Database, cluster_id: str
) -> None:
    def dealt(capacity: float, *rows: float) -> dict[str, Any]:
        named = {f"quota:t4:tenant-{n}": price for n, price in enumerate(rows)}
        return {"prices": {"capacity:t4": capacity, **named, "quota:k80:tenant-0": 0.7}}

    add(
        database,
        a_round(cluster_id, 1, 0.0, None, **dealt(0.1, 0.0, 0.3)),
        a_round(cluster_id, 2, 60.0, None, **dealt(0.0, 0.0, 0.0)),
        a_round(cluster_id, 3, 120.0, None, **dealt(0.0, 0.0, 0.3)),
        a_round(cluster_id, 4, 180.0, None, prices={"capacity:t4": 0.0, "priority:t4:high:": 0.2}),
        a_round(cluster_id, 5, 240.0, None),
    )
    sum_prices(database)
    (row,) = days(database)
    assert (row.seconds, row.priced_seconds, row.positive_seconds) == (240.0, 240.0, 180.0)
    assert row.value_seconds == pytest.approx((0.1 + 0.3 + 0.2) * 60)


def test_rounds_of_a_live_cluster_say_by_which_parameters_they_decided(
    database: Database,
) -> None:
    cluster_id = make_cluster(database)
    for number, p in enumerate((-0.5, -1.0)):
        with database.session_scope() as session:
            row = session.get_one(Cluster, cluster_id)
            row.policy_parameters = {"p": p}
            session.add(row)
        set_time(database, cluster_id, 60.0 * number + 1.0)
        assert live.step_cluster(database, cluster_id) is not None
    with database.session_scope(writes=False) as session:
        one, other = session.exec(select(Round.policy_version).order_by(Round.number)).all()
    assert one
    assert other
    assert one != other
