"""Simulations under quotas: those of the request, or of the cluster that is played again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.database import Database
from backend.models import Tenant
from maat.vocabulary import LEAST_WEIGHT

MakeClient = Callable[..., TestClient]

SIMULATIONS, SWEEPS = "/api/v1/simulations", "/api/v1/sweeps"
QUOTAS = "/api/v1/clusters/demo/quotas"
HISTORY = {"kind": "cluster", "cluster_id": "demo"}
CSV = {
    "kind": "csv",
    "text": "name,time,application,num_replicas,batch_size,tenant\nfirst,0,bert,1,24,vision\n",
}
ASKED = {"name": "s", "cluster": "t4=2x4,a100=1x8", "runs": [{}]}
VISION = {"tenant": "vision", "weight": 2.0, "guaranteed": {"a100": 4}, "ceiling": {"a100": 6}}


def ask(client: TestClient, trace: dict[str, Any], **more: Any) -> Any:
    return client.post(SIMULATIONS, json={**ASKED, "traces": [trace], **more})


@pytest.mark.parametrize(
    ("quotas", "pointer"),
    [
        ([{**VISION, "guaranteed": {"h100": 1}}], "/quotas/0"),
        ([{**VISION, "guaranteed": {"a100": 9}, "ceiling": {}}], "/quotas/0"),
        ([{**VISION, "guaranteed": {"a100": 7}}], "/quotas/0"),
        ([VISION, VISION], "/quotas"),
        ([{"tenant": t, "guaranteed": {"a100": 5}} for t in ("a", "b")], "/quotas"),
        ([{**VISION, "weight": 0}], "/quotas/0/weight"),
        ([{**VISION, "ceiling": {"a100": -1}}], "/quotas/0/ceiling/a100"),
    ],
)
def test_quotas_that_cannot_be_kept_are_refused(
    refusing: TestClient, quotas: list[dict[str, Any]], pointer: str
) -> None:
    answer = ask(refusing, CSV, quotas=quotas)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_quotas_of_the_request_are_kept_with_it(client: TestClient) -> None:
    made = ask(client, CSV, quotas=[VISION])
    assert made.status_code == 202, made.text
    assert made.json()["request"]["quotas"] == [VISION]
    assert ask(client, CSV).json()["request"]["quotas"] is None


@pytest.fixture
def bounded(client: TestClient, client_as: MakeClient) -> TestClient:
    """Jobs of two tenants have been on the cluster, and both have quotas there."""
    other = client_as(Role.SUBMITTER, tenant="vision")
    for who in (client, other):
        who.post("/api/v1/jobs", json={"name": "train", "model": "cifar10"})
    for path, body in (
        ("vision/a100", {"guaranteed": 4, "ceiling": 6}),
        ("default/a100", {"guaranteed": 2, "ceiling": 3}),
        ("default/rtx", {"guaranteed": 9}),
    ):
        assert client.put(f"{QUOTAS}/{path}", json=body).status_code == 200
    client.patch("/api/v1/tenants/vision", json={"weight": 2.0}, headers={"If-Match": '"1"'})
    return client


def test_a_history_is_played_again_under_the_quotas_of_its_cluster(bounded: TestClient) -> None:
    default = {
        "tenant": "default",
        "weight": 1.0,
        "guaranteed": {"a100": 2},
        "ceiling": {"a100": 3},
    }
    made = ask(bounded, HISTORY).json()
    assert made["request"]["quotas"] == [default, VISION]  # the simulated cluster has no rtx
    smaller = ask(bounded, HISTORY, cluster="a100=1x4").json()
    assert [one["guaranteed"] for one in smaller["request"]["quotas"]] == [{}, {}]
    assert [one["ceiling"] for one in smaller["request"]["quotas"]] == [{"a100": 3}, {"a100": 6}]
    assert ask(bounded, HISTORY, quotas=[]).json()["request"]["quotas"] == []
    assert ask(bounded, HISTORY, quotas=[VISION]).json()["request"]["quotas"] == [VISION]
    sweep = {
        "name": "s", "cluster": "t4=2x4,a100=1x8", "trace": HISTORY, "policy": "fifo",
        "vary": [{"name": "round_seconds", "values": [60]}],
    }  # fmt: skip
    swept = bounded.post(SWEEPS, json=sweep)
    assert swept.json()["request"]["quotas"] == [default, VISION]


def test_a_weight_from_before_its_lower_bound_is_played_at_the_bound(
    bounded: TestClient, database: Database
) -> None:
    with database.session_scope() as session:
        session.exec(select(Tenant).where(Tenant.name == "vision")).one().weight = 1e-308
    assert ask(bounded, HISTORY).json()["request"]["quotas"][1]["weight"] == LEAST_WEIGHT


def test_a_tenant_sees_of_them_its_own(bounded: TestClient, client_as: MakeClient) -> None:
    mine = client_as(Role.SUBMITTER, tenant="vision", name="vic")
    made = ask(mine, HISTORY).json()
    assert made["request"]["quotas"] == [VISION]
    whole = bounded.get(f"{SIMULATIONS}/{made['id']}").json()
    assert [one["tenant"] for one in whole["request"]["quotas"]] == ["default", "vision"]
