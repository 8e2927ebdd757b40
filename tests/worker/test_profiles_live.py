"""Profiles on a real cluster: on free GPUs, counted as work, and then the queue."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from live_samples import assert_history_is_whole, job, states_of
from sqlmodel import col, select
from training_samples import TrainingCluster

from backend.app import create_app
from backend.attempts.beliefs import show_belief
from backend.database import Database
from backend.models import Cluster, Job, JobCommand, JobEvent
from backend.settings import Settings
from benchmarks.service.real_server import free_port
from maat.agent.environment import Environment
from maat.api.beliefs import BeliefOut
from maat.scheduling.explain import ReasonCode, sentence_of
from maat.vocabulary import AttemptKind, AttemptState, JobState, Outcome, StopReason
from worker.executors import training
from worker.executors.training import Training

# What differs by database is in the tests of reconciling and of beliefs.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
S = JobState
HAS_TORCH = importlib.util.find_spec("torch") is not None
SLEEP = ("/bin/sleep", "600")
TRAIN = Path(__file__).parents[1] / "agent" / "train.py"


@pytest.fixture
def cluster(database: Database, database_url: str, tmp_path: Path) -> Iterator[TrainingCluster]:
    settings = Settings(
        _env_file=None,
        data_dir=tmp_path / "data",
        allow_commands=True,
        database_url=database_url,
        public_url=f"http://127.0.0.1:{free_port()}",
    )
    found = TrainingCluster(database, settings, tmp_path)
    yield found
    found.close()


def adaptive(cluster: TrainingCluster, *argv: str, **fields: object) -> str:
    sizes = {"batch_size": 64, "max_batch_size": 256, "adaptivity": "adaptive"}
    return cluster.submit(*(argv or SLEEP), **(sizes | fields))  # type: ignore[arg-type]


def belief_of(cluster: TrainingCluster, job_id: str) -> BeliefOut:
    with cluster.database.session_scope(writes=False) as session:
        return show_belief(session, session.get_one(Job, job_id))


def event_data(cluster: TrainingCluster, job_id: str) -> list[dict[str, object]]:
    with cluster.database.session_scope(writes=False) as session:
        events = select(JobEvent).where(JobEvent.job_id == job_id).order_by(col(JobEvent.id))
        return [event.data for event in session.exec(events)]


def test_a_new_job_is_profiled_before_a_round_may_give_it_more(cluster: TrainingCluster) -> None:
    job_id = adaptive(cluster)
    assert cluster.state(job_id) == S.PROFILING
    (profile,) = cluster.attempts(job_id)
    assert (profile.kind, profile.gpu_type, profile.gpu_count) == (AttemptKind.PROFILE, "t4", 1)
    row = job(cluster.database, job_id)
    assert "is being profiled on t4" in sentence_of(row.reason_code, row.reason_evidence)
    cluster.round()
    row = job(cluster.database, job_id)
    assert len(cluster.attempts(job_id)) == 1, "a round leaves it where it is"
    assert (row.state, row.gpu_type, len(row.gpus or ())) == (S.PROFILING, "t4", 1)
    assert "is being profiled on t4" in sentence_of(row.reason_code, row.reason_evidence)
    assert len(cluster.holds()) == 1


@pytest.mark.parametrize(
    ("policy", "placer"),
    [("sia", "whole-node"), ("pollux", "as-decided"), ("las", "pal"), ("gavel", "packed")],
)
def test_rounds_of_any_policy_go_on_around_a_profile(
    cluster: TrainingCluster, policy: str, placer: str
) -> None:
    profiled = adaptive(cluster, gpu_types=["t4"], min_gpus=2, max_gpus=4)
    cluster.note()
    other = adaptive(cluster, profile=False, max_gpus=8)
    with cluster.database.session_scope() as session:
        row = session.get_one(Cluster, cluster.cluster_id)
        row.policy, row.placer = policy, placer
        session.add(row)
    cluster.forget_everything()
    for _ in range(2):
        assert cluster.decide() is not None
    assert [one.kind for one in cluster.attempts(profiled)] == [AttemptKind.PROFILE]
    assert cluster.attempts(profiled)[0].stop_reason is None
    (attempt,) = cluster.attempts(other)
    assert attempt.gpu_type == "a100" or 0 not in attempt.gpus_by_node.get("t4-0", [])


def test_nobody_is_given_the_gpu_of_a_profile(cluster: TrainingCluster) -> None:
    profiled = adaptive(cluster, gpu_types=["t4"])
    cluster.note()
    cluster.look()
    others = [cluster.submit(*SLEEP, gpu_types=["t4"]) for _ in range(8)]
    cluster.round()
    cluster.look()
    cluster.look()
    assert len(cluster.holds()) == len(set(cluster.holds())) == 8
    assert sum(bool(cluster.attempts(other)) for other in others) == 7
    assert cluster.attempts(profiled)[0].gpus_by_node == {"t4-0": [0]}


def test_of_many_new_jobs_a_quarter_of_the_gpus_are_profiled_at_once(
    cluster: TrainingCluster,
) -> None:
    jobs = [adaptive(cluster, gpu_types=["t4"]) for _ in range(5)]
    cluster.note()
    assert [len(cluster.profiles(each)) for each in jobs] == [1, 1, 0, 0, 0]


def test_a_job_waits_for_its_turn_to_be_profiled_while_gpus_are_free_and_not_for_ever(
    cluster: TrainingCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (adaptive(cluster, gpu_types=["t4"]) for _ in range(3))
    cluster.note()
    cluster.round()
    assert [len(cluster.attempts(each)) for each in (first, second, third)] == [1, 1, 0]
    row = job(cluster.database, third)
    assert (row.state, row.reason_code) == (S.PENDING, ReasonCode.PROFILE_INCOMPLETE)
    monkeypatch.setattr(training, "MOST_WAIT_SECONDS", 0.0)
    cluster.round()
    (attempt,) = cluster.attempts(third)
    assert attempt.kind == AttemptKind.TRAIN


def test_a_job_without_profile_goes_straight_to_the_queue(cluster: TrainingCluster) -> None:
    job_id = adaptive(cluster, profile=False)
    cluster.round()
    (attempt,) = cluster.attempts(job_id)
    assert attempt.kind == AttemptKind.TRAIN
    assert states_of(cluster.database, job_id)[:2] == [S.PENDING, S.STARTING]


def test_a_script_without_the_agent_that_ends_well_is_not_run_twice(
    cluster: TrainingCluster,
) -> None:
    job_id = adaptive(cluster, "/bin/sh", "-c", "echo here")
    cluster.note()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.SUCCEEDED
    assert "it was to be measured, and is not run again" in cluster.events(job_id)[-1]["reason"]
    cluster.decide()
    (attempt,) = cluster.attempts(job_id)
    row = job(cluster.database, job_id)
    assert states_of(cluster.database, job_id) == [S.PENDING, S.PROFILING, S.SUCCEEDED]
    assert (row.progress, row.started_seconds) == (1.0, attempt.queued_seconds)
    assert_history_is_whole(cluster.database, cluster.cluster_id)


def test_a_script_without_the_agent_is_soon_told_from_a_profile_and_runs_as_it_stands(
    cluster: TrainingCluster,
) -> None:
    job_id = adaptive(cluster, gpu_types=["t4"])
    cluster.note()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.STARTING)
    cluster.wind(61.0)
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.PENDING
    told = cluster.events(job_id)[-1]
    assert "Add the five lines of docs/adaptive-script.md" in told["reason"]
    assert "does not use maat.agent" in told["gave_up"]
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.STARTING)
    cluster.wind(61.0)
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    cluster.wind(600.0)
    cluster.look()
    assert cluster.state(job_id) == S.RUNNING
    assert "--gpus" in cluster.events(job_id)[-1]["reason"]


def test_a_script_that_has_begun_the_agent_has_time_until_its_first_report(
    cluster: TrainingCluster,
) -> None:
    job_id = adaptive(cluster, gpu_types=["t4"])
    cluster.note()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.STARTING)
    (profile,) = cluster.attempts(job_id)
    folder = cluster.engine.directory(profile.id)
    Environment(attempt_directory=folder).show_agent()
    cluster.wind(61.0)
    cluster.look()
    assert cluster.attempt_state(job_id) == AttemptState.STARTING
    cluster.wind(300.0)
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.attempts(job_id)[0].stop_reason == StopReason.SILENT


def test_a_script_whose_profile_fails_before_any_report_is_profiled_once_and_then_runs(
    cluster: TrainingCluster,
) -> None:
    job_id = adaptive(cluster, "/bin/sh", "-c", "test -e again && exit 0; touch again; exit 3")
    cluster.note()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.PENDING
    assert "never reported" in str(event_data(cluster, job_id)[-1]["gave_up"])
    cluster.round()
    cluster.look_until(lambda: len(cluster.attempts(job_id)) == 2 and cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.SUCCEEDED
    kinds = [one.kind for one in cluster.attempts(job_id)]
    assert kinds == [AttemptKind.PROFILE, AttemptKind.TRAIN]
    seen = [S.PENDING, S.PROFILING, S.PENDING, S.STARTING, S.SUCCEEDED]
    assert states_of(cluster.database, job_id) == seen
    row = job(cluster.database, job_id)
    held = [one.ended_seconds - one.queued_seconds for one in cluster.attempts(job_id)]  # type: ignore[operator]
    assert row.gpu_seconds == pytest.approx(sum(held))
    assert row.restarts == 0
    assert row.started_seconds is not None
    assert row.started_seconds >= cluster.attempts(job_id)[0].ended_seconds  # type: ignore[operator]
    assert_history_is_whole(cluster.database, cluster.cluster_id)


def test_a_profile_that_goes_on_too_long_is_stopped_and_the_job_queues(
    cluster: TrainingCluster,
) -> None:
    job_id = adaptive(cluster, gpu_types=["t4"])
    cluster.note()
    cluster.look()
    (profile,) = cluster.attempts(job_id)
    cluster.change_attempt(profile.id, reported_seconds=profile.ordered_seconds)
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    cluster.wind(70.0)
    cluster.look_until(lambda: cluster.attempts(job_id)[0].state == AttemptState.ENDED)
    profile = cluster.attempts(job_id)[0]
    assert (profile.outcome, profile.stop_reason) == (Outcome.STOPPED, StopReason.PROFILED)


def test_a_cancelled_profile_ends_and_frees_its_gpu(cluster: TrainingCluster) -> None:
    job_id = adaptive(cluster)
    cluster.note()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.STARTING)
    cluster.change(job_id, cancel_requested=True)
    cluster.note()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.CANCELLED
    assert cluster.holds() == []
    assert len(cluster.attempts(job_id)) == 1


class WorkerKilled(BaseException):
    """The worker dies here."""


def test_a_round_that_is_carried_out_late_ends_a_profile_that_began_meanwhile(
    cluster: TrainingCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = adaptive(cluster, gpu_types=["t4"], profile=False)

    def die(*_: object) -> None:
        raise WorkerKilled

    with monkeypatch.context() as patched:
        patched.setattr(Training, "apply", die)
        with pytest.raises(WorkerKilled):
            cluster.decide()
    with cluster.database.session_scope() as session:
        command = session.get_one(JobCommand, job_id)
        command.profile = True
        session.add(command)
    cluster.forget_everything()
    assert cluster.state(job_id) == S.PROFILING
    cluster.decide()
    profile, train = cluster.attempts(job_id)
    assert (profile.kind, profile.stop_reason) == (AttemptKind.PROFILE, StopReason.MOVED)
    assert train.kind == AttemptKind.TRAIN
    cluster.look_until(lambda: cluster.attempt_state(job_id) in ("starting", "running"))
    assert cluster.attempts(job_id)[0].state == AttemptState.ENDED
    assert cluster.state(job_id) == S.STARTING
    assert_history_is_whole(cluster.database, cluster.cluster_id)


@contextmanager
def serving(cluster: TrainingCluster) -> Iterator[None]:
    """Serve the API on the cluster's database, as agents see it."""
    port = int(cluster.settings.public_url.rsplit(":", 1)[1])
    config = uvicorn.Config(create_app(cluster.settings), port=port, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    yield
    server.should_exit = True
    thread.join()


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed: maat[agent]")
@pytest.mark.needs_torch
@pytest.mark.long
def test_a_real_script_is_profiled_on_two_types_and_then_trains_by_what_was_learnt(
    cluster: TrainingCluster,
) -> None:
    env = {
        "ASKED": '{"epochs": 2}',
        "OUT": str(cluster.folder / "out.jsonl"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    job_id = adaptive(cluster, sys.executable, str(TRAIN), env=env, max_gpus=1)
    with serving(cluster):
        cluster.note()
        for ended in (1, 2):
            cluster.look_until(lambda n=ended: cluster.outcomes(job_id)[:n] == ["succeeded"] * n)  # type: ignore[misc]
            cluster.note()
        assert cluster.state(job_id) == S.PENDING
        profiles = cluster.profiles(job_id)
        assert [one.gpu_type for one in profiles] == ["t4", "a100"]
        assert all(one.progress is None and one.checkpoint_step is None for one in profiles)

        learnt = belief_of(cluster, job_id)
        assert [fit["gpu_type"] for fit in learnt["types"]] == ["a100", "t4"]
        assert all(fit["sample_count"] == 4 for fit in learnt["types"])
        for one in learnt["profiles"]:
            assert 0.0 < one["stepping_gpu_seconds"] <= 20.0
            assert one["startup_gpu_seconds"] > one["stepping_gpu_seconds"] / 100

        cluster.round()
        cluster.look_until(lambda: len(cluster.attempts(job_id)) == 3 and cluster.has_ended(job_id))
        assert cluster.state(job_id) == S.SUCCEEDED
    written = (cluster.folder / "out.jsonl").read_text().splitlines()
    trained = [line for line in written if '"epoch": 1' in line]
    assert trained, "only training reaches a second epoch"
    assert cluster.attempts(job_id)[-1].progress == 2 * 1024
    assert_history_is_whole(cluster.database, cluster.cluster_id)
