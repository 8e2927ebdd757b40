"""Two jobs on a GPU of a live simulated cluster: shared where it pays, at the declared slowdown."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from live_samples import job, jobs_of, make_cluster, set_time, step_at, submit
from sqlmodel import select

from backend.attempts.slowdowns import LEAST_REPORTS, sharing_samples
from backend.database import Database
from backend.models import Cluster, ExecutorJob, Job, Node, SharingSample
from maat.forecasting.draws import CENTRAL, Drawing
from maat.forecasting.play import play
from maat.scheduling.belief import MemoisingFitter
from worker.forecasts.reading import read
from worker.live import step as live
from worker.live.memory import MEMORY

RIGID: dict[str, Any] = {
    "adaptivity": "rigid", "batch_size": 512, "gpu_count": 2, "work_scale": 0.5,
}  # fmt: skip


def sharing_cluster(database: Database, **fields: Any) -> str:
    """Make a cluster of two T4 where two jobs may share a GPU."""
    shares = {"policy": "sjf-bsbf", "placer": "shared", "jobs_per_gpu": 2, "round_seconds": 10.0}
    cluster_id = make_cluster(database, **{**shares, "interference": "1.2", **fields})
    with database.session_scope() as session:
        for node in session.exec(select(Node).where(Node.cluster_id == cluster_id)):
            if node.position:
                session.delete(node)
            else:
                node.gpu_count = 2
    return cluster_id


def shared_gpus(database: Database, cluster_id: str) -> list[int]:
    holders = Counter(gpu for row in jobs_of(database, cluster_id) for gpu in row.gpus or ())
    return sorted(gpu for gpu, count in holders.items() if count > 1)


def processed(database: Database, cluster_id: str) -> dict[str, float]:
    """Return the samples that each job has processed, as the executor has stored them."""
    with database.session_scope(writes=False) as session:
        rows = session.exec(select(ExecutorJob).where(ExecutorJob.cluster_id == cluster_id))
        return {row.job_id: json.loads(row.standing)["processed_samples"] for row in rows}


def test_two_jobs_share_the_gpus_within_two_rounds(database: Database) -> None:
    cluster_id = sharing_cluster(database)
    submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0)
    assert shared_gpus(database, cluster_id) == [0, 1]


def test_nothing_is_shared_where_jobs_would_lose_too_much(database: Database) -> None:
    cluster_id = sharing_cluster(database, interference="2.5")
    first, second = submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0, 220.0)
    assert shared_gpus(database, cluster_id) == []
    assert sorted([len(job(database, one).gpus or ()) for one in (first, second)]) == [0, 2]
    waiting = next(row for row in jobs_of(database, cluster_id) if row.gpus is None)
    assert waiting.reason_code == "SHARING_NO_GAIN"


def test_the_next_decision_goes_by_what_was_measured(database: Database) -> None:
    cluster_id = sharing_cluster(database, interference="1.2")
    measured = {"gpu_type": "t4", "gpu_count": 2, "ratio_m2": 0.0, "updated_seconds": 0.0}
    pair = {"victim": "cifar10", "partner": "cifar10", "victim_batch": 256, "partner_batch": 256}
    first, _ = submit(database, cluster_id, count=2, **RIGID)
    with database.session_scope() as session:
        tenant = session.get_one(Job, first).tenant_id
        key = {"cluster_id": cluster_id, "job_id": first, **pair, **measured}
        whose = {"tenant_id": tenant, "partner_tenant_id": tenant}
        session.add(SharingSample(**key, **whose, count=3, weight=3.0, ratio=2.5))
    step_at(database, cluster_id, 200.0, 210.0)
    assert shared_gpus(database, cluster_id) == []
    with database.session_scope() as session:
        session.exec(select(SharingSample)).one().ratio = 1.1
    step_at(database, cluster_id, 220.0)
    assert shared_gpus(database, cluster_id) == [0, 1]


@pytest.mark.parametrize("forgets", [False, True], ids=["remembered", "restored"])
def test_jobs_on_one_gpu_are_slowed_by_each_other(database: Database, forgets: bool) -> None:
    """By the same factor in a worker that has been restarted, from its first step on."""
    done = {}
    for xi in ("1", "1.25"):
        cluster_id = sharing_cluster(database, interference=xi, name=xi)
        submit(database, cluster_id, count=2, **RIGID)
        step_at(database, cluster_id, 200.0, 210.0, 300.0)
        if forgets:
            MEMORY.forget(database)
        before = processed(database, cluster_id)
        step_at(database, cluster_id, 400.0)
        assert shared_gpus(database, cluster_id) == [0, 1]
        after = processed(database, cluster_id)
        done[xi] = [after[job_id] - before[job_id] for job_id in before]
    assert done["1"] == pytest.approx([1.25 * each for each in done["1.25"]])


def test_a_change_of_what_is_declared_holds_from_the_next_round_on(database: Database) -> None:
    cluster_id = sharing_cluster(database, interference="2.5")
    submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0)
    with database.session_scope() as session:
        session.get_one(Cluster, cluster_id).interference = "1.2"
    step_at(database, cluster_id, 220.0)
    assert shared_gpus(database, cluster_id) == [0, 1]


def test_models_of_which_nothing_is_declared_share_under_first_fit_and_go_on(
    database: Database,
) -> None:
    """The shipped table has no pair with itself of a model that it lacks; rounds go on."""
    fields = {"policy": "sjf-ffs", "interference": "synthetic"}
    cluster_id = sharing_cluster(database, **fields)
    submit(database, cluster_id, count=2, **(RIGID | {"model": "bert", "batch_size": 16}))
    step_at(database, cluster_id, 200.0, 210.0, 220.0)
    set_time(database, cluster_id, 400.0)
    assert live.step_cluster(database, cluster_id) is not None
    assert shared_gpus(database, cluster_id) == [0, 1]


def measured(database: Database, cluster_id: str) -> list[SharingSample]:
    with database.session_scope(writes=False) as session:
        return list(sharing_samples(session, cluster_id, now=0.0))


def test_what_simulated_jobs_lose_on_one_gpu_is_measured_as_that_of_real_ones(
    database: Database,
) -> None:
    cluster_id = sharing_cluster(database, interference="1.25")
    submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0)
    assert shared_gpus(database, cluster_id) == [0, 1]
    assert measured(database, cluster_id) == [], "they restart, and were not beside each other"
    times = [300.0 + 10.0 * number for number in range(4)]
    step_at(database, cluster_id, *times[:2])
    MEMORY.forget(database)
    step_at(database, cluster_id, *times[2:])
    for pair in (pairs := measured(database, cluster_id)):
        assert (pair.victim, pair.partner, pair.gpu_type, pair.gpu_count) == (
            "cifar10", "cifar10", "t4", 2,
        )  # fmt: skip
        assert (pair.victim_batch, pair.partner_batch) == (256, 256)
        assert pair.count == LEAST_REPORTS, "in every step but the one in which the start ended"
        assert pair.ratio == pytest.approx(1.25)
    assert len({pair.job_id for pair in pairs}) == len(pairs) == 2


def test_nobody_is_measured_beside_a_job_that_comes_or_goes(database: Database) -> None:
    cluster_id = sharing_cluster(database, interference="1.25")
    first, _ = submit(database, cluster_id, count=2, **RIGID)
    step_at(database, cluster_id, 200.0, 210.0, 300.0, 310.0)
    before = [pair.count for pair in measured(database, cluster_id)]
    with database.session_scope() as session:
        session.get_one(Job, first).cancel_requested = True
    step_at(database, cluster_id, 320.0, 330.0, 340.0)
    after = [pair.count for pair in measured(database, cluster_id)]
    assert shared_gpus(database, cluster_id) == []
    assert after == before == [1, 1]


def forecast_ends(database: Database, cluster_id: str) -> tuple[float, dict[str, float]]:
    """Return the time now, and when the central draw lets each job end."""
    with database.session_scope(writes=False) as session:
        reading = read(session, session.get_one(Cluster, cluster_id))
    assert reading is not None
    present = reading.present()
    drawing = Drawing(present, reading.unknown, MemoisingFitter())
    return present.now, dict(play(present, drawing.draw(CENTRAL)).ends)


@pytest.mark.parametrize("shorter", [2.0, 0.3], ids=["go on sharing", "alone again"])
def test_a_forecast_of_jobs_that_have_shared_comes_true(database: Database, shorter: float) -> None:
    """Their pace so far is that of the jobs: what sharing costs is counted where they share."""
    cluster_id = sharing_cluster(database, interference="1.4")
    submit(database, cluster_id, **(RIGID | {"work_scale": 2.0}))
    submit(database, cluster_id, **(RIGID | {"work_scale": shorter}))
    at = 200.0
    while at < 1400.0 or (shorter < 1.0 and shared_gpus(database, cluster_id)):
        step_at(database, cluster_id, at)
        at += 60.0
    now, forecast = forecast_ends(database, cluster_id)
    assert len(forecast) == (1 if shorter < 1.0 else 2)
    while any(row.finished_seconds is None for row in jobs_of(database, cluster_id)):
        step_at(database, cluster_id, at)
        at += 60.0
    ends = {row.id: row.finished_seconds or 0.0 for row in jobs_of(database, cluster_id)}
    for job_id, end in forecast.items():
        assert ends[job_id] > now + 500.0
        assert end - now == pytest.approx(ends[job_id] - now, rel=0.05)


def test_jobs_that_are_to_share_are_forecast_to_end_later_by_their_slowdown(
    database: Database,
) -> None:
    last = []
    for xi in ("1", "1.4"):
        cluster_id = sharing_cluster(database, interference=xi, name=xi, policy="sjf-ffs")
        submit(database, cluster_id, count=2, **RIGID)
        step_at(database, cluster_id, 10.0)
        now, ends = forecast_ends(database, cluster_id)
        last.append(max(ends.values()) - now)
    assert last[1] == pytest.approx(1.4 * last[0], rel=0.1)
