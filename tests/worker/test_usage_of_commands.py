"""What commands used their GPUs for, by their attempts and what their agents reported."""

from __future__ import annotations

from datetime import timedelta

import pytest
from training_samples import TrainingCluster

from backend.accounts.identity import Principal
from backend.accounts.permissions import Role
from backend.attempts.models import AttemptRow
from backend.clocktime import cluster_seconds
from backend.models import Cluster
from backend.moments import moment_of
from backend.periods import Period
from backend.usage.service import usage
from maat.api.usage import UsageFigures
from maat.vocabulary import AttemptKind, AttemptState, Outcome


def total(cluster: TrainingCluster) -> UsageFigures:
    who = Principal("u", "u", "t", "t", Role.CLUSTER_ADMIN, frozenset())
    with cluster.database.session_scope(writes=False) as session:
        row = session.get_one(Cluster, cluster.cluster_id)
        now = row.epoch + timedelta(seconds=cluster_seconds(row, moment_of(session)))
        period = Period(row.epoch, now + timedelta(seconds=1))
        return usage(session, who, cluster=row, period=period)["total"]


def seconds(hours: float) -> float:
    return hours * 3600


@pytest.mark.both_databases
def test_gpus_count_from_their_hold_to_the_end_of_the_processes(cluster: TrainingCluster) -> None:
    deaf = "trap '' TERM; sleep 600 & wait; sleep 600"
    job_id = cluster.submit("/bin/sh", "-c", deaf, stop_seconds=3.0, gpu_count=2)
    cluster.round()
    cluster.look_until(lambda: cluster.attempt_state(job_id) == AttemptState.RUNNING)
    cluster.change(job_id, cancel_requested=True)
    cluster.note()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    cluster.note()
    cluster.note()

    (attempt,) = cluster.attempts(job_id)
    assert attempt.ended_seconds is not None
    assert attempt.queued_seconds is not None
    held = 2 * (attempt.ended_seconds - attempt.queued_seconds)
    found = total(cluster)
    # A span begins and ends when a look sees it. Without the wait for the deaf it is 6 s shorter.
    assert seconds(found["allocated_gpu_hours"]) == pytest.approx(held, abs=3.0)
    assert found["unmeasured_gpu_hours"] == found["useful_gpu_hours"]  # it has no agent
    assert seconds(found["restart_gpu_hours"]) >= 3.0  # it was deaf for three seconds, on two GPUs


@pytest.mark.parametrize(
    ("fields", "lost"),
    [
        ({}, 4 * 90.0),
        ({"checkpoint_seconds": 70.0}, 4 * 30.0),
        ({"checkpoint_seconds": 5.0}, 4 * 90.0),  # of the attempt before
        ({"outcome": Outcome.LOST.value}, 4 * 90.0),
        ({"outcome": Outcome.STOPPED.value}, 0.0),
        ({"outcome": Outcome.SUCCEEDED.value}, 0.0),
        ({"running_seconds": None}, 0.0),
        ({"ended_seconds": None}, 0.0),
        ({"kind": AttemptKind.PROFILE.value}, 0.0),
    ],
)
def test_lost_is_what_a_failed_attempt_ran_after_its_last_checkpoint(
    fields: dict[str, object], lost: float
) -> None:
    row = AttemptRow(
        **{
            "job_id": "j",
            "cluster_id": "c",
            "number": 1,
            "round_number": 1,
            "state": "ended",
            "outcome": Outcome.FAILED.value,
            "reports": True,
            "gpu_type": "t4",
            "gpus_by_node": {},
            "gpu_count": 4,
            "ordered_seconds": 0.0,
            "running_seconds": 10.0,
            "ended_seconds": 100.0,
            **fields,
        }
    )

    assert row.lost_gpu_seconds == lost


def test_a_command_that_fails_without_a_checkpoint_lost_what_it_ran(
    cluster: TrainingCluster,
) -> None:
    job_id = cluster.submit("/bin/sh", "-c", "sleep 1; exit 7")
    cluster.round()
    cluster.look_until(lambda: cluster.has_ended(job_id))
    cluster.note()
    cluster.note()

    found = total(cluster)
    assert found["lost_gpu_hours"] == pytest.approx(found["used_gpu_hours"], rel=0.3)
    assert seconds(found["lost_gpu_hours"]) > 0.5
    assert found["useful_gpu_hours"] == pytest.approx(
        found["used_gpu_hours"] - found["lost_gpu_hours"]
    )
