"""What reports say of GPUs against each other, and when a belief follows a mean."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from reporting_agent import Agent
from sqlmodel import select

from backend.attempts.comparisons import MOST_ATTEMPTS
from backend.attempts.steps import settle
from backend.database import Database
from backend.models import Cluster, GpuScore, StepSample
from backend.settings import Settings
from maat.scheduling.evidence import FORGOTTEN_SECONDS


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


@pytest.fixture
def agent(client: TestClient, database: Database, settings: Settings) -> Agent:
    return Agent(client, database, settings)


def scores(agent: Agent) -> dict[int, float]:
    with agent.database.session_scope(writes=False) as session:
        return {one.gpu_index: one.ratio for one in session.exec(select(GpuScore))}


def test_ranks_that_compute_longer_show_slower_gpus(agent: Agent) -> None:
    for number in range(1, 4):
        ranks = {"compute_seconds": [0.08, 0.12]}
        assert agent.report(sequence=number, ranks=ranks).status_code == 200
    assert scores(agent) == {0: pytest.approx(0.8), 1: pytest.approx(1.2)}


def test_an_attempt_says_nothing_of_what_another_one_said(agent: Agent) -> None:
    agent.report(ranks={"compute_seconds": [0.08, 0.12]})
    other = agent.add_attempt(2)
    agent.attempt_id, agent.token = other, agent.token_of(other)
    agent.change(gpus_by_node={"cpu-0": [1, 2]})
    agent.report(ranks={"compute_seconds": [0.1, 0.1]})
    with agent.database.session_scope(writes=False) as session:
        rows = session.exec(select(GpuScore).where(GpuScore.attempt_id == other)).all()
    assert {row.gpu_index: row.ratio for row in rows} == {1: 1.0, 2: 1.0}


def test_of_a_tenants_attempts_the_latest_say_how_slow_a_gpu_is(agent: Agent) -> None:
    attempts = []
    for number in range(8):
        agent.attempt_id = agent.add_attempt(number + 2)
        agent.token = agent.token_of(agent.attempt_id)
        attempts.append(agent.attempt_id)
        with agent.database.session_scope() as session:
            cluster = session.get_one(Cluster, agent.row().cluster_id)
            cluster.anchor_seconds += 1.0 + (number == 7) * FORGOTTEN_SECONDS
        agent.report(ranks={"compute_seconds": [0.08, 0.12]})
        with agent.database.session_scope(writes=False) as session:
            kept = {row.attempt_id for row in session.exec(select(GpuScore))}
        latest = attempts[max(number + 1 - MOST_ATTEMPTS, 0) : number + 1]
        assert kept == set(latest if number < 7 else attempts[-1:])


def test_every_rank_is_compared_or_none(agent: Agent) -> None:
    answer = agent.report(ranks={"compute_seconds": [0.1, 0.1, 0.1]})
    assert answer.status_code == 422
    assert scores(agent) == {}


def believed(mean: float) -> StepSample:
    known = StepSample(count=1000, step_mean=mean, step_m2=0.0, sync_mean=0.0)
    known.believed_step = known.believed_sync = known.believed_weight = 0.0
    settle(known)
    return known


@examples(max_examples=50)
@given(mean=st.floats(1e-4, 100.0), moves=st.lists(st.floats(0.99, 1.01), min_size=1, max_size=30))
def test_a_mean_that_trembles_lets_the_belief_stand(mean: float, moves: list[float]) -> None:
    """Whatever the mean: there is no edge at which it would flip."""
    known = believed(mean)
    for move in moves:
        known.step_mean = mean * move
        settle(known)
        assert known.believed_step == mean


@examples(max_examples=50)
@given(walk=st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=30))
def test_a_belief_is_never_far_from_the_mean(walk: list[float]) -> None:
    known = believed(0.1)
    for mean in walk:
        known.step_mean = mean
        settle(known)
        assert abs(known.believed_step - mean) <= 0.02 * known.believed_step
