"""Tests of sweeps in the API: points are checked before storing, and found by their content."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from sqlmodel import col, func, select

from backend.accounts.permissions import Role
from backend.columns import pack_json
from backend.database import Database
from backend.models import Operation, Sweep, SweepMember, SweepPoint

SWEEPS, OPERATIONS = "/api/v1/sweeps", "/api/v1/operations"
GENERATED = {"kind": "generated", "family": "philly", "jobs": 3, "hours": 1}
CSV = (
    "name,time,application,num_replicas,batch_size\ncifar-0,0,cifar10,2,512\nbert-1,60,bert,1,24\n"
)
FIGURES = {"avg_jct_hours": 0.5, "makespan_hours": 2.0}


def body(**fields: Any) -> dict[str, Any]:
    vary = [{"name": "p", "values": [-1, 0.5]}]
    return {
        "name": "fairness",
        "trace": GENERATED,
        "cluster": "t4=6x4,a100=2x8",
        "vary": vary,
        "seeds": [0, 1],
    } | fields


def end_points(database: Database, *keys: str) -> None:
    values = {"state": "succeeded", "figures": FIGURES}
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(SweepPoint).where(col(SweepPoint.key).in_(keys)).values(**values)
        )


def test_a_sweep_is_an_operation_and_every_point_is_sent_as_a_task_of_its_own(
    client: TestClient, queue: Any
) -> None:
    answer = client.post(SWEEPS, json=body())
    sweep = answer.json()
    assert answer.status_code == 202, answer.text
    assert [(point["settings"], point["seed"], point["state"]) for point in sweep["points"]] == [
        ({"p": p}, seed, "queued") for p in (-1, 0.5) for seed in (0, 1)
    ]
    assert queue.sent == [("maat.play_next_run",)]
    assert sweep["axes"] == [
        {
            "name": "p",
            "title": "Fairness power p",
            "unit": None,
            "logarithmic": False,
            "values": [-1, 0.5],
        }
    ]
    assert answer.headers["Location"] == f"{OPERATIONS}/{sweep['operation_id']}"
    operation = client.get(answer.headers["Location"]).json()
    assert (operation["kind"], operation["state"], operation["done"], operation["total"]) == (
        "sweep",
        "queued",
        0,
        4,
    )
    assert client.get(operation["result_url"]).json() == sweep


def test_an_axis_has_the_values_that_its_points_are_found_by_however_they_were_written(
    client: TestClient,
) -> None:
    vary = [
        {"name": "policy", "values": [" sia", "fifo "]},
        {"name": "round_seconds", "values": ["60", 120]},
    ]
    sweep = client.post(SWEEPS, json=body(vary=vary, seeds=[0])).json()
    policies, seconds = (axis["values"] for axis in sweep["axes"])
    assert (policies, seconds) == (["sia", "fifo"], [60, 120])
    assert [list(point["settings"].values()) for point in sweep["points"]] == [
        [p, s] for p in policies for s in seconds
    ]


def test_what_all_points_are_simulated_under_is_part_of_their_content(client: TestClient) -> None:
    conditions: list[dict[str, Any]] = [
        {},
        {"rigid_share": 0.5},
        {"strong_scaling_share": 0.5},
        {"profiling": "oracle"},
        {"failures": {"mtbf_hours": 10.0}},
        {"jobs_per_gpu": 2, "interference": "synthetic"},
        {"jobs_per_gpu": 2, "interference": 1.5},
        {"locality_penalty": 1.5},
        {"network_contention": 0.25},
        {"measured_jobs": "1-2"},
        {"locality_penalty": {"bert": 1.5, "cifar10": 1.2}},
        {"tuned": "best-batch"},
        {"tuned": "best-batch", "tuned_gpus": 4},
        {
            "reservations": [
                {"gpu_type": "t4", "gpu_count": 2, "tenant": "vision", "end_seconds": 3600.0}
            ]
        },
    ]
    keys = [
        client.post(SWEEPS, json=body(seeds=[0], **one)).json()["points"][0]["key"]
        for one in conditions
    ]
    assert len(set(keys)) == len(keys)


def test_the_placer_and_its_parameters_are_part_of_the_points_content(client: TestClient) -> None:
    asked: list[dict[str, Any]] = [
        {},
        {"placer": "pal"},
        {"placer": "pal", "placer_parameters": {"binning": "two"}},
        {"placer": "pal", "placer_parameters": {"binning": "silhouette"}},
    ]
    keys = [
        client.post(SWEEPS, json=body(seeds=[0], **one)).json()["points"][0]["key"] for one in asked
    ]
    assert len(set(keys)) == 3
    assert keys[1] == keys[3], "a parameter at its default is no other simulation"


def test_what_a_simulation_of_its_points_would_note_is_noted_of_a_sweep(
    client: TestClient,
) -> None:
    def noted(**fields: Any) -> list[str]:
        sweep = client.post(SWEEPS, json=body(**fields)).json()
        assert client.get(f"{SWEEPS}/{sweep['id']}").json()["notes"] == sweep["notes"]
        return list(sweep["notes"])

    assert noted() == []
    assert noted(cluster="t4=6x4,p100=1x8") == [
        "No job of the trace can run on p100: its 8 GPUs stay idle."
    ]
    policies = [{"name": "policy", "values": ["sia", "sjf-bsbf", "gandiva"]}]
    shares = [note.partition(" lets jobs share")[0] for note in noted(vary=policies)]
    assert shares == ["The policy sjf-bsbf", "The policy gandiva"]
    pairs = {"policy": "gavel", "policy_parameters": {"space_sharing": True}}
    rounds = [{"name": "round_seconds", "values": [60, 360]}]
    (note,) = noted(vary=rounds, **pairs)
    assert note.startswith("space_sharing of gavel lets jobs share GPUs; here a GPU holds one job")
    assert noted(vary=rounds, **pairs | {"jobs_per_gpu": 2, "interference": 1.5}) == [
        "Up to 2 jobs per GPU, interference: constant 1.5."
    ]


def test_notes_on_a_clusters_history_name_no_model_of_others(
    client: TestClient, client_as: Any
) -> None:
    job = {"name": "a", "model": "cifar10", "gpu_count": 1, "batch_size": 512}
    assert client.post("/api/v1/jobs", json=job).status_code == 201
    penalty = {"locality_penalty": {"bert": 2.0}}
    trace = {
        "kind": "cluster",
        "cluster_id": client.get("/api/v1/clusters").json()["items"][0]["id"],
    }
    asked = body(trace=trace, cluster="t4=1x4,p100=1x8", **penalty)
    idle = "No job of the trace can run on p100: its 8 GPUs stay idle."

    seen = client.post(SWEEPS, json=asked).json()["notes"]
    hidden = client_as(Role.SUBMITTER, tenant="other").post(SWEEPS, json=asked).json()["notes"]

    assert [note for note in seen if "bert" in note]
    assert [note for note in hidden if "bert" in note] == []
    assert idle in seen
    assert idle in hidden


def test_points_that_were_ever_played_are_not_sent_again(
    client: TestClient, queue: Any, database: Database
) -> None:
    first = client.post(SWEEPS, json=body()).json()
    end_points(database, *(point["key"] for point in first["points"]))
    queue.sent.clear()
    wider = client.post(
        SWEEPS, json=body(name="wider", vary=[{"name": "p", "values": [0.5, -1, 1.0]}])
    ).json()
    assert [point["state"] for point in wider["points"]] == ["succeeded"] * 4 + ["queued"] * 2
    assert queue.sent == [("maat.play_next_run",)]
    assert (wider["state"], wider["done"], wider["total"]) == ("queued", 4, 6)
    same = client.post(SWEEPS, json=body(name="same again")).json()
    assert (same["state"], same["done"], same["total"]) == ("succeeded", 4, 4)
    assert client.get(f"{OPERATIONS}/{same['operation_id']}").json()["finished_at"]


def test_rows_are_the_means_of_the_points_that_have_ended(
    client: TestClient, database: Database
) -> None:
    sweep = client.post(SWEEPS, json=body()).json()
    assert sweep["rows"] == []
    end_points(database, sweep["points"][0]["key"])
    found = client.get(f"{SWEEPS}/{sweep['id']}").json()
    assert found["rows"] == [
        {
            "settings": {"p": -1},
            "seeds": [0],
            "mean": FIGURES,
            "spread": {"avg_jct_hours": 0.0, "makespan_hours": 0.0},
        }
    ]


def test_a_point_that_failed_is_tried_again_when_it_is_asked_for_again(
    client: TestClient, queue: Any, database: Database
) -> None:
    client.post(SWEEPS, json=body())
    with database.session_scope() as session:
        session.connection().execute(
            sa.update(SweepPoint).values(state="failed", error={"status": 500})
        )
    queue.sent.clear()
    again = client.post(SWEEPS, json=body(name="again")).json()
    assert {(point["state"], point["error"]) for point in again["points"]} == {("queued", None)}
    assert queue.sent == [("maat.play_next_run",)]


def test_the_jobs_of_a_cluster_are_taken_as_they_are_now(client: TestClient) -> None:
    trace = {"kind": "cluster", "cluster_id": "demo"}
    refused = client.post(SWEEPS, json=body(trace=trace))
    assert refused.json()["errors"][0]["pointer"] == "/trace/cluster_id"
    client.post("/api/v1/jobs", json={"name": "train", "model": "bert", "work_scale": 0.5})
    before = client.post(SWEEPS, json=body(trace=trace)).json()
    client.post("/api/v1/jobs", json={"name": "train", "model": "ncf"})
    after = client.post(SWEEPS, json=body(trace=trace)).json()
    assert not {point["key"] for point in before["points"]} & {
        point["key"] for point in after["points"]
    }
    assert "text" not in before["request"]["trace"]
    assert before["request"]["trace"]["cluster_id"]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"vary": []}, "/vary"),
        ({"vary": [{"name": "luck", "values": [1]}]}, "/vary/0/name"),
        ({"vary": [{"name": "p", "values": ["high"]}]}, "/vary/0/values"),
        (
            {"vary": [{"name": "round_seconds", "values": [60]}, {"name": "p", "values": [0]}]},
            "/vary/1/values",
        ),
        ({"vary": [{"name": "p", "values": [1]}, {"name": "p", "values": [2]}]}, "/vary"),
        ({"vary": [{"name": "p", "values": []}]}, "/vary/0/values"),
        ({"vary": [{"name": "policy", "values": ["sia", "luck"]}]}, "/vary/0/values"),
        (
            {"vary": [{"name": "policy", "values": ["fifo"]}, {"name": "p", "values": [1]}]},
            "/vary/1/values",
        ),
        ({"vary": [{"name": "cluster_size", "values": [1, 64]}], "cluster": "a100=50x8"}, "/vary"),
        (
            {
                "vary": [{"name": "p", "values": [i / 10 for i in range(1, 60)]}],
                "seeds": list(range(30)),
            },
            "/vary",
        ),
        (
            {
                "vary": [{"name": "jobs_per_hour", "values": [5]}],
                "trace": {"kind": "csv", "text": CSV},
            },
            "/vary/0/values",
        ),
        ({"locality_penalty": 0.5}, "/locality_penalty"),
        ({"network_contention": 1.0}, "/network_contention"),
        ({"measured_jobs": "all"}, "/measured_jobs"),
        ({"measured_jobs": "900-999"}, "/measured_jobs"),
        ({"rack_penalty": 0.5}, "/rack_penalty"),
        ({"rack_penalty": 2.0}, "/rack_penalty"),
        ({"variability_draw": "rows"}, "/variability_draw"),
        ({"seeds": []}, "/seeds"),
        ({"seeds": [1, 1]}, "/seeds"),
        ({"cluster": "t4=0x4"}, "/cluster"),
        ({"cluster": "h100=2x8"}, "/cluster"),
        ({"cluster": "foo=6x4,t4=1x4"}, "/cluster"),
        ({"policy": "luck"}, "/policy"),
        ({"policy_parameters": {"power": 1}}, "/policy_parameters/power"),
        ({"placer": "luck"}, "/placer"),
        ({"placer": "pal", "placer_parameters": {"binning": "none"}}, "/placer_parameters/binning"),
        ({"placer_parameters": {"binning": "two"}}, "/placer_parameters/binning"),
        (
            {"vary": [{"name": "policy", "values": ["fifo"]}], "policy_parameters": {"p": 1}},
            "/policy_parameters/p",
        ),
        ({"fidelity": "exact"}, "/fidelity"),
        ({"trace": {**GENERATED, "family": "azure"}}, "/trace/family"),
        ({"trace": {**GENERATED, "jobs": 20_000}, "seeds": [0, 1, 2]}, "/trace"),
        (
            {
                "trace": {
                    "kind": "csv",
                    "text": CSV.replace(",0,", ",nan,").replace(",60,", ",nan,"),
                }
            },
            "/trace/text",
        ),
        ({"policy_parameters": {"round_seconds": 60}}, "/policy_parameters/round_seconds"),
        ({"trace": {"kind": "cluster", "cluster_id": "mars"}}, "/trace/cluster_id"),
        ({"name": ""}, "/name"),
        (
            {"vary": [{"name": "rigid_share", "values": [0, 0.6]}], "strong_scaling_share": 0.5},
            "/strong_scaling_share",
        ),
        (
            {"vary": [{"name": "strong_scaling_share", "values": [0, 0.6]}], "rigid_share": 0.5},
            "/vary/0/values",
        ),
        ({"rigid_share": 0.6, "strong_scaling_share": 0.5}, "/strong_scaling_share"),
        ({"reservations": [{"gpu_type": "t4", "gpu_count": 1, "job": "nobody"}]}, "/reservations"),
        (
            {"reservations": [{"gpu_type": "t4", "gpu_count": 25, "tenant": "x"}]},
            "/reservations/0",
        ),
        (
            {
                "reservations": [{"gpu_type": "t4", "gpu_count": 49, "tenant": "x"}],
                "vary": [{"name": "cluster_size", "values": [1, 2]}],
            },
            "/reservations",
        ),
        (
            {
                "quotas": [{"tenant": "x", "guaranteed": {"t4": 49}}],
                "vary": [{"name": "cluster_size", "values": [1, 2]}],
            },
            "/quotas",
        ),
    ],
    ids=str,
)
def test_a_sweep_that_cannot_be_simulated_is_refused_by_field(
    client: TestClient, queue: Any, database: Database, fields: dict[str, Any], pointer: str
) -> None:
    answer = client.post(SWEEPS, json=body(**fields))
    assert answer.status_code == 422, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    with database.session_scope(writes=False) as session:
        for table in (Sweep, SweepMember, SweepPoint, Operation):
            assert session.exec(select(func.count()).select_from(table)).one() == 0
    assert queue.sent == []


def test_a_repeated_request_gets_the_first_answer_and_has_no_second_effect(
    client: TestClient, queue: Any
) -> None:
    key = {"Idempotency-Key": "k-1"}
    first, again = (client.post(SWEEPS, json=body(), headers=key) for _ in range(2))
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["Idempotency-Replayed"] == "true"
    assert queue.sent == [("maat.play_next_run",)]
    assert client.post(SWEEPS, json=body(name="other"), headers=key).status_code == 422


def test_a_profiling_mode_that_the_fidelity_has_anyway_may_be_given_and_varied(
    client: TestClient,
) -> None:
    varied = {
        "vary": [{"name": "profiling", "values": ["oracle", "no-profile"]}],
        "fidelity": "sia-artifact",
    }
    assert client.post(SWEEPS, json=body(**varied, profiling="no-profile")).status_code == 202
    refused = client.post(SWEEPS, json=body(**varied, profiling="oracle"))
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/profiling")


def test_a_queued_sweep_is_cancelled_at_once(client: TestClient) -> None:
    sweep = client.post(SWEEPS, json=body()).json()
    client.post(f"{OPERATIONS}/{sweep['operation_id']}/actions/cancel")
    found = client.get(f"{SWEEPS}/{sweep['id']}").json()
    assert (found["state"], {point["state"] for point in found["points"]}) == (
        "cancelled",
        {"cancelled"},
    )


def test_sweeps_are_listed_newest_first_in_pages_without_their_points(client: TestClient) -> None:
    for number in range(5):
        client.post(SWEEPS, json=body(name=f"s{number}"))
    first = client.get(SWEEPS, params={"limit": 3}).json()
    second = client.get(SWEEPS, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    items = first["items"] + second["items"]
    assert [item["name"] for item in items] == ["s4", "s3", "s2", "s1", "s0"]
    assert all("points" not in item and item["total"] == 4 for item in items)


def test_a_sweep_that_cannot_be_read_costs_only_itself(
    client: TestClient, database: Database
) -> None:
    ids = [client.post(SWEEPS, json=body(name=name)).json()["id"] for name in ("a", "b")]
    later = sa.update(Sweep).where(col(Sweep.id) == ids[0])
    with database.session_scope() as session:
        session.connection().execute(later.values(request=pack_json({"of": "a later version"})))

    readable, unreadable = client.get(SWEEPS).json()["items"]
    assert (readable["id"], readable["unreadable"], readable["seeds"]) == (ids[1], None, [0, 1])
    assert (unreadable["id"], unreadable["seeds"], unreadable["total"]) == (ids[0], [], 4)
    refused = client.get(f"{SWEEPS}/{ids[0]}")
    assert (refused.status_code, refused.json()["detail"]) == (409, unreadable["unreadable"])
    assert "another version of Maat" in unreadable["unreadable"]


def test_a_clusters_history_is_answered_without_the_length_of_its_text(client: TestClient) -> None:
    cluster = client.get("/api/v1/clusters").json()["items"][0]["id"]
    client.post("/api/v1/jobs", json={"name": "one", "model": "bert"})
    trace = {"kind": "cluster", "cluster_id": cluster}
    answer = client.post(SWEEPS, json=body(trace=trace, seeds=[0]))
    assert answer.json()["request"]["trace"] == trace


def test_who_may_only_read_runs_no_sweep_and_other_tenants_see_none(
    client: TestClient, client_as: Any
) -> None:
    sweep = client.post(SWEEPS, json=body()).json()
    viewer, other = client_as(Role.VIEWER), client_as(Role.SUBMITTER, tenant="other")
    assert viewer.post(SWEEPS, json=body()).status_code == 403
    assert viewer.get(f"{SWEEPS}/{sweep['id']}").status_code == 200
    assert other.get(f"{SWEEPS}/{sweep['id']}").status_code == 404
    assert other.get(SWEEPS).json()["items"] == []
    assert other.post(f"{OPERATIONS}/{sweep['operation_id']}/actions/cancel").status_code == 404


def test_only_named_policies_have_tuned_jobs(client: TestClient, queue: Any) -> None:
    vary = [{"name": "policy", "values": ["sia", "fifo"]}]
    told = {"fifo": "any-pair"}
    answer = client.post(SWEEPS, json=body(vary=vary, tuned_by_policy=told, tuned_gpus=4))
    assert answer.status_code == 202, answer.text
    plain, tuned = client.post(SWEEPS, json=body(vary=vary)).json(), answer.json()
    keys = [
        [point["key"] for point in client.get(f"{SWEEPS}/{each['id']}").json()["points"]]
        for each in (plain, tuned)
    ]
    assert [ours == theirs for ours, theirs in zip(*keys, strict=True)] == [True] * 2 + [False] * 2
    refused = client.post(SWEEPS, json=body(vary=vary, tuned_by_policy={"gavel": "any-pair"}))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/tuned_by_policy"


def test_far_too_many_varied_jobs_are_refused_before_they_are_drawn(client: TestClient) -> None:
    vary = [{"name": "jobs", "values": [200_000, 100_000]}]
    refused = client.post(SWEEPS, json=body(vary=vary, trace={"kind": "generated"}))
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/trace")


VARYING: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("p", [-1, 1], {"policy_parameters": {"p": 0.5}}, "/policy_parameters/p"),
    ("round_seconds", [60, 120], {"round_seconds": 60}, "/round_seconds"),
    (
        "round_seconds",
        [60, 120],
        {"policy_parameters": {"round_seconds": 60}},
        "/policy_parameters/round_seconds",
    ),
    ("profiling", ["oracle", "bootstrap"], {"profiling": "oracle"}, "/profiling"),
    ("rigid_share", [0, 1], {"rigid_share": 0.5}, "/rigid_share"),
    ("locality_penalty", [1, 2], {"locality_penalty": 1.5}, "/locality_penalty"),
    ("network_contention", [0, 0.5], {"network_contention": 0.25}, "/network_contention"),
    ("least_stay_seconds", [600, "none"], {"least_stay_seconds": 60}, "/least_stay_seconds"),
    ("most_moves_per_hour", [2, 4], {"most_moves_per_hour": 3}, "/most_moves_per_hour"),
    ("policy", ["sia", "fifo"], {"policy": "sia"}, "/policy"),
    ("jobs_per_hour", [10, 20], {}, "/trace/jobs"),
    ("jobs", [10, 20], {}, "/trace/jobs"),
    ("placer", ["packed-sticky", "pal"], {"placer": "whole-node"}, "/placer"),
    ("tuned", ["none", "any-pair"], {"tuned": "best-batch"}, "/tuned"),
    ("interference", [1, 1.5], {"jobs_per_gpu": 2, "interference": 1.25}, "/interference"),
    ("p", [-1, 1], {"tuned_gpus": 4}, "/tuned_gpus"),
]


@pytest.mark.parametrize(("axis", "values", "fields", "pointer"), VARYING, ids=str)
def test_a_sweep_that_fixes_what_it_varies_is_refused(
    client: TestClient,
    queue: Any,
    axis: str,
    values: list[Any],
    fields: dict[str, Any],
    pointer: str,
) -> None:
    refused = client.post(SWEEPS, json=body(vary=[{"name": axis, "values": values}], **fields))
    assert refused.status_code == 422, refused.text
    assert [(error["pointer"], error["code"]) for error in refused.json()["errors"]] == [
        (pointer, "counts_for_nothing")
    ]
    assert queue.sent == []


def test_the_interval_of_rounds_among_the_parameters_is_sent_to_its_own_field(
    client: TestClient,
) -> None:
    answer = client.post(SWEEPS, json=body(policy_parameters={"round_seconds": 60}))
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/policy_parameters/round_seconds"
    assert error["remedy"] == "Give it as the field round_seconds, beside policy_parameters."
