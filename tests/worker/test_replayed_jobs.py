"""Tests that a replayed live job keeps its declaration: the simulation schedules the same job."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backend.jobs.admission import objections
from backend.jobs.models import Job
from backend.simulations.trace_jobs import trace_job
from backend.simulations.traces import csv_workload
from maat.api.jobs import JobBody
from maat.models.catalog import load_catalog
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import JobSpec
from maat.simulation.iteration_models import shipped_models
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.vocabulary import MAX_GPUS
from maat.workloads.formats.sia import write_workload
from maat.workloads.workloads import Workload
from worker.jobs.spec import job_spec

CLUSTER = Cluster.parse("t4=6x4,rtx=3x8,a100=2x8")
SUBMITTED, FIRST = 90.0, 30.0
WHO_IT_IS = {
    "name",
    "cluster_id",
    "external_id",
    "labels",
    "run",
    "after",
    "deadline",
}  # of the declaration: a replayed job goes by its id
# Fields of the spec that its owner does not declare: the job's identity, its submission in the
# trace's own time, and what the rules of a simulation say of the model.
NOT_ASKED_FOR = {
    "id",
    "name",
    "owner",
    "submitted_at",
    "variability_class",
    "locality_penalty",
    "shares_as",
    "regimes",
}
TRAINS = {
    "model": "cifar10",
    "adaptivity": "strong-scaling",
    "gpu_count": 3,
    "min_gpus": 2,
    "max_gpus": 5,
    "batch_size": 256,
    "max_batch_size": 1024,
    "work_scale": 0.25,
    "preemptible": False,
    "gpu_types": ["a100", "t4"],
    "priority": 7,
    "weight": 1.5,
    "least_stay_seconds": 600.0,
    "most_moves_per_hour": 4,
}
SERVES = {
    "model": "bert",
    "workload_kind": "latency-inference",
    "batch_size": 16,
    "promised_seconds": 0.5,
}


def row_of(body: JobBody) -> Job:
    given = body.model_dump() | {"cluster_id": "demo"}
    return Job(
        **given,
        id="job_1",
        owner_id="usr_1",
        tenant_id="ten_1",
        submitted_seconds=SUBMITTED,
        remaining_work=1.0,
    )


def live_spec(body: JobBody) -> JobSpec:
    return job_spec(row_of(body), tenant="vision")


def replayed_spec(workload: Workload) -> JobSpec:
    (job,) = World.of(Scenario(workload, shipped_models(), CLUSTER)).submissions
    return job.spec


def replayed(body: JobBody) -> Workload:
    return Workload("cluster", (trace_job(row_of(body), FIRST, "vision"),), "cluster")


def asked_for(spec: JobSpec) -> dict[str, Any]:
    """Return the fields of a spec that its owner declares.

    A bound that is absent and one that equals the requested count compare as equal.
    """
    told = {
        field.name: getattr(spec, field.name)
        for field in fields(spec)
        if field.name not in NOT_ASKED_FOR
    }
    told["work"] = float(f"{spec.work:.9g}")  # a model's epochs are added up in another order
    told["gpu_count"] = spec.requested_gpus
    told["max_gpus"] = MAX_GPUS if spec.max_gpus is None else spec.max_gpus
    told["gpus_per_replica"] = {kind: spec.replica_gpus(kind) for kind in spec.memory}
    return told


def test_every_field_of_a_declaration_is_tried_away_from_its_default() -> None:
    tried = {name for body in (TRAINS, SERVES) for name in body}
    assert tried == set(JobBody.model_fields) - WHO_IT_IS


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (name, body)
        for body in (TRAINS, SERVES)
        for name in body
        if name not in ("model", "workload_kind")
    ],
)
def test_what_is_asked_for_counts_in_the_replay(name: str, body: dict[str, Any]) -> None:
    with_field, without = (
        JobBody(name="x", **body),
        {key: value for key, value in body.items() if key != name},
    )
    if name in (
        "batch_size",
        "promised_seconds",
    ):  # what its kind of job needs: another value instead of none
        without[name] = 512 if body is TRAINS else 2 * body[name]
    assert getattr(with_field, name) != JobBody.model_fields[name].default
    assert asked_for(replayed_spec(replayed(with_field))) != asked_for(
        replayed_spec(replayed(JobBody(name="x", **without)))
    )


@pytest.mark.parametrize(
    "body", [TRAINS, SERVES, {"model": "bert"}, {**TRAINS, "adaptivity": "rigid"}]
)
def test_a_replayed_job_is_the_job_that_was_asked_for(body: dict[str, Any]) -> None:
    given = JobBody(name="x", **body)
    assert asked_for(replayed_spec(replayed(given))) == asked_for(live_spec(given))


@pytest.mark.parametrize("body", [TRAINS, SERVES, {"model": "bert"}])
def test_a_sweep_keeps_what_was_asked_for_as_text(body: dict[str, Any]) -> None:
    workload = replayed(JobBody(name="x", **body))
    assert csv_workload(write_workload(workload), shipped_models()).jobs == workload.jobs


def test_it_comes_at_its_own_time_of_the_history() -> None:
    assert replayed_spec(replayed(JobBody(name="x", **TRAINS))).submitted_at == SUBMITTED - FIRST


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a declaration that is seldom refused: its counts and batches fit the model."""
    name = draw(st.sampled_from(sorted(load_catalog())))
    adaptivity = draw(st.sampled_from(["rigid", "strong-scaling", "adaptive"]))
    kind = draw(st.sampled_from(["training", "batch-inference", "latency-inference"]))
    model, serves = load_catalog()[name], kind == "latency-inference"
    batches = st.integers(1 if serves else model.initial_batch_size, model.max_batch_size)
    counts, most = st.integers(4, 8), st.integers(8, 16)
    batch_size = draw(batches if adaptivity != "adaptive" else st.none() | batches)
    least = max(batch_size or 0, model.initial_batch_size)
    larger = st.integers(least, model.max_batch_size)
    types = st.lists(st.sampled_from(CLUSTER.type_names), min_size=1, unique=True)
    return {
        "model": name,
        "adaptivity": adaptivity,
        "workload_kind": kind,
        "gpu_count": draw(counts if adaptivity == "rigid" else st.none() | counts),
        "min_gpus": draw(st.integers(1, 4)),
        "max_gpus": draw(st.none() | most),
        "batch_size": batch_size,
        "max_batch_size": draw(st.none() | larger),
        "promised_seconds": draw(st.floats(0.01, 10.0)) if serves else None,
        "work_scale": draw(st.floats(0.01, 4.0)),
        "preemptible": draw(st.booleans()),
        "gpu_types": draw(st.none() | types),
    }


@given(declarations())
def test_whatever_the_service_takes_is_replayed_as_it_was_asked_for(fields: dict[str, Any]) -> None:
    body = JobBody(name="x", **fields)
    assume(not objections(body, models=load_catalog(), capacity={"t4": 24, "rtx": 24, "a100": 16}))
    workload = replayed(body)
    assert asked_for(replayed_spec(workload)) == asked_for(live_spec(body))
    assert csv_workload(write_workload(workload), shipped_models()).jobs == workload.jobs
