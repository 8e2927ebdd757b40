"""Months are summed up from their days, and then tell what the days told."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

import pytest
import sqlalchemy as sa
from live_samples import make_cluster, make_owner, set_time
from sqlmodel import col, select

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.database import Database
from backend.models import Cluster, GpuPrice, SummedDay, Tenant, UsageDay, UsageMonth, User
from backend.periods import Period
from backend.usage.models import ALL_TENANTS
from backend.usage.service import usage
from backend.usage.tally import PARTS, Dimension, keys_of
from maat.api.usage import UsageBy, UsageOut
from worker import housekeeping

pytestmark = pytest.mark.both_databases

BEGIN, DAYS = datetime(2026, 1, 20, tzinfo=UTC), 60  # the whole of February
FEBRUARY = date(2026, 2, 1)


@pytest.fixture
def lived(database: Database) -> str:
    """A cluster of which 60 days were summed up, with a price that changes in February."""
    cluster_id = make_cluster(database, epoch=BEGIN)
    user, tenant = make_owner(database)
    draw = random.Random(5)
    with database.session_scope() as session:
        other = Tenant(name="other")
        session.add(other)
        session.flush()
        colleague = User(name="colleague", tenant_id=other.id, role="submitter")
        session.add(colleague)
        session.flush()
        people = [(tenant, user), (other.id, colleague.id)]
        for number in range(DAYS):
            day = (BEGIN + timedelta(days=number)).date()
            sums: dict[tuple[str, str, str, str], list[int]] = {}
            for tenant_id, user_id in people:
                for kind in ("t4", "a100"):
                    used = [draw.randrange(1, 10**8) for _ in PARTS]
                    for key in keys_of(tenant_id, user_id, "bert", {"team": "blue"}):
                        of = (key.dimension.value, key.tenant_id, key.name, kind)
                        before = sums.get(of, [0] * len(PARTS))
                        sums[of] = [a + b for a, b in zip(before, used, strict=True)]
            for (dimension, of_tenant, name, kind), parts in sums.items():
                session.add(
                    UsageDay(
                        cluster_id=cluster_id,
                        dimension=dimension,
                        tenant_id=of_tenant,
                        day=day,
                        name=name,
                        gpu_type=kind,
                        **dict(zip(PARTS, parts, strict=True)),
                    )
                )
            session.add(SummedDay(cluster_id=cluster_id, day=day, version=1))
        for since, micros in ((BEGIN.date(), 1_000_000), (date(2026, 2, 11), 2_500_000)):
            session.add(
                GpuPrice(
                    cluster_id=cluster_id,
                    gpu_type="t4",
                    valid_from=since,
                    micros=micros,
                    currency="EUR",
                )
            )
    set_time(database, cluster_id, DAYS * 86_400.0)
    return cluster_id


def report(
    database: Database, cluster_id: str, by: UsageBy, *, first: int, last: int, role: Role
) -> UsageOut:
    user, tenant = make_owner(database)
    who = Principal(user, "owner", tenant, "tenant", role, PERMISSIONS[role])
    period = Period(BEGIN + timedelta(days=first), BEGIN + timedelta(days=last))
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        return usage(session, who, cluster=cluster, period=period, by=by, per_day=True)


def test_a_month_tells_what_its_days_told_whatever_is_asked(database: Database, lived: str) -> None:
    asked = [
        (by, first, last, role)
        for by in UsageBy
        for first, last in ((0, DAYS), (12, 40), (13, 40), (12, 39), (5, 55))
        for role in (Role.CLUSTER_ADMIN, Role.VIEWER)
    ]

    def answers() -> list[UsageOut]:
        return [
            report(database, lived, by, first=first, last=last, role=role)
            for by, first, last, role in asked
        ]

    before = answers()
    assert before[0]["total"]["allocated_gpu_hours"] > 0
    assert housekeeping.sum_months(database) == 1
    assert housekeeping.sum_months(database) == 0

    for one, other in zip(before, answers(), strict=True):
        assert one | {"as_of": ""} == other | {"as_of": ""}


def test_only_months_of_which_every_day_is_summed_up_are(database: Database, lived: str) -> None:
    with database.session_scope() as session:
        session.delete(session.get_one(SummedDay, (lived, date(2026, 2, 9))))

    assert housekeeping.sum_months(database) == 0
    with database.session_scope() as session:
        session.add(SummedDay(cluster_id=lived, day=date(2026, 2, 9), version=1))
    assert housekeeping.sum_months(database) == 1
    with database.session_scope(writes=False) as session:
        assert set(session.exec(select(UsageMonth.month))) == {FEBRUARY}


def test_the_days_of_a_summed_month_are_not_read_for_sums_of_users(
    database: Database, lived: str
) -> None:
    with database.session_scope() as session:
        session.execute(sa.delete(GpuPrice))  # whose change in February has it read by day
    asked = {"first": 0, "last": DAYS, "role": Role.CLUSTER_ADMIN}
    before = report(database, lived, UsageBy.USER, **asked)  # type: ignore[arg-type]
    housekeeping.sum_months(database)
    with database.session_scope() as session:
        of_users = col(UsageDay.dimension) == Dimension.USER.value
        in_february = col(UsageDay.day).between(FEBRUARY, date(2026, 2, 28))
        session.execute(sa.delete(UsageDay).where(of_users, in_february))
        assert session.exec(select(UsageDay).where(UsageDay.tenant_id == ALL_TENANTS)).first()

    after = report(database, lived, UsageBy.USER, **asked)  # type: ignore[arg-type]
    figures = [[row["figures"] for row in one["rows"]] for one in (before, after)]
    assert figures[0] == figures[1]
