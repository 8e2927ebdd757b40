"""What jobs on one GPU cost each other, as their reports say: when it counts, and for what."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from reporting_agent import Agent, steps
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select

from backend.accounts.models import Tenant
from backend.accounts.permissions import Role
from backend.attempts.sharing import MOST_SAMPLES
from backend.attempts.slowdowns import LEAST_REPORTS, measured_slowdowns
from backend.clocktime import utc_now
from backend.clusters.repository import get_cluster
from backend.database import Database
from backend.evidence.slowdowns import spread_of
from backend.models import AttemptRow, Job, SharedModel, SharingSample, StepSample
from backend.settings import Settings
from backend.sight import OTHER_MODEL
from maat.scheduling.evidence import FORGOTTEN_SECONDS, HALF_LIFE_SECONDS
from maat.scheduling.interference import SharingJob
from maat.simulation.interference import Interference
from maat.vocabulary import StopReason

SCRIPT, NEIGHBOUR = SharingJob("script", 64), SharingJob("neighbour", 64)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


@pytest.fixture
def agent(client: TestClient, database: Database, settings: Settings) -> Agent:
    found = Agent(client, database, settings)
    with database.session_scope() as session:
        get_cluster(session, "here").jobs_per_gpu = 2
    found.change(queued_seconds=0.0, running_seconds=0.0)
    return found


def change(agent: Agent, attempt_id: str, **values: object) -> None:
    with agent.database.session_scope() as session:
        row = session.get_one(AttemptRow, attempt_id)
        for name, value in values.items():
            setattr(row, name, value)


def neighbour(agent: Agent) -> str:
    """Add a job that trains on the same GPUs since long ago."""
    other = agent.another_job("neighbour")
    change(agent, other, queued_seconds=0.0, running_seconds=0.0)
    return other


def slowdown(
    agent: Agent,
    victim: SharingJob = SCRIPT,
    partner: SharingJob = NEIGHBOUR,
    *,
    tenant: str | None = None,
    table: Interference | None = None,
    count: int = 2,
) -> Any:
    """Return what is believed of two jobs of a tenant; without one, of the agent's."""
    with agent.database.session_scope(writes=False) as session:
        cluster = get_cluster(session, "here")
        its = tenant or session.get_one(Job, agent.job_id).tenant_id
        jobs = [replace(one, tenant=its) for one in (victim, partner)]
        return measured_slowdowns(session, cluster, table).of_jobs(*jobs, count)


def add(session: Session, job_id: str, **fields: Any) -> None:
    """Add what a job measured beside jobs of model b of its own tenant, often enough."""
    job = session.get_one(Job, job_id)
    its = {"job_id": job_id, "cluster_id": job.cluster_id, "tenant_id": job.tenant_id}
    pair = {"victim": job.model, "victim_batch": 16, "partner": "b", "partner_batch": 8}
    where = {"partner_tenant_id": job.tenant_id, "gpu_type": "t4", "gpu_count": 1}
    figures = {"count": 9, "weight": 9.0, "ratio": 1.2, "ratio_m2": 0.0, "updated_seconds": 0.0}
    session.add(SharingSample(**{**its, **pair, **where, **figures, **fields}))


def alone(agent: Agent) -> StepSample:
    with agent.database.session_scope(writes=False) as session:
        return session.exec(select(StepSample)).one()


def report(agent: Agent, sequence: int, mean: float) -> None:
    assert agent.report(sequence=sequence, passes=[steps(mean, mean)]).status_code == 200


def test_steps_beside_another_job_are_no_samples_but_say_what_sharing_costs(agent: Agent) -> None:
    report(agent, 1, 0.1)
    neighbour(agent)
    for number in range(LEAST_REPORTS):
        assert slowdown(agent) is None, "one report, or two, decide nothing"
        report(agent, 2 + number, 0.25)
    assert slowdown(agent) == pytest.approx(2.5)
    assert slowdown(agent, NEIGHBOUR, SCRIPT) is None
    sample = alone(agent)
    assert (sample.count, sample.step_mean) == (2, pytest.approx(0.1))


def test_what_was_measured_while_somebody_came_or_went_is_neither(agent: Agent) -> None:
    report(agent, 1, 0.1)
    other = neighbour(agent)
    change(agent, other, running_seconds=None)
    report(agent, 2, 0.3)
    change(agent, other, running_seconds=0.0, stop_reason=StopReason.MOVED.value)
    report(agent, 3, 0.3)
    change(agent, other, ended_seconds=1e9)
    report(agent, 4, 0.3)
    change(agent, other, ended_seconds=0.0)
    report(agent, 5, 0.1)
    with agent.database.session_scope(writes=False) as session:
        assert session.exec(select(SharingSample)).all() == []
    assert alone(agent).step_mean == pytest.approx(0.1)


