"""Tests of remedies for waiting jobs: with each remedy, the next real round starts the job.

They run on both databases with real policies and placers.
"""

from __future__ import annotations

from typing import Any

import pytest
from live_samples import job, make_cluster, set_time, submit
from sqlmodel import select

from backend.database import Database
from backend.jobs import remedies
from backend.jobs.remedies import RemedyFinder
from backend.models import Cluster, Job, Node, Round
from maat.api.job_answers import Remedy
from worker import live
from worker.rehearsal import LiveRehearsal


def step_at(database: Database, cluster_id: str, *times: float) -> None:
    for seconds in times:
        set_time(database, cluster_id, seconds)
        assert live.step_cluster(database, cluster_id) is not None


def remedies_of(
    database: Database, job_id: str, finder: RemedyFinder | None = None
) -> list[Remedy]:
    with database.session_scope(writes=False) as session:
        row = session.get_one(Job, job_id)
        number = session.get_one(Cluster, row.cluster_id).next_round_number
        return (finder or RemedyFinder(LiveRehearsal())).remedies_of(
            session, row, next_round=number
        )


def take(database: Database, job_id: str, remedy: Remedy, *, at: float) -> str:
    """Cancel the job and submit it again as the remedy says."""
    with database.session_scope() as session:
        row = session.get_one(Job, job_id)
        row.cancel_requested = True
        row.version += 1
        session.add(row)
        declared = (
            "model",
            "work_scale",
            "adaptivity",
            "gpu_count",
            "min_gpus",
            "max_gpus",
            "batch_size",
            "gpu_types",
        )
        fields = {name: getattr(row, name) for name in declared} | remedy["changes"]
        cluster_id = row.cluster_id
    return submit(database, cluster_id, submitted_seconds=at, **fields)[0]


def rigid(count: int, **more: Any) -> dict[str, Any]:
    return {
        "adaptivity": "rigid",
        "gpu_count": count,
        "batch_size": 512,
        "work_scale": 100.0,
        **more,
    }


def full_but_for_four(database: Database, **cluster: Any) -> tuple[str, str]:
    """Make a cluster on which rigid jobs hold all GPUs but four T4 and a rigid job of 8 waits."""
    cluster_id = make_cluster(database, **cluster)
    submit(database, cluster_id, **rigid(8, gpu_types=["a100"], preemptible=False))
    submit(database, cluster_id, **rigid(4, gpu_types=["t4"], preemptible=False))
    step_at(database, cluster_id, 30, 90)
    (waiting,) = submit(database, cluster_id, submitted_seconds=91.0, **rigid(8))
    step_at(database, cluster_id, 150)
    assert job(database, waiting).gpus is None
    return cluster_id, waiting


@pytest.mark.parametrize("policy", ["sia", "fifo", "srtf"])
def test_each_remedy_that_is_offered_starts_the_job_in_the_next_round_as_it_says(
    database: Database, policy: str
) -> None:
    placer = "whole-node" if policy == "sia" else "packed-sticky"
    cluster_id, waiting = full_but_for_four(database, policy=policy, placer=placer)
    offered = remedies_of(database, waiting)
    assert {"lower_gpu_count", "make_adaptive"} <= {remedy["code"] for remedy in offered}
    fewer = next(remedy for remedy in offered if remedy["code"] == "lower_gpu_count")
    assert (
        fewer["sentence"]
        == "Ask for 4 GPUs instead of 8: at present, the next round would start it on 4 × t4."
    )

    again, time = waiting, 150.0
    for remedy in offered:
        again = take(database, again, remedy, at=time + 1)
        time += 60
        step_at(database, cluster_id, time)
        held = job(database, again)
        start = remedy["starts_with"]
        assert start is not None
        assert (held.gpu_type, len(held.gpus or ())) == (
            start["gpu_type"],
            start["gpu_count"],
        ), remedy


