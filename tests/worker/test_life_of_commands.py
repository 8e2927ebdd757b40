"""Commands that are paused, which is no failure, and go on; and commands of arrays."""

from __future__ import annotations

import pytest
from live_samples import assert_history_is_whole, states_of
from training_samples import TrainingCluster

from maat.vocabulary import AttemptState, JobState, Outcome, StopReason

pytestmark = pytest.mark.both_databases

S = JobState
COUNTS = """
count=$(cat "$SAVED" 2>/dev/null || echo 0); echo "from $count"
trap 'echo $count > "$SAVED"; exit 143' TERM
while :; do count=$((count + 1)); sleep 0.02; done
"""


def runs(cluster: TrainingCluster, job_id: str) -> None:
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)


def test_a_paused_command_saves_ends_and_goes_on_without_a_failure(
    cluster: TrainingCluster,
) -> None:
    saved = cluster.folder / "count"
    job_id = cluster.submit("/bin/sh", "-c", COUNTS, env={"SAVED": str(saved)}, gpu_count=2)
    cluster.round()
    runs(cluster, job_id)
    cluster.look_until(lambda: cluster.log(job_id))
    cluster.change(job_id, pause_requested=True)
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.state(job_id) == S.PAUSED
    (first,) = cluster.attempts(job_id)
    assert (first.stop_reason, first.outcome) == (StopReason.PAUSED, Outcome.STOPPED)
    assert cluster.holds() == []
    kept = int(saved.read_text())
    for _ in range(2):
        cluster.round()
    assert len(cluster.attempts(job_id)) == 1
    cluster.forget_everything()
    cluster.change(job_id, pause_requested=False)
    cluster.round()
    runs(cluster, job_id)
    cluster.look_until(lambda: cluster.log(job_id))
    assert cluster.log(job_id) == f"from {kept}\n"
    assert cluster.state(job_id) == S.RUNNING
    assert states_of(cluster.database, job_id)[-4:] == [
        S.PAUSED,
        S.PENDING,
        S.RESTARTING,
        S.RUNNING,
    ]
    assert_history_is_whole(cluster.database, cluster.cluster_id)


def test_a_command_that_fails_while_it_is_paused_has_not_failed(cluster: TrainingCluster) -> None:
    fails = "trap 'exit 7' TERM; while :; do sleep 0.05; done"
    job_id = cluster.submit("/bin/sh", "-c", fails, max_retries=0)
    cluster.round()
    runs(cluster, job_id)
    cluster.change(job_id, pause_requested=True)
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.outcomes(job_id) == [Outcome.STOPPED]
    assert cluster.state(job_id) == S.PAUSED


def test_a_command_that_is_held_is_neither_started_nor_profiled(cluster: TrainingCluster) -> None:
    batch = {"batch_size": 64, "max_batch_size": 256, "max_gpus": 1}
    held = cluster.submit("/bin/sleep", "600", adaptivity="adaptive", **batch)
    cluster.change(held, pause_requested=True)
    for _ in range(3):
        cluster.round()
    assert cluster.attempts(held) == []
    assert cluster.state(held) == S.PAUSED


def test_a_command_resumed_while_it_ends_starts_after_its_end(cluster: TrainingCluster) -> None:
    slow = "trap 'sleep 1; exit 143' TERM; while :; do sleep 0.05; done"
    job_id = cluster.submit("/bin/sh", "-c", slow)
    cluster.round()
    runs(cluster, job_id)
    cluster.change(job_id, pause_requested=True)
    cluster.look()
    assert cluster.attempt_state(job_id) == AttemptState.STOPPING
    cluster.change(job_id, pause_requested=False)
    cluster.round()
    cluster.look_until(
        lambda: (
            len(cluster.attempts(job_id)) == 2
            and cluster.attempt_state(job_id) == AttemptState.RUNNING
        )
    )
    assert cluster.outcomes(job_id) == [Outcome.STOPPED, None]
    assert_history_is_whole(cluster.database, cluster.cluster_id)


def test_a_command_of_an_array_finds_its_index(cluster: TrainingCluster) -> None:
    job_id = cluster.submit("/bin/sh", "-c", "echo $MAAT_ARRAY_ID $MAAT_ARRAY_INDEX")
    cluster.change(job_id, array_id="arr_1", array_index=3)
    cluster.round()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    assert cluster.log(job_id) == "arr_1 3\n"