def test_a_newcomer_that_was_never_alone_is_compared_with_others_of_its_model(
    agent: Agent,
) -> None:
    report(agent, 1, 0.1)
    change(agent, agent.attempt_id, ended_seconds=0.0, state="ended")
    partner = neighbour(agent)
    again = agent.another_job("script")
    change(agent, again, queued_seconds=0.0, running_seconds=0.0)
    agent.attempt_id, agent.token = again, agent.token_of(again)
    for number in range(1, 1 + LEAST_REPORTS):
        report(agent, number, 0.15)
    assert slowdown(agent) == pytest.approx(1.5)
    assert partner


@pytest.mark.parametrize("xi", [1.1, 1.5, 2.5])
def test_a_slowdown_is_found_within_5_percent_of_noisy_steps(agent: Agent, xi: float) -> None:
    noise = random.Random(3)
    for number in range(1, 6):
        report(agent, number, 0.1 * noise.gauss(1.0, 0.03))
    neighbour(agent)
    for number in range(6, 26):
        report(agent, number, 0.1 * xi * noise.gauss(1.0, 0.03))
    assert slowdown(agent) == pytest.approx(xi, rel=0.05)
    with agent.database.session_scope(writes=False) as session:
        sample = session.exec(select(SharingSample)).one()
    assert sample.count == 20
    assert 0.0 < spread_of([sample]) < 0.1 * xi


def test_batches_that_were_not_measured_have_the_figure_of_the_next_smaller(agent: Agent) -> None:
    with agent.database.session_scope() as session:
        for batch, ratio in ((16, 1.2), (64, 1.8)):
            add(session, agent.job_id, victim_batch=batch, ratio=ratio)
    b = SharingJob("b", 99)
    found = [slowdown(agent, SharingJob("script", batch), b) for batch in (1, 32, 64, 500)]
    assert found == pytest.approx([1.2, 1.2, 1.8, 1.8])


def test_batches_that_were_not_measured_differ_as_the_declared_table_says(agent: Agent) -> None:
    """The table has the shape, what was measured the level."""
    table = Interference(
        "t",
        {
            ("script (batch size 16)", "b"): {1: 1.5, 4: 2.0},
            ("script (batch size 64)", "b"): {1: 3.0},
        },
    )
    with agent.database.session_scope() as session:
        add(session, agent.job_id)
    b = SharingJob("b", 8)
    found = [
        slowdown(agent, SharingJob("script", batch), b, table=table, count=count)
        for batch, count in ((16, 1), (64, 1), (16, 4))
    ]
    assert found == pytest.approx([1.2, 2.4, 1.6], rel=1e-3)


def test_what_was_measured_long_ago_counts_less_and_then_not_at_all(agent: Agent) -> None:
    with agent.database.session_scope() as session:
        add(session, agent.job_id, ratio=1.5 * 1.44)
    asked: Any = {"victim": SharingJob("script", 16), "partner": SharingJob("b", 8), "count": 1}
    asked["table"] = Interference.constant(1.5)
    assert slowdown(agent, **asked) == pytest.approx(1.5 * 1.44, rel=1e-3)
    pass_time(agent, HALF_LIFE_SECONDS)
    assert slowdown(agent, **asked) == pytest.approx(1.5 * 1.2, rel=1e-3)
    pass_time(agent, FORGOTTEN_SECONDS)
    assert slowdown(agent, **asked) is None


def pass_time(agent: Agent, seconds: float) -> None:
    with agent.database.session_scope() as session:
        get_cluster(session, "here").anchor_seconds += seconds


# ---- several tenants


def tenants_with_pairs(agent: Agent, ratios: dict[str, float], **fields: Any) -> dict[str, str]:
    """Add a tenant for each ratio, whose job of model `script` measured it beside the own `b`."""
    ids = {}
    for name, ratio in ratios.items():
        agent.another_job("script")
        with agent.database.session_scope() as session:
            tenant = Tenant(name=name)
            session.add(tenant)
            session.flush()
            newest = select(Job).order_by(col(Job.submitted_seconds).desc(), col(Job.id).desc())
            job = session.exec(newest).first()
            assert job is not None
            job.tenant_id = ids[name] = tenant.id
            session.flush()
            add(session, job.id, ratio=ratio, **fields)
    return ids


