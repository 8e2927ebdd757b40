"""Jobs that no round would start are known before one, by the sentence that rounds then give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from live_samples import job, make_cluster, make_owner, step_at, submit
from sqlmodel import select

from backend.database import Database
from backend.jobs.kept_reasons import evidence_of
from backend.models import Cluster, GpuQuota, Job, Node
from maat.scheduling.explain import Reasons, sentence_of
from worker.rehearsals.alone import LoneTrials

RIGID = {"adaptivity": "rigid", "batch_size": 512}
INFERENCE = {"workload_kind": "latency-inference", "batch_size": 512}


def why_never(database: Database, cluster_id: str, *job_ids: str) -> Mapping[str, Reasons]:
    with database.session_scope(writes=False) as session:
        rows = [session.get_one(Job, job_id) for job_id in job_ids]
        return LoneTrials().never_started(session, session.get_one(Cluster, cluster_id), rows)


def drain(database: Database, *names: str) -> None:
    with database.session_scope() as session:
        for name in names:
            node = session.exec(select(Node).where(Node.name == name)).one()
            node.drained_gpus = list(range(node.gpu_count))
            session.add(node)


def limit(database: Database, cluster_id: str, **ceilings: int) -> None:
    _, tenant = make_owner(database)
    with database.session_scope() as session:
        session.add_all(
            GpuQuota(cluster_id=cluster_id, tenant_id=tenant, gpu_type=kind, ceiling=most)
            for kind, most in ceilings.items()
        )


@pytest.mark.parametrize(
    ("parts", "fields"),
    [
        ({}, {"min_gpus": 3, "max_gpus": 3}),
        ({}, {"adaptivity": "strong-scaling", "batch_size": 512, "min_gpus": 5, "max_gpus": 7}),
        ({}, {**INFERENCE, "promised_seconds": 1e-6}),
        ({"policy": "fifo", "placer": "packed-sticky"}, {**RIGID, "gpu_count": 8}),
        ({"policy": "fifo", "placer": "packed-sticky"}, {**RIGID, "gpu_count": 2}),
        ({"policy": "fifo", "placer": "packed-sticky"}, {"gpu_types": ["a100"]}),
        ({"policy": "sjf-bsbf", "placer": "shared", "jobs_per_gpu": 2}, {**RIGID, "gpu_count": 8}),
        ({"policy": "pollux", "placer": "packed"}, {**RIGID, "gpu_count": 8}),
    ],
    ids=str,
)
def test_a_job_that_rounds_will_never_start_is_known_by_their_sentence(
    database: Database, parts: dict[str, Any], fields: dict[str, Any]
) -> None:
    slowdown = {"interference": "1.2"} if parts.get("jobs_per_gpu") else {}
    cluster_id = make_cluster(database, **parts, **slowdown)
    if parts:
        drain(database, "t4-1", "a100-0")
    if fields.get("gpu_count") == 2:
        limit(database, cluster_id, t4=1, a100=1)
    (runs,) = submit(database, cluster_id, work_scale=100.0)
    step_at(database, cluster_id, 30, 90)
    (never,) = submit(database, cluster_id, submitted_seconds=91.0, **fields)
    assert job(database, runs).gpus is not None

    known = why_never(database, cluster_id, never, runs)
    step_at(database, cluster_id, 150, 210)

    assert known.keys() == {never}
    row = job(database, never)
    assert row.reason_code == known[never].primary
    assert sentence_of(row.reason_code, evidence_of(row.reason_evidence)) == known[never].sentence


def test_jobs_that_others_keep_waiting_are_not_among_them(database: Database) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky")
    first = submit(database, cluster_id, count=2, gpu_count=8, work_scale=100.0, **RIGID)
    step_at(database, cluster_id, 30, 90)
    (waits,) = submit(database, cluster_id, gpu_count=8, submitted_seconds=91.0, **RIGID)

    assert job(database, first[0]).gpus is not None
    assert why_never(database, cluster_id, waits) == {}


def test_commands_are_tried_without_a_world(database: Database) -> None:
    cluster_id = make_cluster(database, policy="fifo", placer="packed-sticky", executor="local")
    drain(database, "t4-1", "a100-0")
    never, may = (
        submit(database, cluster_id, gpu_count=gpus, model="net", **RIGID)[0] for gpus in (8, 4)
    )

    assert list(why_never(database, cluster_id, never, may)) == [never]


def test_jobs_that_ask_for_the_same_are_known_alike(database: Database) -> None:
    cluster_id = make_cluster(database)
    same = submit(database, cluster_id, count=3, min_gpus=3, max_gpus=3)

    known = why_never(database, cluster_id, *same)

    assert known.keys() == set(same)
    assert len({why.sentence for why in known.values()}) == 1
