"""Reports of an agent that lies: refused where they cannot be true, bounded where they can."""

from __future__ import annotations

import math
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from reporting_agent import Agent, steps
from sqlalchemy.exc import IntegrityError
from sqlmodel import select

from backend.database import Database
from backend.models import GpuScore, GradientSample, StepSample
from backend.settings import Settings
from maat.scheduling.evidence import MOST_APART, MOST_SLOWER

REPORTS = 51  # with which the scores of a cluster were once made infinite: 7 and 44


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


@pytest.fixture
def agent(client: TestClient, database: Database, settings: Settings) -> Agent:
    return Agent(client, database, settings)


def send_in_turns(agent: Agent, fast: float, slow: float) -> list[Any]:
    """Send REPORTS of two ranks, each faster in turns after the first seven."""
    answers = []
    for number in range(1, REPORTS + 1):
        times = [slow, fast] if number > 7 and number % 2 else [fast, slow]
        answers.append(agent.report(sequence=number, ranks={"compute_seconds": times}))
    return answers


def ratios(agent: Agent) -> list[float]:
    with agent.database.session_scope(writes=False) as session:
        return [one.ratio for one in session.exec(select(GpuScore))]


def test_ranks_that_cannot_be_gpus_of_one_type_are_refused(agent: Agent) -> None:
    answers = send_in_turns(agent, 1e-5, 1e5)
    assert {answer.status_code for answer in answers} == {422}
    assert ratios(agent) == []
    (error,) = answers[0].json()["errors"]
    assert (error["pointer"], error["value"]) == ("/ranks/compute_seconds/1", 1e5)
    assert error["remedy"].startswith("Time only what every rank does alone")


def test_ranks_that_may_be_true_move_scores_within_bounds(agent: Agent) -> None:
    answers = send_in_turns(agent, 1.0, MOST_APART)
    assert {answer.status_code for answer in answers} == {200}
    assert all(1 / MOST_SLOWER <= ratio <= MOST_SLOWER for ratio in ratios(agent))


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"ranks": {"compute_seconds": [1e-9, 1e-9]}}, "/ranks/compute_seconds/0"),
        ({"passes": [steps(1e-300)]}, "/passes/0/step_seconds/mean"),
        ({"passes": [{**steps(1e3), "steps": 1000}]}, "/passes/0/step_seconds/mean"),
    ],
)
def test_times_that_no_clock_can_have_measured_are_refused(
    agent: Agent, fields: dict[str, Any], pointer: str
) -> None:
    agent.change(queued_seconds=0.0)
    for part in fields.get("passes", ()):
        part["sync_seconds"] = 0.0
    answer = agent.report(**fields)
    assert answer.status_code == 422
    assert pointer in {error["pointer"] for error in answer.json()["errors"]}
    assert agent.row().report_sequence == 0


@pytest.mark.both_databases
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0])
def test_no_column_of_a_measured_figure_takes_what_is_no_number(agent: Agent, bad: float) -> None:
    gradient = {"square": 0.5, "variance": 2.0, "steps": 4, "at_batch_size": 64}
    ranks = {"compute_seconds": [0.1, 0.2]}
    assert agent.report(passes=[steps(0.1, 0.2)], gradient=gradient, ranks=ranks).is_success
    for table, column in (
        (GpuScore, "ratio"),
        (StepSample, "step_mean"),
        (StepSample, "believed_step"),
        (GradientSample, "square"),
    ):
        if (column, bad) == ("square", 0.0):
            continue  # a gradient may vanish
        with pytest.raises(IntegrityError), agent.database.session_scope() as session:
            session.execute(sa.update(table).values({column: bad}))


def test_reports_that_together_time_more_than_the_attempt_has_lived_are_refused(
    agent: Agent,
) -> None:
    """Each alone could be: 300 steps of 0.1 s in the minute that is granted for being late."""
    agent.change(queued_seconds=0.0)
    thirty = {**steps(0.1), "steps": 300}
    progress = {"effective_samples": 1e4, "steps": 1000}
    answers = [
        agent.report(sequence=number, passes=[thirty], progress=progress) for number in range(1, 5)
    ]
    refused = [answer for answer in answers if answer.status_code == 422]
    assert answers[0].is_success
    assert refused
    (error,) = refused[0].json()["errors"]
    assert error["pointer"] == "/passes"
    assert error["value"] > 60
    assert agent.row().timed_seconds == pytest.approx(30.0 * (4 - len(refused)))


def test_samples_beyond_the_steps_and_worth_beyond_the_samples_are_refused(agent: Agent) -> None:
    progress = {"effective_samples": 1e4, "steps": 10, "processed_samples": 1e6}
    answer = agent.report(progress=progress)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/progress/processed_samples"
    worth = {**progress, "processed_samples": 5000.0, "gained_samples": 1e6}
    (error,) = agent.report(progress=worth).json()["errors"]
    assert error["pointer"] == "/progress/gained_samples"
    assert agent.report(progress={**worth, "gained_samples": 5000.0}).is_success
