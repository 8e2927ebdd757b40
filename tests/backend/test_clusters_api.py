"""Clusters and nodes: making, changing with ETags, draining, what is free where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.permissions import Role
from backend.clocktime import cluster_seconds, this_moment
from backend.clusters.service import add_found_nodes
from backend.database import Database
from backend.models import Cluster, Job, Node
from maat.api.clusters import NodeBody
from maat.vocabulary import ExecutorKind

CLUSTERS = "/api/v1/clusters"
DECLARING = [kind for kind in ExecutorKind if kind is not ExecutorKind.SLURM]
DEMO = f"{CLUSTERS}/demo"


def test_the_demo_cluster_is_what_it_is_said_to_be(client: TestClient) -> None:
    cluster = client.get(DEMO).json()
    assert (cluster["policy"], cluster["placer"], cluster["round_seconds"], cluster["speed"]) == (
        "sia",
        "whole-node",
        60.0,
        30.0,
    )
    state = client.get(f"{DEMO}/state").json()
    assert state["capacity_by_type"] == {"t4": 24, "rtx": 24, "a100": 16}
    assert len(state["gpus"]) == 64
    assert state["round_number"] is None


def test_a_cluster_may_be_made_by_shape_or_node_by_node(client: TestClient) -> None:
    shaped = client.post(
        CLUSTERS, json={"name": "shaped", "shape": "t4=2x4,a100=1x8", "policy": "fifo"}
    )
    nodes = [
        {"gpu_type": "t4", "gpu_count": 4, "count": 2},
        {"gpu_type": "a100", "gpu_count": 8, "name": "big", "memory_gib": 40.0},
    ]
    listed = client.post(
        CLUSTERS, json={"name": "listed", "nodes": nodes, "round_seconds": 10, "speed": 2.5}
    )
    assert (shaped.status_code, listed.status_code) == (201, 201)
    assert shaped.json()["round_seconds"] > 0
    assert shaped.headers["ETag"] == '"1"'
    names = [node["name"] for node in client.get(f"{CLUSTERS}/listed/nodes").json()["items"]]
    assert names == ["t4-0", "t4-1", "big"]
    assert [c["name"] for c in client.get(CLUSTERS).json()["items"]] == ["demo", "shaped", "listed"]
    assert client.get(listed.headers["Location"]).json()["speed"] == 2.5


def test_a_cluster_has_the_placer_of_its_policy_unless_one_is_named(client: TestClient) -> None:
    def made(**given: object) -> str:
        name = f"c{len(client.get(CLUSTERS).json()['items'])}"
        body = {"name": name, "shape": "t4=1x4", **given}
        return str(client.post(CLUSTERS, json=body).json()["placer"])

    assert made(policy="pollux") == "as-decided"
    assert made(policy="fifo") == "packed-sticky"
    assert made() == "whole-node"
    assert made(policy="pollux", placer="whole-node") == "whole-node"
    assert made(policy="gavel", placer=None) == "lowest-numbered"


def test_what_a_cluster_lacks_is_told_where_it_is_made_changed_and_shown(
    client: TestClient,
) -> None:
    def made(name: str, **given: object) -> list[str]:
        body = {"name": name, "shape": "t4=1x4", **given}
        notes = client.post(CLUSTERS, json=body).json()["notes"]
        assert client.get(f"{CLUSTERS}/{name}").json()["notes"] == notes
        return list(notes)

    assert made("plain") == []
    for policy in ("sjf-bsbf", "sjf-ffs", "gandiva"):
        (note,) = made(policy, policy=policy)
        assert note.startswith(f"The policy {policy} lets jobs share GPUs; here a GPU holds one")
        assert "give jobs_per_gpu 2" in note
    for given, lacking in (({}, 0), ({"space_sharing": False}, 0), ({"space_sharing": True}, 1)):
        notes = made(f"gavel-{given}", policy="gavel", policy_parameters=given)
        assert [note.partition(";")[0] for note in notes] == [
            "space_sharing of gavel lets jobs share GPUs"
        ] * lacking
    pairs = {"policy": "gavel", "policy_parameters": {"space_sharing": True}, "jobs_per_gpu": 2}
    assert made("pairs", **pairs) == []
    (note,) = made("scored", placer="pal")
    assert note.startswith("The placer pal weighs how slow GPUs are")
    assert made("wide", shape="t4=1x4,p100=1x8,k80=1x1") == [
        "No model of the catalog runs on k80: its 1 GPU stays idle.",
        "No model of the catalog runs on p100: its 8 GPUs stay idle.",
    ]
    assert made("here", shape="slots=1x4", executor="local") == []
    changed = client.patch(DEMO, json={"policy": "sjf-bsbf"}, headers={"If-Match": "*"}).json()
    assert "lets jobs share GPUs" in changed["notes"][0]


def test_another_policy_brings_its_placer_and_the_answer_and_the_audit_name_it(
    client: TestClient,
) -> None:
    headers = {"If-Match": "*"}
    changed = client.patch(DEMO, json={"policy": "pollux"}, headers=headers).json()
    assert (changed["policy"], changed["placer"]) == ("pollux", "as-decided")
    record = client.get("/api/v1/audit").json()["items"][0]
    assert (record["before"]["placer"], record["after"]["placer"]) == ("whole-node", "as-decided")
    named = {"policy": "fifo", "placer": "pal"}
    assert client.patch(DEMO, json=named, headers=headers).json()["placer"] == "pal"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"shape": "t4=0x4"}, "/shape"),
    ({"shape": "t4=1x0"}, "/shape"),
    ({"shape": "lots of GPUs"}, "/shape"),
    ({"shape": "t4=999999999x64"}, "/shape"),
    ({"nodes": []}, "/nodes"),
    ({}, "/nodes"),
    ({"shape": "t4=1x4", "nodes": [{"gpu_type": "t4", "gpu_count": 4}]}, "/nodes"),
    ({"nodes": [{"gpu_type": "t4", "gpu_count": 0}]}, "/nodes/0/gpu_count"),
    ({"nodes": [{"gpu_type": "T4 !", "gpu_count": 4}]}, "/nodes"),
    (
        {
            "nodes": [
                {"gpu_type": "t4", "gpu_count": 4, "name": "a"},
                {"gpu_type": "t4", "gpu_count": 4, "name": "a"},
            ]
        },
        "/nodes",
    ),
    ({"shape": "t4=1x4", "policy": "magic"}, "/policy"),
    ({"shape": "t4=1x4", "policy_parameters": {"p": 1e6}}, "/policy_parameters/p"),
    ({"shape": "t4=1x4", "policy_parameters": {"luck": 1}}, "/policy_parameters/luck"),
    ({"shape": "t4=1x4,foo=6x4"}, "/shape"),
    ({"nodes": [{"gpu_type": "dgx-ext", "gpu_count": 4}]}, "/nodes"),
    ({"shape": "t4=1x4", "placer": "anywhere"}, "/placer"),
    ({"shape": "t4=1x4", "placer_parameters": {"luck": 1}}, "/placer_parameters/luck"),
    ({"shape": "t4=1x4", "executor": "magic"}, "/executor"),
    ({"shape": "t4=1x4", "round_seconds": 0}, "/round_seconds"),
    (
        {"shape": "t4=1x4", "policy_parameters": {"round_seconds": 60}},
        "/policy_parameters/round_seconds",
    ),
    ({"shape": "t4=1x4", "speed": -1}, "/speed"),
    ({"shape": "t4=1x4", "speed": 1e-300}, "/speed"),
    ({"shape": "t4=1x4", "name": "a/b"}, "/name"),
    ({"shape": "t4=1x4", "name": ".."}, "/name"),
    ({"shape": "t4=1x4", "name": "a\u202eb"}, "/name"),
    ({"shape": "t4=1x4", "name": "clu_01kaf3q8n5x7d2m9v4c6b1t0zs"}, "/name"),
    ({"nodes": [{"gpu_type": "t4", "gpu_count": 4, "name": "a/b"}]}, "/nodes/0/name"),
]


def test_a_cluster_has_the_executor_that_it_was_made_with_and_unknown_ones_are_refused(
    client: TestClient,
) -> None:
    new = {"shape": "t4=1x4"}
    chosen = [("default", None), *((kind.value, kind.value) for kind in DECLARING)]
    for name, executor in chosen:
        given = {} if executor is None else {"executor": executor}
        made = client.post(CLUSTERS, json={"name": name} | new | given)
        assert (made.status_code, made.json()["executor"]) == (201, executor or "simulated")
    refused = client.post(CLUSTERS, json={"name": "new", "executor": "magic"} | new)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    (error,) = refused.json()["errors"]
    assert (error["pointer"], error["value"]) == ("/executor", "magic")
    assert error["remedy"] == "Use one of 'simulated', 'local' or 'slurm'."


def test_a_cluster_of_slurm_has_the_nodes_of_slurm_and_no_others(
    client: TestClient, tmp_path: Path
) -> None:
    parameters = {"shared_dir": str(tmp_path), "partition": "gpu"}
    body = {"name": "site", "executor": "slurm", "executor_parameters": parameters}
    made = client.post(CLUSTERS, json=body)
    assert made.status_code == 201, made.text
    assert made.json()["executor_parameters"] == parameters
    assert client.get(f"{CLUSTERS}/site/nodes").json()["items"] == []
    assert client.get(f"{CLUSTERS}/site/state").json()["gpus"] == []
    new = {"nodes": [{"gpu_type": "t4", "gpu_count": 4}]}
    refused = client.post(f"{CLUSTERS}/site/nodes", json=new)
    assert (refused.status_code, "come from Slurm" in refused.text) == (409, True)


def test_a_cluster_of_this_machine_without_a_shape_has_its_gpus(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    body = {"name": "here", "executor": "local"}
    refused = client.post(CLUSTERS, json=body)
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["pointer"]) == (422, "/shape")
    assert error["remedy"] == "For slots without GPUs write for example shape: cpu=1x4."
    (tmp_path / "nvidia-smi").touch(mode=0o755)
    made = client.post(CLUSTERS, json=body)
    assert made.status_code == 201, made.text
    assert made.json()["executor_parameters"] == {"gpus": "found"}
    assert client.get(f"{CLUSTERS}/here/nodes").json()["items"] == []
    new = {"nodes": [{"gpu_type": "t4", "gpu_count": 4}]}
    refused = client.post(f"{CLUSTERS}/here/nodes", json=new)
    assert (refused.status_code, "GPUs of this machine" in refused.text) == (409, True)


def test_single_gpus_of_a_node_of_slurm_cannot_be_drained(
    client: TestClient, database: Database, tmp_path: Path
) -> None:
    parameters = {"shared_dir": str(tmp_path)}
    body = {"name": "site", "executor": "slurm", "executor_parameters": parameters}
    cluster_id = client.post(CLUSTERS, json=body).json()["id"]
    with database.session_scope() as session:
        node = NodeBody(gpu_type="t4", gpu_count=4, name="t4-0")
        add_found_nodes(session, cluster_id, [node])
    address, match = f"{CLUSTERS}/site/nodes/t4-0", {"If-Match": '"1"'}
    refused = client.patch(address, json={"drained_gpus": [1]}, headers=match)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/drained_gpus"
    whole = client.patch(address, json={"drained_gpus": [0, 1, 2, 3]}, headers=match)
    assert whole.status_code == 200, whole.text


SLURM_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"executor": "slurm"}, "/executor_parameters"),
    ({"executor": "slurm", "shape": "t4=1x4"}, "/shape"),
    ({"executor": "slurm", "nodes": [{"gpu_type": "t4", "gpu_count": 4}]}, "/nodes"),
    ({"executor": "local", "shape": "t4=1x4", "executor_parameters": {}}, "/executor_parameters"),
    (
        {"executor": "local", "shape": "t4=1x4", "executor_parameters": {"shared_dir": "/tmp"}},
        "/executor_parameters",
    ),
    *(
        ({"executor": "slurm", "executor_parameters": parameters}, f"/executor_parameters/{field}")
        for parameters, field in (
            ({}, "shared_dir"),
            ({"shared_dir": "relative"}, "shared_dir"),
            ({"shared_dir": "/nowhere/at/all"}, "shared_dir"),
            ({"shared_dir": "/etc/hostname"}, "shared_dir"),
            ({"shared_dir": "/proc"}, "shared_dir"),
            ({"shared_dir": "/a%j"}, "shared_dir"),
            ({"shared_dir": "/tmp", "partition": "a b"}, "partition"),
            ({"shared_dir": "/tmp", "partition": "--wrap=x"}, "partition"),
            ({"shared_dir": "/tmp", "partition": "a\nb"}, "partition"),
            ({"shared_dir": "/tmp", "account": ""}, "account"),
            ({"shared_dir": "/tmp", "conf": "/nowhere/slurm.conf"}, "conf"),
            ({"shared_dir": "/tmp", "python": "python3"}, "python"),
            ({"shared_dir": "/tmp", "cpus_per_gpu": 0}, "cpus_per_gpu"),
            ({"shared_dir": "/tmp", "memory_gib_per_gpu": -1.0}, "memory_gib_per_gpu"),
            ({"shared_dir": "/tmp", "queue": "gpu"}, "queue"),
        )
    ),
]


@pytest.mark.parametrize(("body", "pointer"), SLURM_REFUSED, ids=str)
def test_a_cluster_of_slurm_that_makes_no_sense_is_refused_by_field(
    refusing: TestClient, body: dict[str, Any], pointer: str
) -> None:
    answer = refusing.post(CLUSTERS, json={"name": "new"} | body)
    assert answer.status_code == 422, answer.text
    assert any(error["pointer"].endswith(pointer) for error in answer.json()["errors"])
    assert all(error["remedy"] for error in answer.json()["errors"])
    assert refusing.get(f"{CLUSTERS}/new").status_code == 404


def test_the_schema_offers_the_executors_to_forms(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    field = schemas["ClusterBody"]["properties"]["executor"]
    assert field["default"] == "simulated"
    assert schemas["ExecutorKind"]["enum"] == [kind.value for kind in ExecutorKind]


@pytest.mark.parametrize(("body", "pointer"), REFUSED, ids=str)
def test_a_cluster_that_makes_no_sense_is_refused_by_field(
    refusing: TestClient, body: dict[str, Any], pointer: str
) -> None:
    answer = refusing.post(CLUSTERS, json={"name": "new"} | body)
    assert answer.status_code == 422, answer.text
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    assert refusing.get(f"{CLUSTERS}/new").status_code == 404


def test_a_name_stands_for_one_cluster(client: TestClient) -> None:
    assert client.post(CLUSTERS, json={"name": "demo", "shape": "t4=1x4"}).status_code == 409


def test_a_change_must_say_which_version_it_changes(client: TestClient) -> None:
    tag = client.get(DEMO).headers["ETag"]
    assert client.patch(DEMO, json={"policy": "fifo"}).status_code == 428
    changed = client.patch(DEMO, json={"policy": "fifo"}, headers={"If-Match": tag})
    assert changed.json()["policy"] == "fifo"
    stale = client.patch(DEMO, json={"policy": "srtf"}, headers={"If-Match": tag})
    assert stale.status_code == 412
    assert stale.headers["ETag"] == changed.headers["ETag"]
    assert client.get(DEMO).json()["policy"] == "fifo"


def test_parameters_of_a_policy_are_not_kept_for_another(client: TestClient) -> None:
    headers = {"If-Match": "*"}
    kept = client.patch(DEMO, json={"policy_parameters": {"p": -1.0}}, headers=headers).json()
    assert kept["policy_parameters"] == {"p": -1.0}
    assert (
        client.patch(DEMO, json={"policy": "fifo"}, headers=headers).json()["policy_parameters"]
        == {}
    )
    refused = client.patch(DEMO, json={"policy_parameters": {"p": -1.0}}, headers=headers)
    assert refused.status_code == 422


def test_a_change_to_what_is_so_already_changes_nothing(client: TestClient) -> None:
    before = client.get(DEMO)
    now = before.json()
    same = {name: now[name] for name in ("name", "policy", "placer", "round_seconds", "speed")}
    given = {"policy_parameters": now["policy_parameters"], "keep_rounds": now["keep_rounds"]}
    headers = {"If-Match": before.headers["ETag"]}
    for changes in ({}, same, same | given):
        answer = client.patch(DEMO, json=changes, headers=headers)
        assert answer.status_code == 200
        assert answer.headers["ETag"] == before.headers["ETag"]
        assert answer.json()["version"] == now["version"]
    node = client.get(f"{DEMO}/nodes/t4-0")
    answer = client.patch(
        f"{DEMO}/nodes/t4-0", json={"drained_gpus": []}, headers={"If-Match": node.headers["ETag"]}
    )
    assert answer.headers["ETag"] == node.headers["ETag"]
    changed = client.patch(DEMO, json=same | {"speed": now["speed"] + 1}, headers=headers)
    assert changed.json()["version"] == now["version"] + 1


def test_a_cluster_that_had_a_name_of_an_earlier_version_is_still_read(
    client: TestClient, database: Database
) -> None:
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster)).one()
        cluster.name = "a/b"
        session.add(cluster)
    (listed,) = client.get(CLUSTERS).json()["items"]
    assert listed["name"] == "a/b"
    renamed = client.patch(
        f"{CLUSTERS}/{listed['id']}", json={"name": "ab"}, headers={"If-Match": "*"}
    )
    assert renamed.json()["name"] == "ab"


ACTIONS = ("/actions/pause", "/actions/resume", "/nodes/t4-0/actions/drain")


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_refuses_a_body_that_it_would_not_read(client: TestClient, action: str) -> None:
    before = client.get(DEMO).json()["version"]
    refused = client.post(DEMO + action, json={"until": 5, "a/b": 1})
    assert refused.status_code == 422
    errors = refused.json()["errors"]
    assert [error["pointer"] for error in errors] == ["/until", "/a~1b"]
    assert errors[0]["remedy"] == "Leave it out, or send {}."
    for content, status in (("[1]", 422), ("null", 422), ("{", 400), (" ", 200), ("{}", 200)):
        answer = client.post(
            DEMO + action, content=content, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == status, content
        if status != 200:
            assert client.get(DEMO).json()["version"] == before
    assert client.post(DEMO + action).status_code == 200


def test_every_other_action_refuses_a_body_too(client: TestClient) -> None:
    job = client.post("/api/v1/jobs", json={"name": "train", "model": "bert"}).json()["id"]
    refused = client.post(f"/api/v1/jobs/{job}/actions/cancel", json={"reason": "late"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/reason")
    assert client.get(f"/api/v1/jobs/{job}").json()["state"] == "submitted"


def test_speed_and_pauses_change_how_time_passes_and_not_what_it_is(
    client: TestClient, database: Database
) -> None:
    def stored() -> Cluster:
        with database.session_scope(writes=False) as session:
            return session.exec(select(Cluster)).one()

    before = cluster_seconds(stored(), this_moment())
    client.patch(DEMO, json={"speed": 0.001}, headers={"If-Match": "*"})
    slow = cluster_seconds(stored(), this_moment())
    assert before <= slow <= before + 30 * 60
    paused = client.post(f"{DEMO}/actions/pause").json()
    version = client.post(f"{DEMO}/actions/pause").json()["version"]
    assert (paused["paused"], version) == (True, paused["version"])
    assert client.get(DEMO).json()["now"] == paused["now"]
    resumed = client.post(f"{DEMO}/actions/resume").json()
    assert resumed["paused"] is False
    assert cluster_seconds(stored(), this_moment()) == pytest.approx(
        stored().anchor_seconds, abs=1.0
    )


def test_draining_takes_gpus_out_of_the_capacity_and_restoring_gives_them_back(
    client: TestClient,
) -> None:
    node = f"{DEMO}/nodes/t4-0"
    assert client.post(f"{node}/actions/drain").json()["drained_gpus"] == [0, 1, 2, 3]
    state = client.get(f"{DEMO}/state").json()
    assert state["capacity_by_type"]["t4"] == 20
    assert [gpu["drained"] for gpu in state["gpus"][:5]] == [True] * 4 + [False]
    assert client.post(f"{node}/actions/restore").json()["drained_gpus"] == []
    assert client.get(f"{DEMO}/state").json()["capacity_by_type"]["t4"] == 24


def test_single_gpus_are_drained_under_an_etag(client: TestClient) -> None:
    node = f"{DEMO}/nodes/a100-1"
    tag = client.get(node).headers["ETag"]
    assert client.patch(node, json={"drained_gpus": [1]}).status_code == 428
    assert client.patch(node, json={"drained_gpus": [3, 1, 3]}, headers={"If-Match": tag}).json()[
        "drained_gpus"
    ] == [1, 3]
    assert (
        client.patch(node, json={"drained_gpus": []}, headers={"If-Match": tag}).status_code == 412
    )
    assert (
        client.patch(node, json={"drained_gpus": [8]}, headers={"If-Match": "*"}).status_code == 422
    )
    assert client.get(node).json()["drained_gpus"] == [1, 3]


def test_nodes_are_added_behind_the_others(client: TestClient) -> None:
    added = client.post(
        f"{DEMO}/nodes", json={"nodes": [{"gpu_type": "t4", "gpu_count": 4, "count": 2}]}
    )
    assert [node["name"] for node in added.json()["items"]] == ["t4-6", "t4-7"]
    unknown = client.post(f"{DEMO}/nodes", json={"nodes": [{"gpu_type": "aws", "gpu_count": 4}]})
    assert unknown.status_code == 422
    assert "Did you mean t4?" in unknown.json()["errors"][0]["remedy"]
    gpus = client.get(f"{DEMO}/state").json()["gpus"]
    assert [gpu["gpu"] for gpu in gpus] == list(range(72))
    assert gpus[64]["node"] == "t4-6"
    clash = client.post(
        f"{DEMO}/nodes", json={"nodes": [{"gpu_type": "t4", "gpu_count": 4, "name": "rtx-0"}]}
    )
    assert clash.status_code == 422


def test_a_node_goes_only_when_it_is_last_drained_and_idle(
    client: TestClient, database: Database, submit: Callable[..., dict[str, Any]]
) -> None:
    first, last = f"{DEMO}/nodes/t4-0", f"{DEMO}/nodes/a100-1"
    assert client.delete(first).status_code == 409
    assert client.delete(last).status_code == 409
    client.post(f"{last}/actions/drain")
    job = submit()
    with database.session_scope() as session:
        session.get_one(Job, job["id"]).gpus = [63]
    assert "still holds" in client.delete(last).json()["detail"]
    with database.session_scope() as session:
        session.get_one(Job, job["id"]).gpus = None
    assert client.delete(last).status_code == 204
    assert client.get(last).status_code == 404
    assert len(client.get(f"{DEMO}/state").json()["gpus"]) == 56


def test_the_state_says_which_job_holds_which_gpu_and_what_is_free(
    client: TestClient,
    database: Database,
    submit: Callable[..., dict[str, Any]],
    client_as: Callable[..., TestClient],
) -> None:
    job = submit(name="holder")
    with database.session_scope() as session:
        row = session.get_one(Job, job["id"])
        row.state, row.gpu_type, row.gpus = "running", "t4", [0, 1, 4]
        row.batch = {"total_batch_size": 96, "per_gpu_batch_size": 32, "accumulation_steps": 0}
    state = client.get(f"{DEMO}/state").json()
    assert [gpu["job_name"] for gpu in state["gpus"][:6]] == [
        "holder",
        "holder",
        None,
        None,
        "holder",
        None,
    ]
    assert (
        state["used_by_type"]["t4"],
        state["free_by_type"]["t4"],
        state["largest_free_on_one_node"]["t4"],
    ) == (3, 21, 4)
    assert [room["free_gpus"] for room in state["free_gpus_by_node"][:3]] == [2, 3, 4]
    allocation = client.get(f"/api/v1/jobs/{job['id']}").json()["allocation"]
    assert (
        allocation["gpu_count"],
        allocation["node_count"],
        allocation["batch"]["total_batch_size"],
    ) == (3, 2, 96)
    seen = client_as(Role.VIEWER, tenant="other").get(f"{DEMO}/state").json()
    assert (seen["gpus"][0]["held"], seen["gpus"][0]["job_id"], seen["gpus"][0]["tenant"]) == (
        True,
        "other-1",
        None,
    )
    assert seen["gpus"][0]["job_name"] == "another tenant's job"
    assert seen["used_by_type"] == state["used_by_type"]


def test_a_node_that_cannot_be_used_is_not_free_and_says_why(
    client: TestClient, database: Database
) -> None:
    before = client.get(f"{DEMO}/state").json()
    assert before["faults"] == {}
    (name, *_) = (room["node"] for room in before["free_gpus_by_node"] if room["gpu_type"] == "t4")
    with database.session_scope() as session:
        node = session.exec(select(Node).where(Node.name == name)).one()
        node.fault = "It is down."
        session.add(node)
    after = client.get(f"{DEMO}/state").json()
    assert after["faults"] == {name: "It is down."}
    assert before["free_by_type"]["t4"] - after["free_by_type"]["t4"] == 4
    assert before["capacity_by_type"]["t4"] - after["capacity_by_type"]["t4"] == 4
