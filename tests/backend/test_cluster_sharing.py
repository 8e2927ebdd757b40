"""How many jobs may share a GPU of a live cluster: made, changed, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.clusters.interference import interference_of
from backend.jobs.shared_now import SharedNow
from backend.models import (
    AttemptRow,
    Cluster,
    GpuHold,
    Job,
    Node,
    OutboxMessage,
    SharingSample,
)
from backend.sight import Sight
from maat.api.job_words import sharing_words
from maat.scheduling.interference import SharingJob
from maat.simulation.interference import synthetic

CLUSTERS = "/api/v1/clusters"


def make(client: TestClient, **fields: Any) -> Any:
    body = {"name": "lab", "shape": "t4=1x2", "policy": "sjf-bsbf", "placer": "shared", **fields}
    return client.post(CLUSTERS, json=body)


def change(client: TestClient, jobs_per_gpu: int) -> Any:
    tag = client.get(f"{CLUSTERS}/lab").headers["ETag"]
    body = {"jobs_per_gpu": jobs_per_gpu}
    return client.patch(f"{CLUSTERS}/lab", json=body, headers={"If-Match": tag})


def test_a_gpu_runs_one_job_unless_the_cluster_says_two(client: TestClient) -> None:
    assert make(client, name="alone", policy="fifo").json()["jobs_per_gpu"] == 1
    assert make(client, jobs_per_gpu=2).json()["jobs_per_gpu"] == 2
    assert client.get(f"{CLUSTERS}/lab").json()["jobs_per_gpu"] == 2
    assert change(client, 1).json()["jobs_per_gpu"] == 1
    audited = client.get("/api/v1/audit").json()["items"]
    (changed,) = [one for one in audited if one["action"] == "change cluster"]
    assert [changed[side]["jobs_per_gpu"] for side in ("before", "after")] == [2, 1]


@pytest.mark.parametrize("wrong", [0, 3, 1.5, "2"])
def test_other_numbers_are_refused(client: TestClient, wrong: object) -> None:
    refused = make(client, jobs_per_gpu=wrong)
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/jobs_per_gpu"]


def test_slurm_chooses_gpus_itself_so_jobs_cannot_share_them(
    client: TestClient, tmp_path: Path
) -> None:
    parameters = {"shared_dir": str(tmp_path)}
    slurm = {"executor": "slurm", "executor_parameters": parameters, "shape": None}
    refused = make(client, **slurm, jobs_per_gpu=2)
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert (error["pointer"], error["value"]) == ("/jobs_per_gpu", 2)
    assert make(client, **slurm).status_code == 201
    assert change(client, 2).status_code == 422


@pytest.fixture
def jobs(client: TestClient, app: FastAPI) -> list[str]:
    """Two jobs on the first GPU of a cluster where two may be."""
    assert make(client, jobs_per_gpu=2).status_code == 201
    names = ["first", "second"]
    body = {"model": "cifar10", "cluster_id": "lab"}
    made = [client.post("/api/v1/jobs", json=body | {"name": n}).json()["id"] for n in names]
    with app.state.database.session_scope() as session:
        for job_id in made:
            row = session.get_one(Job, job_id)
            row.state, row.gpu_type, row.gpus = "running", "t4", [0]
    return made


def test_places_that_jobs_hold_are_not_taken_away(
    client: TestClient, app: FastAPI, jobs: list[str]
) -> None:
    refused = change(client, 1)
    assert refused.status_code == 409
    assert "Jobs share GPUs now: first, second." in refused.json()["detail"]
    preview = client.post(f"{CLUSTERS}/lab/previews", json={"jobs_per_gpu": 1})
    assert preview.status_code == 409
    with app.state.database.session_scope() as session:
        session.get_one(Job, jobs[1]).gpus = [1]
    assert change(client, 1).status_code == 200


def test_nor_are_those_that_a_round_has_given_away_and_not_carried_out(
    client: TestClient, app: FastAPI
) -> None:
    made = make(client, jobs_per_gpu=2).json()
    with app.state.database.session_scope() as session:
        session.add(OutboxMessage(cluster_id=made["id"], round_number=1))
    refused = change(client, 1)
    assert refused.status_code == 409
    assert "is being carried out" in refused.json()["detail"]


def test_nor_is_the_place_of_processes_that_are_ending(
    client: TestClient, app: FastAPI, jobs: list[str]
) -> None:
    with app.state.database.session_scope() as session:
        row = session.get_one(Job, jobs[1])
        row.gpus, cluster_id = None, row.cluster_id
        attempt = AttemptRow(
            job_id=row.id, cluster_id=cluster_id, number=1, round_number=1, state="stopping",
            reports=False, gpu_type="t4", gpus_by_node={"t4-0": [0]}, gpu_count=1,
            ordered_seconds=0.0,
        )  # fmt: skip
        session.add(attempt)
        session.flush()
        node = session.exec(select(Node).where(Node.cluster_id == cluster_id)).one()
        session.add(GpuHold(node_id=node.id, gpu_index=0, slot=1, attempt_id=attempt.id))
    assert change(client, 1).status_code == 409
    with app.state.database.session_scope() as session:
        assert session.get_one(Cluster, cluster_id).jobs_per_gpu == 2


def test_the_state_of_the_cluster_shows_both_jobs_on_a_gpu(
    client: TestClient, jobs: list[str]
) -> None:
    first, second = client.get(f"{CLUSTERS}/lab/state").json()["gpus"]
    assert first["held"]
    holders = [first["job_id"], *(one["job_id"] for one in first["shared_with"])]
    assert sorted(holders) == sorted(jobs)
    assert (second["held"], second["shared_with"]) == (False, [])


def test_a_job_says_with_whom_it_shares_and_at_what_cost_as_long_as_it_does(
    client: TestClient, app: FastAPI, jobs: list[str]
) -> None:
    first, second = jobs
    (beside,) = client.get(f"/api/v1/jobs/{first}").json()["allocation"]["shared_with"]
    assert (beside["job_id"], beside["job_name"], beside["gpus"]) == (second, "second", 1)
    declared = synthetic().pairs["cifar10", "cifar10"][1]
    assert (beside["slowdown"], beside["slowdown_source"]) == (declared, "declared")
    words = "It shares a GPU with second now: its steps take"
    assert words in client.get(f"/api/v1/jobs/{first}/explanation").json()["primary"]["sentence"]
    with app.state.database.session_scope() as session:
        row = session.get_one(Job, first)
        its = {"job_id": row.id, "cluster_id": row.cluster_id, "tenant_id": row.tenant_id}
        its["partner_tenant_id"] = row.tenant_id
        sample = {"victim_batch": 1, "partner_batch": 1, "gpu_type": "t4", "gpu_count": 1}
        pair = {"victim": "cifar10", "partner": "cifar10", "ratio_m2": 0.0, "updated_seconds": 0.0}
        figures = {"count": 3, "weight": 3.0, "ratio": 2.5}
        session.add(SharingSample(**its, **sample, **pair, **figures))
    (beside,) = client.get(f"/api/v1/jobs/{first}").json()["allocation"]["shared_with"]
    assert (beside["slowdown"], beside["slowdown_source"]) == (
        pytest.approx(2.5, rel=1e-3),
        "measured",
    )
    with app.state.database.session_scope() as session:
        session.get_one(Job, second).gpus = [1]
    assert client.get(f"/api/v1/jobs/{first}").json()["allocation"]["shared_with"] == []
    said = client.get(f"/api/v1/jobs/{first}/explanation").json()["primary"]["sentence"]
    assert "shares" not in said


def test_a_job_of_another_tenant_on_the_same_gpu_has_no_name(app: FastAPI, jobs: list[str]) -> None:
    with app.state.database.session_scope() as session:
        job = session.get_one(Job, jobs[0])
        sharing = SharedNow(session, session.get_one(Cluster, job.cluster_id))
        (beside,) = sharing.beside(job, Sight({job.id}))
    assert (beside["job_id"], beside["job_name"]) == ("other-1", "another tenant's job")
    assert sharing_words([beside])[0].startswith("It shares a GPU with another tenant's job now:")


# ---- what sharing is declared to cost

TABLE = "victim,partner,gpu_count,slowdown\ncifar10,cifar10,1,1.3\n"


def upload(client: TestClient, name: str, text: str = TABLE) -> str:
    body = {"kind": "interference", "name": name, "files": [{"name": "x.csv", "text": text}]}
    made = client.post("/api/v1/measurements", json=body)
    assert made.status_code == 201, made.text
    found: str = made.json()["id"]
    return found


def test_simulated_jobs_lose_what_the_shipped_table_says_and_commands_a_first_guess(
    client: TestClient,
) -> None:
    assert make(client, name="alone").json()["interference"] is None
    assert make(client, name="both", jobs_per_gpu=2).json()["interference"] == "synthetic"
    local = {"executor": "local", "shape": "cpu=1x2", "jobs_per_gpu": 2}
    assert make(client, name="commands", **local).json()["interference"] == 1.25
    given = make(client, name="given", jobs_per_gpu=2, interference=1.5)
    assert given.json()["interference"] == 1.5


def test_an_uploaded_table_is_named_and_stays_while_a_cluster_declares_it(
    client: TestClient, app: FastAPI
) -> None:
    stored = upload(client, "pairs")
    assert make(client, jobs_per_gpu=2, interference="pairs").json()["interference"] == "pairs"
    assert client.delete(f"/api/v1/measurements/{stored}").status_code == 204
    assert client.get(f"{CLUSTERS}/lab").json()["interference"] == "pairs"
    with app.state.database.session_scope() as session:
        cluster = session.exec(select(Cluster).where(Cluster.name == "lab")).one()
        declared = interference_of(session, cluster)
    assert declared is not None
    job = SharingJob("cifar10", 64)
    assert declared.of_jobs(job, job, 1) == 1.3
    changed = client.patch(
        f"{CLUSTERS}/lab",
        json={"interference": "synthetic"},
        headers={"If-Match": client.get(f"{CLUSTERS}/lab").headers["ETag"]},
    )
    assert changed.json()["interference"] == "synthetic"


@pytest.mark.parametrize("wrong", ["nothing of this name", 0.9, "pairs#v100", "1.25"])
def test_what_is_no_interference_is_refused_at_its_field(client: TestClient, wrong: object) -> None:
    upload(client, "pairs")
    refused = make(client, jobs_per_gpu=2, interference=wrong)
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/interference"]


def test_pairs_of_the_catalog_that_a_table_lacks_are_said_with_the_cluster(
    client: TestClient,
) -> None:
    upload(client, "pairs")
    (note,) = make(client, jobs_per_gpu=2, interference="pairs").json()["notes"]
    assert note.startswith("Its interference lacks 35 of the 36 pairs of the catalog's models:")
    assert "cifar10 beside cifar10" not in note
    for complete in ("synthetic", 1.25):
        made = make(client, name=f"as {complete}", jobs_per_gpu=2, interference=complete)
        assert made.json()["notes"] == []


NO_EFFECT = "jobs_per_gpu 2 and interference have no effect under"


@pytest.mark.parametrize("policy", ["fifo", "sia", "pollux"])
def test_a_policy_that_never_shares_says_that_its_cluster_need_not_allow_it(
    client: TestClient, policy: str
) -> None:
    made = make(client, policy=policy, placer=None, jobs_per_gpu=2).json()
    assert [note for note in made["notes"] if note.startswith(f"{NO_EFFECT} {policy},")]
    for shares in (True, False):
        pairs = {"policy": "gavel", "policy_parameters": {"space_sharing": shares}}
        tag = client.get(f"{CLUSTERS}/lab").headers["ETag"]
        changed = client.patch(f"{CLUSTERS}/lab", json=pairs, headers={"If-Match": tag}).json()
        assert any(NO_EFFECT in note for note in changed["notes"]) is not shares


def test_a_slowdown_without_jobs_that_share_is_said_to_have_no_effect(client: TestClient) -> None:
    (note,) = make(client, policy="sia", placer=None, interference=1.2).json()["notes"]
    assert note == (
        "interference has no effect where a GPU holds one job: give jobs_per_gpu 2 under "
        "gavel (space_sharing), gandiva, sjf-ffs and sjf-bsbf."
    )


def test_a_policy_that_shares_is_told_of_a_cluster_that_does_not(client: TestClient) -> None:
    alone = make(client, name="alone").json()["notes"]
    assert any("sjf-bsbf" in note for note in alone)
    assert make(client, jobs_per_gpu=2).json()["notes"] == []
