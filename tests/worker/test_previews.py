"""Previews of rounds: what they say is what the next round then does; how they end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from live_samples import job, make_cluster, make_owner, set_time, step_at, submit
from sqlmodel import Session, select
from training_samples import TrainingCluster

from backend.clocktime import utc_now
from backend.clusters.repository import get_cluster
from backend.clusters.resources import show_cluster
from backend.database import Database
from backend.models import Cluster, Job, Node, Operation, OperationState, RoundPreview
from backend.settings import Settings
from maat.api.previews import PreviewResultOut, not_considered_words, sharing_words
from worker import housekeeping
from worker.live import step as live
from worker.rehearsals import previews
from worker.rehearsals.round_preview import preview_of


def busy_cluster(database: Database) -> tuple[str, list[str]]:
    """Make a cluster under FIFO, with jobs that hold GPUs and jobs that wait."""
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    rigid = {"adaptivity": "rigid", "batch_size": 512, "work_scale": 100.0}
    jobs = submit(database, cluster_id, count=2, gpu_count=8, **rigid)
    step_at(database, cluster_id, 30, 90)
    jobs += submit(database, cluster_id, count=3, submitted_seconds=91.0, work_scale=100.0)
    step_at(database, cluster_id, 150)
    return cluster_id, jobs


def asked(database: Database, cluster_id: str, **changes: Any) -> str:
    owner, tenant = make_owner(database)
    of_owner = {"owner_id": owner, "tenant_id": tenant}
    with database.session_scope() as session:
        cluster = session.get_one(Cluster, cluster_id)
        operation = Operation(kind="preview", total=2.0, unit="rounds", **of_owner)
        session.add(operation)
        session.flush()
        parts = ("policy", "policy_parameters", "placer", "placer_parameters", "round_seconds")
        wanted = {name: getattr(cluster, name) for name in parts} | {"drained_nodes": []}
        preview = RoundPreview(
            cluster_id=cluster_id,
            cluster_version=cluster.version,
            operation_id=operation.id,
            wanted=wanted | changes,
            **of_owner,
        )
        session.add(preview)
    return preview.id


def previewed(database: Database, preview_id: str) -> PreviewResultOut:
    with database.session_scope(writes=False) as session:
        result = preview_of(session, session.get_one(RoundPreview, preview_id))
    assert result is not None
    return result


def operation_of(database: Database, preview_id: str) -> Operation:
    with database.session_scope(writes=False) as session:
        preview = session.get_one(RoundPreview, preview_id)
        return session.get_one(Operation, preview.operation_id)


SIA = {"policy": "sia", "placer": "whole-node"}


STAYS = {**SIA, "least_stay_seconds": 86_400.0}


def shares(slowdown: str) -> dict[str, Any]:
    """Two jobs per GPU, under a policy that shares where it is worth it."""
    sharing = {"policy": "sjf-bsbf", "placer": "shared", "jobs_per_gpu": 2}
    return {**sharing, "interference": slowdown}


@pytest.mark.parametrize(
    "changes", [{}, SIA, STAYS, shares("1"), {"drained_nodes": ["a100-0"]}], ids=str
)
def test_the_next_round_does_to_every_job_what_the_preview_said(
    database: Database, changes: dict[str, Any]
) -> None:
    cluster_id, jobs = busy_cluster(database)
    set_time(database, cluster_id, 210)
    result = previewed(database, asked(database, cluster_id, **changes))
    held = {job_id: job(database, job_id).gpus for job_id in jobs}
    with database.session_scope() as session:
        cluster = get_cluster(session, cluster_id, lock=True)
        for name in changes.keys() - {"drained_nodes"}:
            setattr(cluster, name, changes[name])
        session.add(cluster)
        for node in changes.get("drained_nodes", ()):
            _drain(session, node)
    assert live.step_cluster(database, cluster_id) == result["round_number"]

    told = {one["job_id"]: one for one in result["jobs"]}
    used: set[int] = set()
    for job_id in jobs:
        row = job(database, job_id)
        used |= set(row.gpus or ())
        if job_id not in told:
            assert row.gpus == held[job_id]
            continue
        fate = told[job_id]["with_change"]
        assert (fate["gpu_type"], fate["gpu_count"]) == (
            row.gpu_type if row.gpus else None,
            len(row.gpus or ()),
        )
    side = result["with_change"]
    assert len(used) == side["gpus_in_use"] == sum(side["gpus_by_type"].values())
    assert result["gpus_in_use"] == sum(len(gpus or ()) for gpus in held.values())
    if not changes or changes == STAYS:  # nobody moves
        assert result["jobs_treated_differently"] == 0
    else:
        assert result["jobs_treated_differently"] > 0
        assert side["restarts"] == side["moves"] + side["resizes"]


def test_a_preview_shares_gpus_by_the_interference_that_is_tried(database: Database) -> None:
    cluster_id, _ = busy_cluster(database)
    set_time(database, cluster_id, 210)

    light, heavy = (
        previewed(database, asked(database, cluster_id, **shares(slowdown)))["with_change"]
        for slowdown in ("1", "100")
    )

    assert light["jobs_with_gpus"] > heavy["jobs_with_gpus"]
    assert (light["jobs_per_gpu"], light["interference"]) == (2, 1.0)
    assert sharing_words(heavy) == "2 jobs, slowdown 100"


def test_a_preview_counts_jobs_that_no_round_considers_yet_as_jobs_that_wait(
    database: Database,
) -> None:
    cluster_id, _ = busy_cluster(database)
    set_time(database, cluster_id, 210)
    before = previewed(database, asked(database, cluster_id))
    late = submit(database, cluster_id, count=2, submitted_seconds=209.0, work_scale=100.0)
    paused, followed = submit(database, cluster_id, count=2, submitted_seconds=209.0)
    with database.session_scope() as session:
        session.get_one(Job, paused).pause_requested = True
        session.get_one(Job, followed).cancel_requested = True

    result = previewed(database, asked(database, cluster_id, **SIA))

    assert (before["jobs_not_considered"], result["jobs_not_considered"]) == (0, len(late))
    waiting = before["as_it_stands"]["jobs_waiting"] + len(late)
    assert result["as_it_stands"]["jobs_waiting"] == waiting
    assert not_considered_words(before) is None
    assert str(not_considered_words(result)).startswith("2 of the jobs that wait are not")


def test_a_preview_says_what_the_new_policy_lacks_as_the_change_itself_does(
    database: Database,
) -> None:
    cluster_id, _ = busy_cluster(database)
    alone = {"policy": "sjf-bsbf", "placer": "shared"}
    result = previewed(database, asked(database, cluster_id, **alone))

    assert result["as_it_stands"]["notes"] == []
    with database.session_scope() as session:
        cluster = get_cluster(session, cluster_id, lock=True)
        cluster.policy, cluster.placer = alone["policy"], alone["placer"]
        session.add(cluster)
        session.flush()
        assert result["with_change"]["notes"] == show_cluster(session, cluster)["notes"]
    assert "lets jobs share GPUs" in result["with_change"]["notes"][0]


def _drain(session: Session, name: str) -> None:
    node = session.exec(select(Node).where(Node.name == name)).one()
    node.drained_gpus = list(range(node.gpu_count))
    session.add(node)


def test_commands_are_previewed_without_an_order_to_any_of_them(
    database: Database, tmp_path: Path
) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", allow_commands=True)
    cluster = TrainingCluster(database, settings, tmp_path)
    first = cluster.submit("/bin/sleep", "600", gpu_count=8, profile=False)
    assert cluster.decide() is not None
    second = cluster.submit("/bin/sleep", "600", gpu_count=4, profile=False)
    third = cluster.submit("/bin/sleep", "600", gpu_count=8, profile=False)
    result = previewed(database, asked(database, cluster.cluster_id, policy="srtf"))
    assert [len(cluster.attempts(job_id)) for job_id in (first, second, third)] == [1, 0, 0]
    (told,) = result["jobs"]
    assert told["job_id"] == second
    assert cluster.decide() == result["round_number"]
    (attempt,) = cluster.attempts(second)
    fate = told["as_it_stands"]
    assert (attempt.gpu_type, attempt.gpu_count) == (fate["gpu_type"], fate["gpu_count"])
    assert result["as_it_stands"]["gpus_in_use"] == 12


def test_a_preview_is_played_by_a_process_and_changes_nothing_else(database: Database) -> None:
    cluster_id, jobs = busy_cluster(database)
    before = [job(database, job_id).model_dump() for job_id in jobs]
    preview_id = asked(database, cluster_id, **SIA)
    assert previews.run_preview(database, preview_id) == OperationState.SUCCEEDED
    with database.session_scope(writes=False) as session:
        result = session.get_one(RoundPreview, preview_id).result
        cluster = session.get_one(Cluster, cluster_id)
    assert (result["as_it_stands"]["policy"], result["with_change"]["policy"]) == ("fifo", "sia")
    assert (cluster.policy, cluster.next_round_number) == ("fifo", result["round_number"])
    assert [job(database, job_id).model_dump() for job_id in jobs] == before
    operation = operation_of(database, preview_id)
    assert operation.cpu_seconds > 0
    assert (operation.state, operation.done) == ("succeeded", 2.0)
    assert previews.run_preview(database, preview_id) is None


def test_a_cancelled_preview_ends_with_its_process(database: Database) -> None:
    preview_id = asked(database, make_cluster(database))
    with database.session_scope() as session:
        found = session.get_one(RoundPreview, preview_id)
        session.get_one(Operation, found.operation_id).cancel_requested = True
    assert previews.run_preview(database, preview_id) == OperationState.CANCELLED
    assert operation_of(database, preview_id).message == "Cancelled: nothing was changed."


def test_a_preview_that_takes_too_long_is_given_up_with_the_reason(database: Database) -> None:
    preview_id = asked(database, make_cluster(database))
    ended = previews.run_preview(database, preview_id, most_seconds=0.0)
    assert ended == OperationState.FAILED
    operation = operation_of(database, preview_id)
    assert operation.error is not None
    assert "were given up" in operation.error["detail"]


def test_a_preview_whose_worker_is_gone_is_sent_again_and_an_ended_one_is_not(
    database: Database,
) -> None:
    preview_id = asked(database, make_cluster(database))
    assert previews.waiting_previews(database) == [preview_id]
    with database.session_scope() as session:
        found = session.get_one(RoundPreview, preview_id)
        session.get_one(Operation, found.operation_id).state = "cancelled"
    assert previews.waiting_previews(database) == []
    assert previews.run_preview(database, preview_id) is None


def test_previews_are_deleted_after_a_day_with_their_operations(database: Database) -> None:
    cluster_id = make_cluster(database)
    old, young = asked(database, cluster_id), asked(database, cluster_id)
    operation_id = operation_of(database, old).id
    with database.session_scope() as session:
        session.get_one(RoundPreview, old).created_at = utc_now() - timedelta(hours=25)
    assert housekeeping.prune_previews(database) == 1
    with database.session_scope(writes=False) as session:
        assert session.get(RoundPreview, old) is None
        assert session.get(Operation, operation_id) is None
        assert session.get(RoundPreview, young) is not None
