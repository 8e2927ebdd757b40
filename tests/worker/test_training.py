"""Commands on a cluster of this machine: real rounds, real processes, real databases."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from live_samples import assert_history_is_whole, job, spans_of, states_of
from sqlmodel import col, select
from training_samples import TrainingCluster

from backend.attempts.folders import attempts_folder, cluster_folder
from backend.models import Cluster, JobEvent, JobMemory, Node
from maat.vocabulary import AttemptState, JobState, Outcome, StopReason
from worker import housekeeping

pytestmark = pytest.mark.both_databases

S = JobState
SLEEP = ("/bin/sleep", "600")


def test_a_command_is_started_runs_and_ends(cluster: TrainingCluster) -> None:
    go = cluster.settings.data_dir / "go"
    waits = f"echo here; until [ -e '{go}' ]; do sleep 0.05; done"
    job_id = cluster.submit("/bin/sh", "-c", waits, gpu_count=2)
    cluster.round()
    assert len(cluster.holds()) == 2
    go.touch()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.SUCCEEDED
    assert cluster.outcomes(job_id) == [Outcome.SUCCEEDED]
    assert states_of(cluster.database, job_id) == [S.PENDING, S.STARTING, S.RUNNING, S.SUCCEEDED]
    assert cluster.holds() == []
    assert cluster.log(job_id) == "here\n"
    assert job(cluster.database, job_id).gpu_seconds > 0
    (span,) = spans_of(cluster.database, job_id)
    assert span.gpu_count == 2
    assert span.to_seconds is not None
    assert_history_is_whole(cluster.database, cluster.cluster_id)


def test_a_failed_command_is_retried_and_then_given_up(cluster: TrainingCluster) -> None:
    job_id = cluster.submit("/bin/sh", "-c", "exit 7", max_retries=0)
    cluster.round()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.FAILED
    attempt = cluster.attempts(job_id)[-1]
    assert (attempt.outcome, attempt.exits) == (Outcome.FAILED, {"0": 7})
    assert attempt.reason == "Rank 0 ended with exit code 7."


def test_a_failure_tells_the_last_lines_of_the_rank_that_failed_first(
    cluster: TrainingCluster,
) -> None:
    fails = 'echo "rank $RANK"; [ "$RANK" = 1 ] && { echo no such file; exit 7; }; sleep 600'
    job_id = cluster.submit("/bin/sh", "-c", fails, gpu_count=2)
    cluster.round()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.FAILED
    with cluster.database.session_scope(writes=False) as session:
        events = select(JobEvent).where(JobEvent.job_id == job_id).order_by(col(JobEvent.id))
        data = session.exec(events).all()[-1].data
    assert data["last_lines"] == ["rank 1", "no such file"]
    assert data["reason"] == "Rank 1 ended with exit code 7."


def test_a_failed_command_waits_before_it_is_started_again(cluster: TrainingCluster) -> None:
    job_id = cluster.submit("/bin/sh", "-c", "exit 7", max_retries=1)
    cluster.round()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    cluster.round()
    assert cluster.state(job_id) == S.PREEMPTED
    assert len(cluster.attempts(job_id)) == 1
    cluster.wind(20.0)
    cluster.round()
    cluster.look_until(lambda: len(cluster.attempts(job_id)) == 2 and cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.FAILED


def test_a_cancelled_command_is_asked_to_end_and_then_ended_by_force(
    cluster: TrainingCluster,
) -> None:
    deaf = "trap '' TERM; sleep 600 & wait; sleep 600"
    job_id = cluster.submit("/bin/sh", "-c", deaf, stop_seconds=1.0)
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    cluster.change(job_id, cancel_requested=True)
    cluster.note()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.outcomes(job_id) == [Outcome.STOPPED]
    assert cluster.state(job_id) == S.CANCELLED
    assert cluster.holds() == []


def test_a_cancelled_command_that_does_not_end_runs_on_until_it_is_killed(
    cluster: TrainingCluster,
) -> None:
    deaf = "trap '' TERM; while :; do sleep 0.1; done"
    job_id = cluster.submit("/bin/sh", "-c", deaf, stop_seconds=1.0)
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    cluster.look()
    cluster.change(job_id, cancel_requested=True)
    cluster.look()
    assert cluster.attempt_state(job_id) == AttemptState.STOPPING
    assert cluster.state(job_id) == S.RUNNING
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.CANCELLED
    assert states_of(cluster.database, job_id)[-2:] == [S.RUNNING, S.CANCELLED]


def test_the_next_look_tells_a_command_that_it_is_cancelled(cluster: TrainingCluster) -> None:
    job_id = cluster.submit(*SLEEP)
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    cluster.look()
    cluster.change(job_id, cancel_requested=True)
    cluster.look()
    (attempt,) = cluster.attempts(job_id)
    assert attempt.stop_told  # it may have ended at once


def test_while_a_command_is_about_to_end_one_looks_more_often(
    cluster: TrainingCluster, tmp_path: Path
) -> None:
    may_end = tmp_path / "may-end"
    waits = f"while [ ! -e {may_end} ]; do sleep 0.05; done"
    job_id = cluster.submit(
        "/bin/sh", "-c", f"trap '{waits}; exit' TERM; while :; do sleep 0.1; done"
    )
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    assert not cluster.look()
    cluster.ask_to_end(job_id, StopReason.PREEMPTED)
    assert cluster.look()
    may_end.touch()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert not cluster.look()


def test_nobody_starts_on_gpus_that_are_not_free_yet(cluster: TrainingCluster) -> None:
    saves = "trap 'sleep 1; exit 143' TERM; while :; do sleep 0.05; done"
    low = cluster.submit("/bin/sh", "-c", saves, gpu_count=8, gpu_types=["a100"])
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(low) == AttemptState.RUNNING)
    cluster.change(low, cancel_requested=True)
    high = cluster.submit(*SLEEP, gpu_count=8, gpu_types=["a100"])
    cluster.round()
    cluster.look()
    assert cluster.attempt_state(low) == AttemptState.STOPPING
    assert cluster.attempt_state(high) == AttemptState.ORDERED
    assert cluster.state(high) == S.STARTING
    cluster.look_until(lambda: cluster.attempt_state(high) == AttemptState.RUNNING)
    assert cluster.outcomes(low) == [Outcome.STOPPED]
    assert len(cluster.holds()) == 8


def test_a_lost_node_ends_its_attempts_and_the_job_runs_elsewhere(
    cluster: TrainingCluster,
) -> None:
    job_id = cluster.submit(*SLEEP, gpu_count=4, gpu_types=["t4"])
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    (node,) = cluster.attempts(job_id)[0].gpus_by_node
    cluster.set_down(node)
    cluster.look_until(lambda: cluster.outcomes(job_id) == [Outcome.LOST])
    assert cluster.state(job_id) == S.PREEMPTED
    with cluster.database.session_scope(writes=False) as session:
        faults = dict(session.exec(select(Node.name, Node.fault)).all())
    assert [name for name, fault in faults.items() if fault] == [node]
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    (other,) = cluster.attempts(job_id)[-1].gpus_by_node
    assert other != node
    assert cluster.state(job_id) == S.RUNNING


def test_a_job_that_was_moved_keeps_its_progress_until_it_says_more(
    cluster: TrainingCluster,
) -> None:
    job_id = cluster.submit(*SLEEP, gpu_types=["t4"])
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    first = cluster.attempts(job_id)[0]
    cluster.change_attempt(first.id, progress=30.0, total_samples=100.0)
    cluster.set_down(next(iter(first.gpus_by_node)))
    cluster.look_until(lambda: cluster.outcomes(job_id) == [Outcome.LOST])
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    cluster.change_attempt(cluster.attempts(job_id)[1].id, progress=25.0)  # its checkpoint's
    cluster.note()
    assert job(cluster.database, job_id).progress == pytest.approx(0.25)


def test_a_plan_stays_under_what_a_gpu_had_no_room_for(cluster: TrainingCluster) -> None:
    batch = {"batch_size": 64, "max_batch_size": 256, "gpu_types": ["t4"], "max_gpus": 1}
    job_id = cluster.submit(*SLEEP, adaptivity="adaptive", profile=False, **batch)
    with cluster.database.session_scope() as session:
        session.add(JobMemory(job_id=job_id, gpu_type="t4", out_of_memory_at=20))
    cluster.decide()
    plan = cluster.attempts(job_id)[0].plan
    assert plan is not None
    assert plan["per_gpu_batch_size"] <= 18
    assert plan["accumulation_steps"] >= 3
    assert plan["total_batch_size"] >= 64


def test_secrets_reach_the_command_and_nothing_else(cluster: TrainingCluster) -> None:
    job_id = cluster.submit(
        sys.executable, "-c", "import os; print(len(os.environ['KEY']))", secret_env={"KEY": "hush"}
    )
    cluster.round()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.log(job_id) == "4\n"
    folder = cluster.settings.data_path / "training"
    written = [file for file in folder.rglob("*") if file.is_file()]
    assert written
    assert not any(b"hush" in file.read_bytes() for file in written)


def test_a_worker_that_dies_leaves_the_processes_to_the_next(cluster: TrainingCluster) -> None:
    job_id = cluster.submit("/bin/sh", "-c", "sleep 1")
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    live_before = cluster.attempts(job_id)[0].id
    cluster.forget_everything()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.attempts(job_id)[-1].id == live_before
    assert cluster.state(job_id) == S.SUCCEEDED


def test_a_worker_may_die_before_the_first_round(cluster: TrainingCluster) -> None:
    job_id = cluster.submit(*SLEEP)
    assert cluster.state(job_id) == S.PENDING
    cluster.forget_everything()
    assert cluster.state(job_id) == S.PENDING
    assert cluster.round() == 1
    assert cluster.state(job_id) in (S.STARTING, S.RUNNING)


def test_logs_are_kept_for_a_while_after_the_end_of_their_job(cluster: TrainingCluster) -> None:
    ended = cluster.submit("/bin/sh", "-c", "echo over")
    lasting = cluster.submit(*SLEEP)
    cluster.round()
    cluster.look_until(lambda: cluster.has_ended(ended))
    cluster.look_until(lambda: cluster.attempt_state(lasting) == AttemptState.RUNNING)
    assert cluster.state(ended) == S.SUCCEEDED
    prune = partial(housekeeping.prune_logs, cluster.database, cluster.settings)
    cluster.wind(29 * 86_400.0)
    assert prune() == 0
    assert cluster.log(ended) == "over\n"
    cluster.wind(2 * 86_400.0)
    assert prune() == 1
    root = cluster_folder(cluster.settings, Cluster(id=cluster.cluster_id))
    (kept,) = attempts_folder(root).iterdir()
    assert kept.name == cluster.attempts(lasting)[0].id
    assert prune() == 0
