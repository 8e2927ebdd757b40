"""Tests of uploaded measurements: what is stored, errors with their place, and permissions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from measurement_samples import (
    GAVEL,
    GPUS,
    MEASUREMENTS,
    MODELS,
    PAIRS,
    TABLE,
    pairs,
    unequal,
    uploaded,
)
from sqlmodel import func, select

from backend.accounts.permissions import Role
from backend.app import create_app
from backend.database import Database
from backend.measurements import service
from backend.models import Job, Measurement, MeasurementFiles
from backend.settings import Settings


def test_measurements_of_unequal_gpus_are_kept_with_what_they_cover(client: TestClient) -> None:
    answer = client.post(MEASUREMENTS, json=unequal(name="TACC", gpu_type="longhorn-agg"))
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["kind"], made["name"], made["owner"], made["tenant"]) == (
        "variability",
        "TACC",
        "local",
        "default",
    )
    assert made["covers"] == {"v100": ["bert", "pagerank", "resnet"]}
    assert made["bytes"] == 3 * len(GPUS)
    assert made["files"][0] == {
        "name": "bert-longhorn-agg.csv",
        "bytes": len(GPUS),
        "sha256": hashlib.sha256(GPUS.encode()).hexdigest(),
    }
    assert client.get(answer.headers["Location"]).json() == made
    assert client.get(MEASUREMENTS).json()["items"] == [made]


def test_the_digest_is_that_of_the_files_whatever_their_order_and_name_of_the_whole(
    client: TestClient,
) -> None:
    first = uploaded(client, unequal(name="first"))
    again = unequal(name="again")
    again["files"].reverse()
    assert uploaded(client, again)["digest"] == first["digest"]
    lines = "".join(
        f"{file['sha256']}  {file['name']}\n"
        for file in sorted(first["files"], key=lambda file: file["name"])
    )
    assert first["digest"] == hashlib.sha256(lines.encode()).hexdigest()
    assert (
        uploaded(client, unequal(name="other", text=GPUS + "gpu-40,2\n"))["digest"]
        != first["digest"]
    )


def test_interference_is_a_table_of_pairs_or_gavels_throughputs(client: TestClient) -> None:
    assert uploaded(client, pairs())["covers"] == {"every GPU": sorted(MODELS)}
    covers = uploaded(client, pairs(name="Gavel", text=GAVEL))["covers"]
    assert covers == {
        gpu_type: ["ResNet-18 (batch size 64)", "cifar10"] for gpu_type in ("p100", "v100")
    }


@pytest.mark.needs_data
def test_what_pal_and_gavel_published_can_be_uploaded(
    settings: Settings, database: Database, client: TestClient, data_folder: Path
) -> None:
    files = [
        {"name": path.name, "text": path.read_text()}
        for path in sorted((data_folder / "pal" / "variability").glob("*.csv"))
    ]
    with TestClient(
        create_app(settings.model_copy(update={"max_upload_bytes": 8_000_000}), queue=None),
        base_url="http://127.0.0.1:8000",
        client=("127.0.0.1", 50000),
    ) as local:
        made = uploaded(local, {"kind": "variability", "name": "PAL", "files": files})
        assert made["covers"] == {
            "a100": ["resnet"],
            "rtx5000": ["bert", "pagerank", "resnet"],
            "v100": ["bert", "pagerank", "resnet"],
        }
        for name, path in {
            "PAL pairs": "pal/colocation/norm_speed.csv",
            "Gavel": "gavel/simulation_throughputs.json",
        }.items():
            uploaded(local, pairs(name=name, text=(data_folder / path).read_text()))


REFUSED: list[tuple[str, dict[str, Any], str, int | None, str | None]] = [
    ("no column", unequal(text="uuid,time\na,1\n"), "/files/0/text", 1, "perf"),
    ("a time that is none", unequal(text="uuid,perf\na,1\nb,NaN\n"), "/files/0/text", 3, "perf"),
    ("an endless time", unequal(text="uuid,perf\na,1\nb,1e999\n"), "/files/0/text", 3, "perf"),
    (
        "a time of 5000 digits",
        unequal(text=f"uuid,perf\na,{'9' * 5000}\n"),
        "/files/0/text",
        2,
        "perf",
    ),
    ("no time at all", unequal(text="uuid,perf\na,0\n"), "/files/0/text", 2, "perf"),
    ("a GPU without a name", unequal(text="uuid,perf\n,1\n"), "/files/0/text", 2, "uuid"),
    ("no rows", unequal(text="uuid,perf\n"), "/files/0/text", None, None),
    ("a row too short", unequal(text="uuid,perf\na\n"), "/files/0/text", 2, "line"),
    ("a path", unequal(text="/etc/passwd"), "/files/0/text", 1, "perf"),
    (
        "a name that says nothing",
        unequal() | {"files": [{"name": "data.csv", "text": GPUS}]},
        "/files/0/name",
        None,
        None,
    ),
    (
        "one subject twice",
        unequal()
        | {
            "files": [
                {"name": name, "text": GPUS} for name in ("bert-v100.csv", "bert-longhorn.csv")
            ]
        },
        "/files/1/name",
        None,
        None,
    ),
    (
        "one name twice",
        unequal() | {"files": [{"name": "bert-v100.csv", "text": GPUS}] * 2},
        "/files/1/name",
        None,
        None,
    ),
    (
        "a slowdown that is none",
        pairs(text=f"{PAIRS}bert,ncf,1,0.5\n"),
        "/files/0/text",
        2,
        "slowdown",
    ),
    (
        "no slowdown",
        pairs(text="victim,partner,gpu_count\nbert,ncf,1\n"),
        "/files/0/text",
        1,
        "slowdown",
    ),
    (
        "a count that is none",
        pairs(text=f"{PAIRS}bert,ncf,many,2\n"),
        "/files/0/text",
        2,
        "gpu_count",
    ),
    ("a victim without a name", pairs(text=f"{PAIRS},ncf,1,2\n"), "/files/0/text", 2, "victim"),
    ("JSON of another kind", pairs(text='{"v100": []}'), "/files/0/text", None, None),
    (
        "JSON with endless numbers",
        pairs(text=GAVEL.replace("10.0", "Infinity")),
        "/files/0/text",
        None,
        None,
    ),
    (
        "JSON with numbers of 5000 digits",
        pairs(text=GAVEL.replace("10.0", "9" * 5000)),
        "/files/0/text",
        None,
        None,
    ),
    ("JSON without an end", pairs(text="[" * 100_000), "/files/0/text", None, None),
    (
        "two tables",
        pairs() | {"files": [{"name": name, "text": TABLE} for name in ("a.csv", "b.csv")]},
        "/files",
        None,
        None,
    ),
    ("no files", pairs() | {"files": []}, "/files", None, None),
    ("no text", pairs(text=""), "/files/0/text", None, None),
    ("an unknown kind", pairs() | {"kind": "weather"}, "/kind", None, None),
    ("no name", pairs(name=""), "/name", None, None),
    *(
        (f"a name such as {name}", pairs(name=name), "/name", None, None)
        for name in ("synthetic", "1.25", "-3e5", "nan", "Gavel#p100")
    ),
]


@pytest.mark.parametrize(
    ("body", "pointer", "row", "column"),
    [case[1:] for case in REFUSED],
    ids=[case[0] for case in REFUSED],
)
def test_what_cannot_be_read_is_refused_with_its_file_row_and_column(
    client: TestClient,
    database: Database,
    body: dict[str, Any],
    pointer: str,
    row: int | None,
    column: str | None,
) -> None:
    answer = client.post(MEASUREMENTS, json=body)
    assert answer.status_code == 422, answer.text
    error = answer.json()["errors"][0]
    assert (error["pointer"], error.get("row"), error.get("column")) == (pointer, row, column)
    assert error["remedy"]
    with database.session_scope(writes=False) as session:
        for table in (Measurement, MeasurementFiles):
            assert session.exec(select(func.count()).select_from(table)).one() == 0


def test_a_refusal_says_what_is_accepted(client: TestClient) -> None:
    refused = client.post(MEASUREMENTS, json=pairs(text='{"speed": 3}')).json()
    assert "victim, partner, gpu_count, slowdown" in refused["detail"]
    assert "norm_speed.csv" in refused["detail"]


@pytest.mark.parametrize(("limit", "most"), [("MAX_LINES", 10), ("MAX_BYTES", 100)])
def test_files_that_are_too_much_together_are_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(service, limit, most)
    refused = client.post(MEASUREMENTS, json=unequal())
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/files")


def test_measurements_beyond_the_upload_limit_are_refused(client: TestClient) -> None:
    assert client.post(MEASUREMENTS, json=pairs(text=TABLE * 1000)).status_code == 413


def test_a_name_is_free_for_another_kind_another_tenant_and_again_once_deleted(
    client: TestClient, client_as: Any
) -> None:
    first = uploaded(client, pairs(name="mine"))
    taken = client.post(MEASUREMENTS, json=pairs(name="mine"))
    assert taken.status_code == 409
    assert taken.json()["errors"][0]["pointer"] == "/name"
    uploaded(client, unequal(name="mine"))
    uploaded(client_as(Role.SUBMITTER, tenant="other"), pairs(name="mine"))
    assert client.delete(f"{MEASUREMENTS}/{first['id']}").status_code == 204
    uploaded(client, pairs(name="mine"))


def test_a_repeated_upload_under_one_key_is_one_upload(client: TestClient) -> None:
    answers = [
        client.post(MEASUREMENTS, json=pairs(), headers={"Idempotency-Key": "once"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert len(client.get(MEASUREMENTS).json()["items"]) == 1
    other = client.post(MEASUREMENTS, json=pairs(name="other"), headers={"Idempotency-Key": "once"})
    assert other.status_code == 422


def test_who_may_run_simulations_may_upload_and_who_only_reads_may_not(client_as: Any) -> None:
    for role, status in {
        Role.VIEWER: 403,
        Role.AUDITOR: 403,
        Role.SUBMITTER: 201,
        Role.TENANT_MANAGER: 201,
    }.items():
        assert client_as(role).post(MEASUREMENTS, json=pairs(name=role.value)).status_code == status
    assert len(client_as(Role.VIEWER, name="reader").get(MEASUREMENTS).json()["items"]) == 2


def test_another_tenants_measurements_are_not_there(client_as: Any) -> None:
    made = uploaded(client_as(Role.SUBMITTER), pairs())
    other = client_as(Role.TENANT_MANAGER, tenant="other")
    assert other.get(MEASUREMENTS).json()["items"] == []
    assert other.get(f"{MEASUREMENTS}/{made['id']}").status_code == 404
    assert other.delete(f"{MEASUREMENTS}/{made['id']}").status_code == 404


def test_a_colleagues_measurements_are_for_their_owner_or_the_tenants_manager_to_delete(
    client_as: Any,
) -> None:
    owner = client_as(Role.SUBMITTER)
    address = f"{MEASUREMENTS}/{uploaded(owner, pairs())['id']}"
    assert client_as(Role.SUBMITTER, name="colleague").delete(address).status_code == 403
    assert client_as(Role.TENANT_MANAGER).delete(address).status_code == 204
    assert owner.delete(address).status_code == 404
    assert owner.get(MEASUREMENTS).json()["items"] == []


def test_measurements_are_listed_newest_first_by_kind_in_pages(client: TestClient) -> None:
    for n in range(3):
        uploaded(client, pairs(name=f"table {n}"))
    uploaded(client, unequal())
    first = client.get(MEASUREMENTS, params={"kind": "interference", "limit": 2}).json()
    second = client.get(
        MEASUREMENTS, params={"kind": "interference", "limit": 2, "cursor": first["next_cursor"]}
    ).json()
    assert [item["name"] for item in first["items"] + second["items"]] == [
        "table 2",
        "table 1",
        "table 0",
    ]
    assert client.get(MEASUREMENTS, params={"kind": "weather"}).status_code == 422


@pytest.mark.parametrize(("name", "meant"), [("bertt", "bert"), ("BERT", "bert"), ("llama", None)])
def test_a_name_that_no_model_and_no_job_has_is_told_with_what_was_meant(
    client: TestClient, app: FastAPI, name: str, meant: str | None
) -> None:
    text = f"victim,partner,gpu_count,slowdown\nncf,{name},1,1.1\n"
    body = {"kind": "interference", "name": "slip", "files": [{"name": "x.csv", "text": text}]}
    (note,) = uploaded(client, body)["notes"]
    words = f"{name} (did you mean {meant}?)" if meant else name
    assert f"no unfinished job has the name {words}. " in note
    assert client.post("/api/v1/clusters", json={"name": "c", "shape": "t4=1x1"}).status_code == 201
    job = {"name": "mine", "model": "ncf", "cluster_id": "c"}
    made = client.post("/api/v1/jobs", json=job).json()
    with app.state.database.session_scope() as session:
        session.get_one(Job, made["id"]).model = name
    assert [one["notes"] for one in client.get(MEASUREMENTS).json()["items"]] == [[]]


def test_a_pair_given_twice_is_refused_at_its_line(client: TestClient) -> None:
    text = "victim,partner,gpu_count,slowdown\nbert,ncf,1,1.2\nbert,ncf,1,1.9\n"
    body = {"kind": "interference", "name": "twice", "files": [{"name": "x.csv", "text": text}]}
    refused = client.post(MEASUREMENTS, json=body)
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["pointer"] == "/files/0/text"
    for words in ("row 3", "after that of line 2", "Keep one of the two lines."):
        assert words in refused.json()["detail"]
