"""What jobs on one GPU cost each other, as their reports say: when it counts, and for what."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from reporting_agent import Agent, steps
from sqlalchemy.exc import IntegrityError
from sqlmodel import select

from backend.attempts.resources import show_slowdown
from backend.attempts.sharing import LEAST_REPORTS, measured_slowdowns, spread_of
from backend.clusters.repository import get_cluster
from backend.database import Database
from backend.models import AttemptRow, SharingSample, StepSample
from backend.settings import Settings
from backend.sight import OTHER_MODEL
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


def slowdown(agent: Agent, victim: SharingJob = SCRIPT, partner: SharingJob = NEIGHBOUR) -> Any:
    with agent.database.session_scope(writes=False) as session:
        cluster_id = get_cluster(session, "here").id
        return measured_slowdowns(session, cluster_id).of_jobs(victim, partner, 2)


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
    assert 0.0 < spread_of(sample) < 0.1 * xi


def test_batches_that_were_not_measured_have_the_figure_of_the_next_smaller(agent: Agent) -> None:
    with agent.database.session_scope() as session:
        cluster_id = get_cluster(session, "here").id
        for batch, ratio in ((16, 1.2), (64, 1.8)):
            session.add(
                SharingSample(
                    cluster_id=cluster_id, victim="a", victim_batch=batch, partner="b",
                    partner_batch=8, gpu_type="t4", gpu_count=1, count=9, weight=9.0,
                    ratio=ratio, ratio_m2=0.0, updated_seconds=0.0,
                )
            )  # fmt: skip
    b = SharingJob("b", 99)
    found = [slowdown(agent, SharingJob("a", batch), b) for batch in (1, 32, 64, 500)]
    assert found == pytest.approx([1.2, 1.2, 1.8, 1.8])


def test_batches_that_were_not_measured_differ_as_the_declared_table_says(agent: Agent) -> None:
    """The table has the shape, what was measured the level."""
    table = Interference(
        "t",
        {
            ("a (batch size 16)", "b"): {1: 1.5, 4: 2.0},
            ("a (batch size 64)", "b"): {1: 3.0},
        },
    )
    with agent.database.session_scope() as session:
        cluster_id = get_cluster(session, "here").id
        session.add(
            SharingSample(
                cluster_id=cluster_id, victim="a", victim_batch=16, partner="b",
                partner_batch=8, gpu_type="t4", gpu_count=1, count=9, weight=9.0,
                ratio=1.2, ratio_m2=0.0, updated_seconds=0.0,
            )
        )  # fmt: skip
        session.flush()
        measured = measured_slowdowns(session, cluster_id, table)
    b = SharingJob("b", 8)
    found = [
        measured.of_jobs(SharingJob("a", batch), b, count)
        for batch, count in ((16, 1), (64, 1), (16, 4))
    ]
    assert found == pytest.approx([1.2, 2.4, 1.6])


def test_the_table_of_a_cluster_names_both_models_and_hides_those_of_others(
    agent: Agent, client: TestClient
) -> None:
    report(agent, 1, 0.1)
    neighbour(agent)
    report(agent, 2, 0.15)
    (pair,) = client.get("/api/v1/clusters/here/slowdowns").json()["items"]
    assert (pair["victim"], pair["partner"], pair["victim_batch"]) == ("script", "neighbour", 32)
    assert (pair["gpu_count"], pair["reports"], pair["is_used"]) == (2, 1, False)
    assert pair["slowdown"] == pytest.approx(1.5)
    with agent.database.session_scope(writes=False) as session:
        sample, cluster = session.exec(select(SharingSample)).one(), get_cluster(session, "here")
        shown = show_slowdown(sample, cluster, {"script"})
    assert (shown["victim"], shown["partner"]) == ("script", OTHER_MODEL)


@pytest.mark.both_databases
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0])
def test_no_slowdown_is_stored_that_is_no_number(agent: Agent, bad: float) -> None:
    report(agent, 1, 0.1)
    neighbour(agent)
    report(agent, 2, 0.15)
    with pytest.raises(IntegrityError), agent.database.session_scope() as session:
        session.execute(sa.update(SharingSample).values(ratio=bad))