def test_tenants_whose_models_share_a_name_do_not_poison_each_other(agent: Agent) -> None:
    ids = tenants_with_pairs(agent, {"blue": 1.2, "red": 900.0})
    asked: Any = {"victim": SharingJob("script", 16), "partner": SharingJob("b", 8), "count": 1}
    assert slowdown(agent, **asked, tenant=ids["blue"]) == pytest.approx(1.2)
    assert slowdown(agent, **asked, tenant=ids["red"]) == pytest.approx(900.0)
    assert slowdown(agent, **asked) is None, "of the agent's own tenant nothing was measured"


@pytest.mark.parametrize("fields", [{}, {"count": 2**31 - 1, "weight": 100.0}])
def test_of_three_tenants_of_a_shared_model_one_that_lies_moves_nothing(
    agent: Agent, fields: dict[str, Any]
) -> None:
    ids = tenants_with_pairs(agent, {"blue": 1.2, "green": 1.3})
    tenants_with_pairs(agent, {"red": 900.0}, **fields)
    with agent.database.session_scope() as session:
        session.add_all(SharedModel(model=name, shared_at=utc_now()) for name in ("script", "b"))
    asked: Any = {"victim": SharingJob("script", 16), "partner": SharingJob("b", 8), "count": 1}
    for tenant in (*ids.values(), None):
        assert 1.2 <= slowdown(agent, **asked, tenant=tenant) <= 1.3
    with agent.database.session_scope() as session:
        session.add(SharedModel(model="other", shared_at=utc_now()))
        for each in session.exec(select(SharingSample).where(SharingSample.ratio == 900.0)):
            each.victim_batch = 15  # the batch that is asked for, which nobody else has measured
    asked["victim"] = SharingJob("script", 15)
    assert slowdown(agent, **asked) <= 1.3


def test_of_a_model_beside_a_model_the_latest_samples_are_kept(agent: Agent) -> None:
    report(agent, 1, 0.1)
    neighbour(agent)
    with agent.database.session_scope() as session:
        for number in range(MOST_SAMPLES + 5):
            of_pair = {"partner": "neighbour", "partner_batch": 32, "gpu_type": "cpu"}
            at = {"victim_batch": 100 + number, "updated_seconds": number / 1000.0}
            add(session, agent.job_id, **of_pair, **at)
        add(session, agent.job_id, partner="b", victim_batch=99, updated_seconds=-1e9)
    report(agent, 2, 0.2)
    with agent.database.session_scope(writes=False) as session:
        rows = session.exec(select(SharingSample)).all()
    kept = [each for each in rows if each.partner == "neighbour"]
    assert len(kept) == MOST_SAMPLES
    assert max(kept, key=lambda each: each.updated_seconds).victim_batch == 32
    assert len(rows) == MOST_SAMPLES + 1, "of another pair nothing is deleted"


def test_the_table_names_models_and_tenants_and_hides_those_of_others(
    agent: Agent, client: TestClient, client_as: Callable[..., TestClient]
) -> None:
    report(agent, 1, 0.1)
    neighbour(agent)
    report(agent, 2, 0.15)
    path = "/api/v1/clusters/here/slowdowns"
    (pair,) = client.get(path).json()["items"]
    assert (pair["victim"], pair["partner"], pair["victim_batch"]) == ("script", "neighbour", 32)
    assert (pair["victim_tenant"], pair["partner_tenant"]) == ("default", "default")
    assert (pair["gpu_count"], pair["reports"], pair["is_used"]) == (2, 1, False)
    assert (pair["jobs"], pair["weight"]) == (1, pytest.approx(1 / 3, rel=1e-3))
    assert pair["slowdown"] == pytest.approx(1.5)
    assert pair["reported_by"] == {"tenants": ["default"], "other_tenants": 0}
    with agent.database.session_scope() as session:
        blue = Tenant(name="blue")
        session.add(blue)
        session.flush()
        sample = session.exec(select(SharingSample)).one()
        sample.partner_tenant_id = blue.id
    viewer = client_as(Role.VIEWER)
    (pair,) = viewer.get(path).json()["items"]
    assert (pair["victim"], pair["partner"]) == ("script", OTHER_MODEL)
    assert (pair["victim_tenant"], pair["partner_tenant"]) == ("default", None)
    viewer = client_as(Role.VIEWER, tenant="blue")
    (pair,) = viewer.get(path).json()["items"]
    assert (pair["victim"], pair["partner"]) == (OTHER_MODEL, "neighbour")
    assert pair["reported_by"] == {"tenants": [], "other_tenants": 1}


@pytest.mark.both_databases
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0])
def test_no_slowdown_is_stored_that_is_no_number(agent: Agent, bad: float) -> None:
    report(agent, 1, 0.1)
    neighbour(agent)
    report(agent, 2, 0.15)
    with pytest.raises(IntegrityError), agent.database.session_scope() as session:
        session.execute(sa.update(SharingSample).values(ratio=bad))
