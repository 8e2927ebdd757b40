"""What is believed by what jobs reported: who reported it, shown and reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from reporting_agent import Agent, steps
from sqlmodel import select

from backend.accounts.models import Tenant
from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import AttemptRow, GpuScore, Job, StepSample
from backend.settings import Settings

SCORES = "/api/v1/clusters/here/gpu-scores"
RANKS = {"compute_seconds": [0.1, 0.15]}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


@pytest.fixture
def agent(client: TestClient, database: Database, settings: Settings) -> Agent:
    return Agent(client, database, settings)


def of_another_tenant(agent: Agent, name: str, times: list[float]) -> None:
    """Let a job of another tenant compare the same GPUs, as often as counts in full."""
    attempt = agent.another_job(name)
    with agent.database.session_scope() as session:
        tenant = Tenant(name=name)
        session.add(tenant)
        session.flush()
        session.exec(select(Job).where(Job.name == name)).one().tenant_id = tenant.id
    for number in range(1, 4):
        ranks = {"compute_seconds": times}
        answer = agent.report(
            to=attempt, token=agent.token_of(attempt), sequence=number, ranks=ranks
        )
        assert answer.is_success


def listed(client: TestClient) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get(SCORES).json()["items"]
    return items


def test_scores_say_who_reported_them_own_tenants_by_name_and_others_as_a_count(
    agent: Agent, client_as: Callable[..., TestClient]
) -> None:
    for number in range(1, 4):
        assert agent.report(sequence=number, ranks=RANKS).is_success
    of_another_tenant(agent, "blue", [0.1, 0.15])
    of_another_tenant(agent, "red", [0.15, 0.1])
    by_admin = listed(agent.client)
    assert [(one["node"], one["gpu_index"], one["gpu_type"]) for one in by_admin] == [
        ("cpu-0", 0, "cpu"),
        ("cpu-0", 1, "cpu"),
    ]
    assert by_admin[1]["score"] / by_admin[0]["score"] == pytest.approx(1.5)
    assert (by_admin[0]["weight"], by_admin[0]["attempts"]) == (pytest.approx(1.0), 3)
    assert by_admin[0]["reported_by"]["tenants"] == ["blue", "default", "red"]
    viewer = client_as(Role.VIEWER, tenant="blue")
    seen = listed(viewer)[0]["reported_by"]
    assert seen == {"tenants": ["blue"], "other_tenants": 2}
    assert "red" not in viewer.get(SCORES).text


def test_an_administrator_resets_scores_of_a_node_or_of_all_and_it_is_written_down(
    agent: Agent, client_as: Callable[..., TestClient]
) -> None:
    agent.report(ranks=RANKS)
    assert client_as(Role.TENANT_MANAGER).delete(SCORES).status_code == 403
    assert agent.client.delete(SCORES, params={"node_id": "nowhere"}).status_code == 404
    assert agent.client.delete(SCORES, params={"node_id": "cpu-1"}).status_code == 204
    assert len(listed(agent.client)) == 2
    assert agent.client.delete(SCORES, params={"node_id": "cpu-0"}).status_code == 204
    assert listed(agent.client) == []
    agent.report(sequence=2, ranks=RANKS)
    assert len(listed(agent.client)) == 2
    assert agent.client.delete(SCORES).status_code == 204
    assert listed(agent.client) == []
    written = agent.client.get("/api/v1/audit", params={"action": "reset GPU scores"}).json()
    assert [one["before"] for one in written["items"]] == [
        {"cluster": "here", "rows": 2},
        {"cluster": "here", "rows": 2},
        {"cluster": "here", "rows": 0},
    ]


def test_what_was_measured_of_a_job_is_forgotten_and_measured_again(agent: Agent) -> None:
    gradient = {"square": 0.5, "variance": 2.0, "steps": 4, "at_batch_size": 64}
    agent.report(passes=[steps(0.1, 0.2)], gradient=gradient, memory={"out_of_memory_at": 64})
    belief = f"/api/v1/jobs/{agent.job_id}/belief"
    assert agent.client.get(belief).json()["gradient"] is not None
    assert agent.client.delete(belief).status_code == 204
    shown = agent.client.get(belief).json()
    assert (shown["gradient"], shown["memory"]) == (None, [])
    with agent.database.session_scope(writes=False) as session:
        assert session.exec(select(StepSample)).all() == []
    assert agent.report(sequence=2, passes=[steps(0.1, 0.2)]).is_success
    (row,) = agent.client.get("/api/v1/audit", params={"action": "reset belief"}).json()["items"]
    assert (row["target_id"], row["before"]) == (agent.job_id, {"rows": 3})


def test_scores_of_a_node_that_goes_go_with_it(agent: Agent) -> None:
    agent.change(gpus_by_node={"cpu-1": [0, 1]})
    agent.report(ranks=RANKS)
    node = agent.client.get("/api/v1/clusters/here/nodes").json()["items"][-1]
    path = f"/api/v1/clusters/here/nodes/{node['id']}"
    agent.change(state="ended")
    assert agent.client.post(f"{path}/actions/drain").status_code == 200
    assert agent.client.delete(path).status_code == 204
    with agent.database.session_scope(writes=False) as session:
        assert session.exec(select(GpuScore)).all() == []


EVIDENCE = "/api/v1/clusters/here/evidence"


def of_models(client: TestClient) -> dict[tuple[str, str | None], tuple[int, int, int]]:
    items = client.get(EVIDENCE).json()["items"]
    return {
        (one["model"], one["tenant"]): (one["beliefs"], one["gradients"], one["history"])
        for one in items
    }


def test_what_jobs_reported_of_models_is_listed_and_reset_by_tenant_and_kind(
    agent: Agent, client_as: Callable[..., TestClient]
) -> None:
    gradient = {"square": 0.5, "variance": 2.0, "steps": 4, "at_batch_size": 64}
    agent.report(passes=[steps(0.1, 0.2)], gradient=gradient)
    of_another_tenant(agent, "blue", [0.1, 0.15])
    blue = agent.another_job("script")
    with agent.database.session_scope() as session:
        tenant = session.exec(select(Tenant).where(Tenant.name == "blue")).one()
        job = session.get_one(Job, session.get_one(AttemptRow, blue).job_id)
        job.tenant_id = tenant.id
        job.state, job.finished_seconds = "succeeded", 0.5
    agent.report(to=blue, token=agent.token_of(blue), passes=[steps(0.1)], gradient=gradient)
    client, viewer = agent.client, client_as(Role.VIEWER, tenant="blue")
    assert of_models(client) == {("script", "blue"): (1, 1, 1), ("script", "default"): (1, 1, 0)}
    assert of_models(viewer) == {("script", "blue"): (1, 1, 1)}
    assert client.put(f"{SHARED}/script").is_success
    assert of_models(viewer) == {("script", None): (2, 2, 1)}
    (row,) = viewer.get(EVIDENCE).json()["items"]
    assert row["reported_by"] == {"tenants": ["blue"], "other_tenants": 1}
    assert client.delete(f"{SHARED}/script").is_success

    assert viewer.delete(f"{EVIDENCE}/history").status_code == 403
    assert client.delete(f"{EVIDENCE}/nonsense").status_code == 422
    assert client.delete(f"{EVIDENCE}/history", params={"tenant": "nobody"}).status_code == 404
    of_blue = {"tenant": "blue", "model": "script"}
    for what, left in (
        ("gradients", (1, 0, 1)),
        ("history", (1, 0, 0)),
    ):
        assert client.delete(f"{EVIDENCE}/{what}", params=of_blue).status_code == 204
        assert of_models(client)["script", "blue"] == left
    assert client.delete(f"{EVIDENCE}/beliefs").status_code == 204
    assert of_models(client) == {("script", "default"): (0, 1, 0)}
    (written,) = client.get("/api/v1/audit", params={"action": "reset gradients"}).json()["items"]
    assert written["before"] == {"cluster": "here", **of_blue, "rows": 1}


SHARED = "/api/v1/shared-models"


def test_an_administrator_says_which_models_tenants_share_and_it_is_written_down(
    agent: Agent, client_as: Callable[..., TestClient]
) -> None:
    client, manager = agent.client, client_as(Role.TENANT_MANAGER)
    assert manager.put(f"{SHARED}/resnet").status_code == 403
    assert client.put(f"{SHARED}/%20resnet").status_code == 422
    for _ in range(2):
        assert client.put(f"{SHARED}/meta/llama").json()["model"] == "meta/llama"
    assert client.put(f"{SHARED}/bert").is_success
    names = [one["model"] for one in manager.get(SHARED).json()["items"]]
    assert names == ["bert", "meta/llama"]
    assert manager.delete(f"{SHARED}/bert").status_code == 403
    assert client.delete(f"{SHARED}/bert").status_code == 204
    assert client.delete(f"{SHARED}/bert").status_code == 404
    written = client.get("/api/v1/audit", params={"action": "share model"}).json()["items"]
    assert [one["after"] for one in written] == [
        {"model": "bert", "shared": True},
        {"model": "meta/llama", "shared": True},
    ]
    action = {"action": "stop sharing model"}
    (row,) = client.get("/api/v1/audit", params=action).json()["items"]
    assert (row["before"], row["after"]) == (
        {"model": "bert", "shared": True},
        {"model": "bert", "shared": False},
    )
