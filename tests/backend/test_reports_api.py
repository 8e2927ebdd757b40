"""What agents report: taken in once, refused as a whole, and by the attempt's own token only."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from reporting_agent import PLAN, Agent, steps
from sqlmodel import col, select

from backend.attempts import refusals as refusing
from backend.attempts import reports
from backend.database import Database
from backend.models import Cluster, GradientSample, StepSample
from backend.settings import Settings
from maat.vocabulary import AttemptKind, AttemptState, StopReason


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


@pytest.fixture
def agent(client: TestClient, database: Database, settings: Settings) -> Agent:
    return Agent(client, database, settings)


@pytest.mark.parametrize(("round_seconds", "expected"), [(600.0, 30.0), (20.0, 10.0), (1.0, 2.0)])
def test_two_reports_come_in_every_round(
    agent: Agent, round_seconds: float, expected: float
) -> None:
    with agent.database.session_scope() as session:
        cluster = session.get_one(Cluster, agent.row().cluster_id)
        cluster.round_seconds = round_seconds
        session.add(cluster)
    assert agent.report().json()["report_seconds"] == expected


def test_the_noise_scale_is_kept_over_the_training(agent: Agent) -> None:
    for sequence, square in enumerate((0.5, 0.25), start=1):
        gradient = {"square": square, "variance": 2.0, "steps": 4, "at_batch_size": 64}
        progress = {"effective_samples": 100.0 * sequence}
        assert agent.report(sequence=sequence, gradient=gradient, progress=progress).is_success
    shown = agent.client.get(f"/api/v1/jobs/{agent.job_id}/gradients").json()["items"]
    assert [(each["progress"], each["noise_scale"]) for each in shown] == [
        (100.0, 64 * 2.0 / 0.5),
        (200.0, 64 * 2.0 / 0.25),
    ]


def test_a_report_is_stored_and_answered_with_what_to_do(agent: Agent) -> None:
    answer = agent.report(
        passes=[steps(0.1, 0.2)],
        gradient={"square": 0.5, "variance": 2.0, "steps": 4, "at_batch_size": 64},
        checkpoint={"step": 7},
        loss=1.5,
    )
    assert answer.json() == {
        "accepted": 1,
        "plan": {"number": 3, **PLAN},
        "stop": False,
        "report_seconds": 30.0,
    }
    row = agent.row()
    assert (row.progress, row.loss, row.checkpoint_step) == (640.0, 1.5, 7)
    with agent.database.session_scope(writes=False) as session:
        (gradient,) = session.exec(select(GradientSample)).all()
    assert (gradient.square, gradient.variance) == (0.5, 2.0)
    (shown,) = agent.client.get(f"/api/v1/jobs/{agent.job_id}/samples").json()["items"]
    assert (shown["count"], shown["step_seconds"]) == (2, pytest.approx(0.15))
    assert shown["step_deviation"] == pytest.approx(statistics.stdev([0.1, 0.2]))


def test_a_plan_that_the_agent_has_is_not_sent_again(agent: Agent) -> None:
    assert agent.report(plan_number=3).json()["plan"] is None
    assert agent.row().running_plan == PLAN


def test_of_a_jobs_gradients_the_newest_are_kept(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "KEPT_GRADIENTS", 3)
    monkeypatch.setattr(reports, "FORGETS_EVERY", 4)

    def squares_after(*sequences: int) -> list[float]:
        for each in sequences:
            gradient = {"square": float(each), "variance": 1.0, "steps": 1, "at_batch_size": 64}
            assert agent.report(sequence=each, gradient=gradient).status_code == 200
        with agent.database.session_scope(writes=False) as session:
            kept = session.exec(select(GradientSample).order_by(col(GradientSample.id))).all()
        return [gradient.square for gradient in kept]

    assert squares_after(1, 2, 3, 4) == [1.0, 2.0, 3.0, 4.0]
    assert squares_after(5) == [3.0, 4.0, 5.0]
    squares_after(6, 7)
    other = agent.add_attempt(2)
    agent.attempt_id, agent.token = other, agent.token_of(other)
    assert squares_after(1) == [6.0, 7.0, 1.0]


def test_a_repeated_report_changes_nothing(agent: Agent) -> None:
    first = agent.report(passes=[steps(0.1, 0.2)])
    again = agent.report(passes=[steps(0.1, 0.2)], progress={"effective_samples": 9999.0})
    assert again.json() == first.json()
    assert agent.row().progress == 640.0
    with agent.database.session_scope(writes=False) as session:
        (sample,) = session.exec(select(StepSample)).all()
    assert sample.count == 2


def test_a_gpu_that_ran_out_of_memory_may_say_so(agent: Agent) -> None:
    assert agent.report(memory={"out_of_memory_at": 64}).status_code == 200
    assert agent.report(sequence=2, memory={"out_of_memory_at": 0}).status_code == 422
    assert agent.report(sequence=2, memory={"out_of_memory_at": 48}).status_code == 200
    assert agent.report(sequence=3, memory={"out_of_memory_at": 96}).status_code == 200
    belief = agent.client.get(f"/api/v1/jobs/{agent.row().job_id}/belief").json()
    assert belief["memory"] == [{"gpu_type": agent.row().gpu_type, "out_of_memory_at": 48}]


def test_goodput_is_what_was_done_between_two_reports(agent: Agent) -> None:
    agent.report()
    agent.report(sequence=2, progress={"effective_samples": 1640.0})
    row = agent.row()
    assert row.goodput is not None
    assert row.goodput > 0


@examples(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    batches=st.lists(
        st.lists(st.floats(0.02, 10.0), min_size=1, max_size=8), min_size=1, max_size=4
    )
)
def test_means_and_spreads_of_reports_are_those_of_all_steps(
    agent: Agent, batches: list[list[float]]
) -> None:
    with agent.database.session_scope() as session:
        for row in session.exec(select(StepSample)):
            session.delete(row)
    first = agent.row().report_sequence + 1
    for number, seconds in enumerate(batches, start=first):
        assert agent.report(sequence=number, passes=[steps(*seconds)]).status_code == 200
    with agent.database.session_scope(writes=False) as session:
        (sample,) = session.exec(select(StepSample)).all()
    everything = [second for seconds in batches for second in seconds]
    assert sample.count == len(everything)
    assert sample.step_mean == pytest.approx(statistics.fmean(everything))
    spread = statistics.pvariance(everything) * len(everything)
    assert sample.step_m2 == pytest.approx(spread, rel=1e-6, abs=1e-9)


def test_an_attempt_that_is_to_end_is_told(agent: Agent) -> None:
    agent.change(stop_reason=StopReason.MOVED.value, state=AttemptState.STOPPING.value)
    assert agent.report(kind="bye").json()["stop"] is True


def test_an_attempt_that_is_over_is_told_to_end_without_saving(agent: Agent) -> None:
    agent.change(state=AttemptState.ENDED.value)
    answer = agent.report()
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/stale-attempt")
    assert agent.row().progress is None


def test_an_older_attempt_of_a_job_is_over(agent: Agent) -> None:
    agent.add_attempt(2)
    assert agent.report().status_code == 409


def test_of_two_agents_with_one_token_the_first_counts(agent: Agent) -> None:
    assert agent.report().status_code == 200
    assert agent.report(sequence=2, incarnation="two").status_code == 409
    assert agent.report(sequence=2).status_code == 200


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"world_size": 3}, "/world_size"),
        ({"gpu_type": "a100"}, "/gpu_type"),
        ({"passes": [steps(0.1, replica_count=4)]}, "/passes/0/replica_count"),
        ({"passes": [steps(0.1, sync_seconds=0.2)]}, "/passes/0/sync_seconds"),
        ({"passes": [steps(0.1, per_gpu_batch_size=257)]}, "/passes/0/per_gpu_batch_size"),
        ({"passes": [steps(-1.0)]}, "/passes/0/step_seconds/mean"),
        ({"progress": {"effective_samples": -1.0}}, "/progress/effective_samples"),
        ({"sequence": 0}, "/sequence"),
    ],
)
def test_what_cannot_be_is_refused_as_a_whole(
    agent: Agent, fields: dict[str, Any], pointer: str
) -> None:
    answer = agent.report(**{"loss": 1.0, **fields})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert (agent.row().report_sequence, agent.row().loss) == (0, None)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_numbers_that_are_none_are_refused(agent: Agent, loss: float) -> None:
    body = b'{"sequence": 1, "loss": ' + str(loss).replace("inf", "Infinity").encode() + b"}"
    headers = {"Authorization": f"Bearer {agent.token}", "Content-Type": "application/json"}
    path = f"/api/v1/attempts/{agent.attempt_id}/reports"
    assert agent.client.post(path, content=body, headers=headers).status_code in (400, 422)


def refusals(agent: Agent) -> list[dict[str, Any]]:
    events = agent.client.get(f"/api/v1/jobs/{agent.job_id}/events").json()["items"]
    return [event["data"] for event in events if event["kind"] == "report"]


def test_reports_that_are_refused_make_one_event_for_each_kind(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for remembered in (True, False):  # by this process, and by the rows alone
        agent.report(sequence=0)
        agent.report(passes=[steps(-1.0)])
        agent.report(world_size=3)
        agent.report(gpu_type="a100")
        path = f"/api/v1/attempts/{agent.attempt_id}/reports"
        headers = {"Authorization": f"Bearer {agent.token}", "Content-Type": "application/json"}
        agent.client.post(path, content=b'{"loss": NaN}', headers=headers)
        told = [(one["attempt"], one["refused"], one["reason"]) for one in refusals(agent)]
        assert told == [
            (
                1,
                "invalid",
                "/sequence: Input should be greater than or equal to 1. Give at least 1.",
            ),
            (1, "impossible", "The attempt has 2 GPUs."),
            (
                1,
                "unreadable",
                "The body holds NaN, which is not JSON. Give a finite number, or leave the field "
                "out.",
            ),
        ], remembered
        monkeypatch.setattr(refusing, "_noted", {})
    assert agent.report().status_code == 200


def test_who_has_another_token_makes_no_event_of_the_attempt(agent: Agent) -> None:
    other = agent.another_job("other")
    agent.report(token=agent.token_of(other), world_size=3)
    agent.report(token="", sequence=0)
    assert refusals(agent) == []


def test_a_token_reports_for_its_own_attempt_and_does_nothing_else(
    agent: Agent, settings: Settings
) -> None:
    other = agent.add_attempt(2)
    assert agent.report(to=other).status_code == 403
    assert agent.report(token="").status_code == 401
    assert agent.report(token="maat_" + "x" * 43).status_code == 401
    assert agent.report(token=agent.token[:-1] + "0").status_code in (403, 409)
    headers = {"Authorization": f"Bearer {agent.token}"}
    for path in ("/api/v1/jobs", "/api/v1/me", f"/api/v1/jobs/{agent.job_id}"):
        assert agent.client.get(path, headers=headers).status_code == 401


def test_a_user_cannot_report(agent: Agent) -> None:
    path = f"/api/v1/attempts/{agent.attempt_id}/reports"
    assert agent.client.post(path, json={}).status_code == 401


def test_a_profile_tells_times_and_takes_the_job_no_further(agent: Agent) -> None:
    agent.change(kind=AttemptKind.PROFILE.value)
    body = {"finished": True, "checkpoint": {"step": 7}, "stepping_seconds": 4.5}
    progress = {"effective_samples": 640.0, "total_effective_samples": 1e6}
    assert agent.report(passes=[steps(0.1, 0.2)], progress=progress, **body).status_code == 200
    row = agent.row()
    assert (row.progress, row.finished, row.checkpoint_step) == (None, False, None)
    assert (row.stepping_seconds, row.total_samples) == (4.5, 1e6)
    (shown,) = agent.client.get(f"/api/v1/jobs/{agent.job_id}/attempts").json()["items"]
    assert (shown["kind"], shown["stepping_seconds"]) == ("profile", 4.5)
    with agent.database.session_scope(writes=False) as session:
        assert [one.count for one in session.exec(select(StepSample))] == [2]


def test_attempts_are_listed_from_either_end(agent: Agent) -> None:
    for number in (2, 3):
        agent.add_attempt(number)

    def numbers(**asked: Any) -> list[int]:
        found, cursor = list[int](), None
        while not found or cursor is not None:
            given = {**asked, "limit": 2} | ({} if cursor is None else {"cursor": cursor})
            page = agent.client.get(f"/api/v1/jobs/{agent.job_id}/attempts", params=given).json()
            found += [one["number"] for one in page["items"]]
            cursor = page["next_cursor"]
        return found

    assert numbers() == numbers(sort="number") == [1, 2, 3]
    assert numbers(sort="-number") == [3, 2, 1]


def test_what_an_attempt_processed_and_when_it_saved_is_kept(agent: Agent) -> None:
    progress = {"effective_samples": 640.0, "processed_samples": 800.0, "gained_samples": 400.0}
    assert agent.report(progress=progress, checkpoint={"step": 7}).is_success
    first = agent.row()
    assert (first.processed_samples, first.gained_samples) == (800.0, 400.0)
    assert first.checkpoint_seconds == first.reported_seconds
    without = {"effective_samples": 700.0}
    assert agent.report(sequence=2, progress=without, checkpoint={"step": 7}).is_success
    second = agent.row()
    assert (second.processed_samples, second.gained_samples) == (800.0, 400.0)
    assert second.checkpoint_seconds == first.checkpoint_seconds
