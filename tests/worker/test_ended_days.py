"""Tests of sums of rho by day: a long period is told from them as from the jobs themselves."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
import sqlalchemy as sa
from live_samples import make_cluster, make_owner, set_time, submit
from sqlmodel import col, select

from alembic import command
from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.clocktime import shown_day
from backend.database import Database
from backend.fairness import ended_reading
from backend.fairness.ended_reading import EndedJobs
from backend.fairness.formula import VERSION
from backend.fairness.service import fairness
from backend.migrations import alembic_config
from backend.models import Cluster, EndedDay, Job, JobFairness, RhoDay, Tenant
from backend.periods import DAY, Period, day_start
from maat.api.fairness import FairnessOut
from worker.fairness import days, work

DAY_SECONDS = 86_400.0
LIVED_DAYS = 100


def lived(database: Database) -> str:
    """A cluster of a hundred days, on whose days jobs ended; a few of them have no rho."""
    draw = random.Random(3)
    cluster_id = make_cluster(database)
    ends = sorted(draw.uniform(0.0, LIVED_DAYS * DAY_SECONDS) for _ in range(300))
    submit(database, cluster_id, count=len(ends), state="succeeded", finished_seconds=0.0)
    tenant_id = make_owner(database)[1]
    with database.session_scope() as session:
        for job, at in zip(session.exec(select(Job)).all(), ends, strict=True):
            job.finished_seconds = at
            row = JobFairness(
                job_id=job.id,
                cluster_id=cluster_id,
                tenant_id=tenant_id,
                finished_seconds=at,
                state="succeeded",
                formula_version=VERSION,
            )
            if draw.random() < 0.1:
                row.reason = "no-model"
            else:
                row.rho = draw.lognormvariate(0.0, 0.5)
            session.add(row)
    set_time(database, cluster_id, (LIVED_DAYS + 2) * DAY_SECONDS)
    return cluster_id


def all_of_it(database: Database, cluster_id: str) -> Period:
    with database.session_scope(writes=False) as session:
        first = shown_day(session.get_one(Cluster, cluster_id), 0.0)
    return Period(day_start(first), day_start(first + timedelta(days=LIVED_DAYS)))


def told(database: Database, cluster_id: str, period: Period) -> FairnessOut:
    owner, tenant = make_owner(database)
    admin = Principal(
        owner, "owner", tenant, "tenant", Role.CLUSTER_ADMIN, PERMISSIONS[Role.CLUSTER_ADMIN]
    )
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        return fairness(EndedJobs(session, cluster, period), admin)


def finished(database: Database, cluster_id: str, period: Period) -> int:
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        return EndedJobs(session, cluster, period).succeeded.total()


@pytest.mark.both_databases
def test_a_long_period_is_told_from_days_as_from_jobs(database: Database) -> None:
    cluster_id = lived(database)
    whole = all_of_it(database, cluster_id)
    odd = Period(whole.start + timedelta(hours=7), whole.end - timedelta(hours=5))
    before = {period: told(database, cluster_id, period) for period in (whole, odd)}
    succeeded = {period: finished(database, cluster_id, period) for period in (whole, odd)}
    assert before[whole]["quantile_error"] == 0

    assert days.sum_ended(database) >= LIVED_DAYS
    assert days.sum_ended(database) == 0, "every day is summed up once"

    for period, exact in before.items():
        found = told(database, cluster_id, period)
        assert finished(database, cluster_id, period) == succeeded[period]
        error = found["quantile_error"]
        assert 0 < error <= 0.01
        for field in ("progress", "without_rho", "older_versions"):
            assert found[field] == exact[field]  # type: ignore[literal-required]
        assert found["all"]["median"] == pytest.approx(exact["all"]["median"], rel=2 * error)
        for field in ("jobs", "mean", "worst", "unfair_share"):
            one, other = found["all"][field], exact["all"][field]  # type: ignore[literal-required]
            assert one == pytest.approx(other, abs=1e-6)
        (mine,), (raw,) = found["tenants"], exact["tenants"]
        for point, true in zip(mine["cdf"], raw["cdf"], strict=True):
            assert point["share"] == true["share"]
            assert point["rho"] == pytest.approx(true["rho"], rel=1.01 * error)


@pytest.mark.both_databases
def test_a_tenant_is_told_of_its_own_jobs_from_days_and_none_of_them_is_read(
    database: Database,
) -> None:
    cluster_id = lived(database)
    other = _given_to_another_tenant(database)
    whole = all_of_it(database, cluster_id)
    odd = Period(whole.start + timedelta(hours=7), whole.end - timedelta(hours=5))
    exact = {
        (tenant, period): _told_tenant(database, cluster_id, period, tenant)
        for tenant in (None, other, "nobody")
        for period in (whole, odd)
    }
    days.sum_ended(database)

    for (tenant, period), before in exact.items():
        found = _told_tenant(database, cluster_id, period, tenant)
        for field in ("progress", "without_rho", "older_versions"):
            assert found[field] == before[field]  # type: ignore[literal-required]
    first, second, none = (
        exact[one, whole]["progress"]["total"] for one in (None, other, "nobody")
    )
    assert first > second > 80
    assert none == 0
    with database.session_scope() as session:
        session.execute(sa.delete(JobFairness))
    assert _told_tenant(database, cluster_id, whole, other)["progress"]["total"] == second


@pytest.mark.both_databases
def test_days_that_were_summed_up_before_have_the_numbers_of_each_tenant(
    database: Database,
) -> None:
    cluster_id = lived(database)
    other = _given_to_another_tenant(database)
    whole = all_of_it(database, cluster_id)
    days.sum_ended(database)
    before = [_told_tenant(database, cluster_id, whole, one) for one in (None, other)]
    together = told(database, cluster_id, whole)

    for move, revision in ((command.downgrade, "0030"), (command.upgrade, "head")):
        with database.migration() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            move(config, revision)

    after = [_told_tenant(database, cluster_id, whole, one) for one in (None, other)]
    for one, same in zip(
        (together, *before), (told(database, cluster_id, whole), *after), strict=True
    ):
        for field in ("progress", "without_rho", "older_versions"):
            assert one[field] == same[field]  # type: ignore[literal-required]
    assert before[1]["progress"]["total"] > 80


def _given_to_another_tenant(database: Database) -> str:
    """Give every third job, those without rho among them, to a tenant; return its id."""
    with database.session_scope() as session:
        tenant = Tenant(name="other")
        session.add(tenant)
        session.flush()
        rows = session.exec(select(JobFairness).order_by(col(JobFairness.finished_seconds))).all()
        for row in rows[::3]:
            row.tenant_id = tenant.id
        return tenant.id


def _told_tenant(
    database: Database, cluster_id: str, period: Period, tenant: str | None
) -> FairnessOut:
    """Tell a viewer of a tenant; None: of the first one."""
    owner, first = make_owner(database)
    seen = Principal(owner, "o", tenant or first, "tenant", Role.VIEWER, PERMISSIONS[Role.VIEWER])
    with database.session_scope(writes=False) as session:
        return fairness(EndedJobs(session, session.get_one(Cluster, cluster_id), period), seen)


def test_a_period_of_two_months_is_exact(database: Database) -> None:
    cluster_id = lived(database)
    days.sum_ended(database)
    whole = all_of_it(database, cluster_id)
    month = Period(whole.start, whole.start + ended_reading.EXACT)
    assert told(database, cluster_id, month)["quantile_error"] == 0


def test_a_day_whose_jobs_wait_for_rho_is_not_summed_up(database: Database) -> None:
    cluster_id = lived(database)
    with database.session_scope() as session:
        row = session.exec(select(JobFairness).order_by(col(JobFairness.finished_seconds))).first()
        assert row is not None
        row.state, again = "queued", row.job_id
        session.add(row)
    days.sum_ended(database)
    with database.session_scope(writes=False) as session:
        cluster = session.get_one(Cluster, cluster_id)
        day = shown_day(cluster, session.get_one(JobFairness, again).finished_seconds)
        assert session.get(EndedDay, (cluster_id, day)) is None
        assert session.get(EndedDay, (cluster_id, day + 3 * DAY)) is not None


def test_a_day_is_summed_up_anew_when_rho_of_one_of_its_jobs_changes(database: Database) -> None:
    cluster_id = lived(database)
    days.sum_ended(database)
    with database.session_scope() as session:
        row = session.exec(select(JobFairness).where(col(JobFairness.rho).is_not(None))).first()
        assert row is not None
        row.state, job_id = "queued", row.job_id
        session.add(row)
        day = shown_day(session.get_one(Cluster, cluster_id), row.finished_seconds)
        known = session.exec(select(RhoDay.jobs).where(RhoDay.day == day)).one()
    assert work.work_out(database)  # nothing is known of the job any more: it is left out
    with database.session_scope(writes=False) as session:
        assert session.get_one(JobFairness, job_id).rho is None
        assert session.get(EndedDay, (cluster_id, day)) is None
    assert days.sum_ended(database) == 1
    with database.session_scope(writes=False) as session:
        left = session.exec(select(RhoDay.jobs).where(RhoDay.day == day)).first()
    assert (left or 0) == known - 1