def test_another_gpu_type_is_offered_where_it_has_room(database: Database) -> None:
    cluster_id = make_cluster(database)
    submit(database, cluster_id, **rigid(8, gpu_types=["a100"], preemptible=False))
    step_at(database, cluster_id, 30, 90)
    (waiting,) = submit(
        database, cluster_id, submitted_seconds=91.0, **rigid(4, gpu_types=["a100"])
    )
    step_at(database, cluster_id, 150)

    more = next(
        remedy for remedy in remedies_of(database, waiting) if remedy["code"] == "allow_more_types"
    )
    assert more["changes"] == {"gpu_types": ["a100", "t4"]}
    again = take(database, waiting, more, at=151.0)
    step_at(database, cluster_id, 210)
    assert (job(database, again).gpu_type, len(job(database, again).gpus or ())) == ("t4", 4)


def test_nothing_is_offered_where_no_round_would_start_the_job(database: Database) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    for name, count in (("a100", 8), ("t4", 8)):
        submit(database, cluster_id, **rigid(count, gpu_types=[name], preemptible=False))
    (waiting,) = submit(database, cluster_id, submitted_seconds=1.0, **rigid(8))
    step_at(database, cluster_id, 30, 90)

    assert job(database, waiting).gpus is None
    assert remedies_of(database, waiting) == []


def test_a_rehearsal_writes_nothing(database: Database) -> None:
    _, waiting = full_but_for_four(database)
    before = _all_of(database)

    assert remedies_of(database, waiting)

    assert _all_of(database) == before


def test_rounds_are_tried_once_for_each_round_of_the_cluster_and_never_where_one_takes_too_long(
    database: Database,
) -> None:
    cluster_id, waiting = full_but_for_four(database)
    tried = Counting()
    finder = RemedyFinder(tried)
    first, second = remedies_of(database, waiting, finder), remedies_of(database, waiting, finder)
    assert first == second
    assert tried.stages == 1
    with database.session_scope() as session:
        number = session.get_one(Cluster, cluster_id).next_round_number - 1
        last = session.exec(_round(cluster_id, number)).one()
        last.policy_seconds = 20.0
        session.add(last)
    assert remedies_of(database, waiting) == []


def test_who_asks_while_another_job_is_looked_at_is_answered_without_remedies(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, waiting = full_but_for_four(database)
    monkeypatch.setattr(remedies, "MOST_WAIT_SECONDS", 0.01)
    finder = RemedyFinder(LiveRehearsal())
    with finder._at_work:
        assert remedies_of(database, waiting, finder) == []
    assert remedies_of(database, waiting, finder) != []


def test_neither_a_drained_node_nor_a_job_that_runs_is_promised(database: Database) -> None:
    cluster_id, waiting = full_but_for_four(database)
    with database.session_scope() as session:
        for node in session.exec(_nodes(cluster_id)):
            held = any(0 <= gpu - node.position * 4 < 4 for gpu in _t4s(session))
            node.drained_gpus = [] if held or node.gpu_type != "t4" else [0, 1, 2, 3]
            session.add(node)
    assert remedies_of(database, waiting) == []


class Counting(LiveRehearsal):
    stages = 0

    def stage(self, session: Any, job: Job) -> Any:
        self.stages += 1
        return super().stage(session, job)


def _all_of(database: Database) -> list[Any]:
    with database.session_scope(writes=False) as session:
        return [
            [row.model_dump() for row in session.exec(_every(table))]
            for table in (Job, Cluster, Round, Node)
        ]


def _every(table: Any) -> Any:
    return select(table).order_by(table.id)


def _round(cluster_id: str, number: int) -> Any:
    return select(Round).where(Round.cluster_id == cluster_id, Round.number == number)


def _nodes(cluster_id: str) -> Any:
    return select(Node).where(Node.cluster_id == cluster_id)


def _t4s(session: Any) -> list[int]:
    return [
        gpu
        for row in session.exec(select(Job).where(Job.gpu_type == "t4"))
        for gpu in row.gpus or ()
    ]
