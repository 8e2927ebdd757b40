"""Every field of a job's declaration, followed from form and request to the policy and the replay.

A field that is added to JobDeclaration without a value here fails the first test.
"""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from sqlmodel import select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster
from backend.simulations.traces import workload_of
from frontend.pages.submit.model import body_of, values_like
from maat.api.job_answers import JobOut
from maat.api.jobs import JobBody
from maat.api.simulations import ClusterTrace
from maat.client import Client
from maat.scheduling import cluster as engine
from maat.scheduling.job import DECLARED, JobDeclaration, JobSpec
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.fifo import Fifo
from maat.scheduling.rounds import Decision, RoundInput
from maat.simulation.iteration_models import shipped_models
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.workloads.formats.sia import write_workload
from maat.workloads.reading import read_workload
from worker.live import step as live

STRONG = {"model": "cifar10", "adaptivity": "strong-scaling", "batch_size": 512}
RIGID = {"model": "cifar10", "adaptivity": "rigid", "batch_size": 512, "gpu_count": 2}
SERVING = {
    "model": "bert",
    "workload_kind": "latency-inference",
    "batch_size": 16,
    "promised_seconds": 0.25,
}
TRIED: dict[str, tuple[dict[str, Any], Any]] = {
    "name": ({"model": "bert"}, "needle"),
    "model": ({}, "deepspeech2"),
    "adaptivity": (STRONG, "strong-scaling"),
    "gpu_count": (RIGID, 4),
    "min_gpus": (STRONG, 2),
    "max_gpus": (STRONG, 5),
    "batch_size": (STRONG, 256),
    "max_batch_size": ({"model": "cifar10"}, 1024),
    "work_scale": ({"model": "cifar10"}, 0.25),
    "workload_kind": ({"model": "bert"}, "batch-inference"),
    "promised_seconds": (SERVING, 0.5),
    "preemptible": (RIGID, False),
    "gpu_types": (STRONG, ["t4", "a100"]),
    "priority": (STRONG, 7),
    "weight": (STRONG, 1.5),
    "least_stay_seconds": (STRONG, 1800.0),
    "most_moves_per_hour": (STRONG, 4),
    "labels": (STRONG, {"team": "vision", "stage": "test/1"}),
}
WITHOUT_FORM = {"preemptible"}  # a switch of its own


class _Watching(Fifo):
    """FIFO that keeps what it was shown."""

    def allocate(self, round_input: RoundInput) -> Decision:
        SEEN[:] = [job.spec for job in round_input.jobs]
        return super().allocate(round_input)


SEEN: list[JobSpec] = []


def test_every_field_of_a_declaration_is_followed() -> None:
    assert set(TRIED) == set(DECLARED)
    assert set(DECLARED) <= set(JobBody.model_fields)
    assert set(DECLARED) <= set(JobOut.__annotations__)


@pytest.mark.parametrize("name", DECLARED)
def test_a_field_reaches_the_policy_and_the_replay(
    maat: Client, app: FastAPI, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    base, value = TRIED[name]
    expected = tuple(value) if isinstance(value, list) else value
    if name == "labels":
        expected = ("team=vision", "stage=test/1")
    assert expected != _default(name)

    job = maat.submit_job({"name": "followed", **base, name: value})

    assert dict(job)[name] == value
    assert getattr(_seen_by_policy(app, monkeypatch), name) == expected
    if name != "name":  # a replayed job goes by its id
        assert getattr(_replayed(app, job["cluster_id"]), name) == expected


@pytest.mark.parametrize("name", [name for name in DECLARED if name not in WITHOUT_FORM])
def test_a_field_reaches_the_service_through_the_form(maat: Client, name: str) -> None:
    base, value = TRIED[name]
    first = maat.submit_job({"name": "followed", **base, name: value})
    body = body_of(values_like(first, {}), preemptible=first["preemptible"], cluster_id=None)
    assert dict(maat.submit_job(body))[name] == value


def _default(name: str) -> object:
    return next(
        (
            field.default
            for field in JobDeclaration.__dataclass_fields__.values()
            if field.name == name
        ),
        None,
    )


def _seen_by_policy(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> JobSpec:
    """The spec that a policy is shown in the next round."""
    monkeypatch.setattr(POLICIES, "build", lambda *_: _Watching())
    database: Database = app.state.database
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.anchor_seconds, cluster.anchor_wall, cluster.speed = 100.0, utc_now(), 1e-9
        session.add(cluster)
    assert live.step_cluster(database, cluster.id) is not None
    (spec,) = SEEN
    return spec


def _replayed(app: FastAPI, cluster_id: str) -> JobSpec:
    """The spec of the job in a simulation of the cluster's history, carried as CSV text."""
    database: Database = app.state.database
    with database.session_scope(writes=False) as session:
        workload = workload_of(
            session, ClusterTrace(kind="cluster", cluster_id=cluster_id), shipped_models()
        )
    models = shipped_models()
    read = read_workload(write_workload(workload), known_models=models)
    scenario = Scenario(read, models, engine.Cluster.parse("t4=6x4,rtx=3x8,a100=2x8"))
    (job,) = World.of(scenario).submissions
    return job.spec
