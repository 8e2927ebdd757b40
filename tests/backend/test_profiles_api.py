"""Uploads of profiles, tables of throughputs and traces: what is kept, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from measurement_samples import MEASUREMENTS, uploaded
from profile_samples import archived, profile_files, profiles, throughputs, zipped
from sqlmodel import func, select

from backend.accounts.permissions import Role
from backend.app import create_app
from backend.database import Database
from backend.measurements import archives
from backend.models import Measurement, MeasurementFiles
from backend.settings import Settings

TRACE = "name,time,application,num_replicas,batch_size\na,0,bert,1,32\nb,60,bert,2,32\n"
FILES = profile_files()


def test_profiles_come_as_files_or_as_a_zip_and_say_what_they_cover(client: TestClient) -> None:
    as_files = uploaded(client, profiles())
    in_folders = {f"profiles/{name}": text for name, text in FILES.items()}
    extras = {"__MACOSX/._bert": b"\x00\x05", "profiles/.DS_Store": b"\x00"}
    as_zip = uploaded(client, archived(in_folders | extras, name="zipped"))

    assert as_files["covers"] == as_zip["covers"] == {"t4": ["bert"]}
    assert [file["name"] for file in as_zip["files"]] == list(in_folders)
    kept = client.get(f"{MEASUREMENTS}/{as_zip['id']}/files").json()["files"]
    assert {file["name"]: file["text"] for file in kept} == in_folders


def test_provenance_and_licence_are_kept(client: TestClient) -> None:
    given = {"source": "Sia's artifact", "url": "https://example.org/sia", "licence": "Apache-2.0"}
    made = uploaded(client, profiles(**given))
    assert {name: made[name] for name in given} == given
    assert client.get(f"{MEASUREMENTS}/{made['id']}").json() == made
    unsaid = uploaded(client, profiles(name="unsaid"))
    assert [unsaid[name] for name in given] == [None] * 3


def test_a_table_of_throughputs_and_a_trace_are_kept(client: TestClient) -> None:
    table = profiles({"table.json": throughputs()})
    assert uploaded(client, table)["covers"] == {"v100": ["ResNet-18"]}
    trace = {"kind": "trace", "name": "two", "files": [{"name": "two.csv", "text": TRACE}]}
    assert uploaded(client, trace)["covers"] == {"every GPU": ["bert"]}


def test_a_trace_may_have_the_models_of_the_tenants_profiles(client: TestClient) -> None:
    text = TRACE.replace("bert", "own-model")
    trace = {"kind": "trace", "name": "own", "files": [{"name": "own.csv", "text": text}]}
    refused = client.post(MEASUREMENTS, json=trace)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["column"] == "application"
    uploaded(client, profiles(profile_files("own-model")))
    assert uploaded(client, trace)["covers"] == {"every GPU": ["own-model"]}


def without(name: str) -> dict[str, str]:
    return {path: text for path, text in FILES.items() if path != name}


def changed(name: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[name]
    return {**FILES, name: FILES[name].replace(old, new)}


PLACEMENTS, VALIDATION = "bert/placements-aws.csv", "bert/validation-64.csv"
REFUSED: list[tuple[str, dict[str, str], str, str | None, int | None]] = [
    ("half a GPU type", without("bert/scalability-aws.csv"), "scalability-aws.csv", None, None),
    ("one batch size", without(VALIDATION), "validation-<batch>.csv", None, None),
    ("no step times", {VALIDATION: FILES[VALIDATION]}, "placements-<type>.csv", None, None),
    ("no model's name", {"placements-aws.csv": "x\n1\n"}, "MODEL/placements", None, None),
    ("another file", {**FILES, "bert/notes.csv": "x\n1\n"}, "bert/notes.csv", None, None),
    ("a column too few", changed(PLACEMENTS, "step_time", "t"), PLACEMENTS, "step_time", 1),
    ("a time that is none", changed(PLACEMENTS, "0.6", "-1"), PLACEMENTS, "step_time", 6),
    ("no placement", changed(PLACEMENTS, "44,", "x4,"), PLACEMENTS, "placement", 11),
    ("an unknown table's model", {"t.json": throughputs("Llama")}, "Llama", None, None),
    ("JSON without rates", {"t.json": '{"v100": {}}'}, "t.json", None, None),
    ("broken JSON", {"t.json": "{"}, "t.json", None, None),
]


@pytest.mark.parametrize("is_zip", [False, True], ids=["files", "zip"])
@pytest.mark.parametrize(
    ("files", "words", "column", "row"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_wrong_profiles_are_refused_with_file_row_and_field_and_nothing_is_kept(
    client: TestClient,
    database: Database,
    is_zip: bool,
    files: dict[str, str],
    words: str,
    column: str | None,
    row: int | None,
) -> None:
    answer = client.post(MEASUREMENTS, json=archived(files) if is_zip else profiles(files))
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert words in answer.json()["detail"]
    assert (error.get("column"), error.get("row")) == (column, row)
    assert error["pointer"].startswith("/archive" if is_zip else "/files/")
    assert error["remedy"]
    assert is_empty(database)


def is_empty(database: Database) -> bool:
    with database.session_scope(writes=False) as session:
        counts = [
            session.exec(select(func.count()).select_from(table)).one()
            for table in (Measurement, MeasurementFiles)
        ]
    return counts == [0, 0]


HOSTILE: list[tuple[str, str, str]] = [
    ("a path out of the folder", zipped({"../bert/placements-aws.csv": "x"}), "path"),
    ("an absolute path", zipped({"/etc/placements-aws.csv": "x"}), "path"),
    ("a path of Windows", zipped({"C:\\bert\\placements-aws.csv": "x"}), "path"),
    ("no zip", "bm8gemlw", "unreadable"),
    ("no base64", "%%%", "no_base64"),
    ("an empty zip", zipped({}), "empty"),
    ("too many files", zipped({f"m/validation-{n}.csv": "x" for n in range(300)}), "too_many"),
    ("no text", zipped({"bert/placements-aws.csv": b"\xff\xfe\x00\x81"}), "no_text"),
    ("a zip in a zip", zipped({"bert/placements-aws.csv": b"PK\x03\x04" + b"0" * 200}), "no_text"),
]


@pytest.mark.parametrize(
    ("archive", "code"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_a_hostile_zip_is_refused_and_nothing_is_kept(
    client: TestClient, database: Database, archive: str, code: str
) -> None:
    body = {"kind": "profiles", "name": "hostile", "archive": archive}
    answer = client.post(MEASUREMENTS, json=body)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/archive", code)
    assert is_empty(database)


def test_a_zip_that_unpacks_to_very_much_is_refused_before_it_is_unpacked(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = zipped({"bert/placements-aws.csv": b"0" * 50_000_000})
    assert len(bomb) < 100_000
    read: list[int] = []
    blocks = archives._blocks

    def counted(*given: Any) -> Any:
        for block in blocks(*given):
            read.append(len(block))
            yield block

    monkeypatch.setattr(archives, "_blocks", counted)
    body = {"kind": "profiles", "name": "bomb", "archive": bomb}
    (error,) = client.post(MEASUREMENTS, json=body).json()["errors"]
    assert error["code"] == "too_large"
    assert sum(read) < 4_200_000


def test_files_and_a_zip_together_are_refused(client: TestClient) -> None:
    body = profiles() | {"archive": zipped(FILES)}
    assert client.post(MEASUREMENTS, json=body).json()["errors"][0]["code"] == "given_twice"


@pytest.mark.parametrize("url", ["example.org", "javascript:alert(1)", "ftp://x"])
def test_an_address_is_one_of_the_web(client: TestClient, url: str) -> None:
    answer = client.post(MEASUREMENTS, json=profiles(url=url))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/url"


def test_another_tenant_sees_neither_names_nor_files(client_as: Any) -> None:
    made = uploaded(client_as(Role.SUBMITTER), profiles())
    other = client_as(Role.TENANT_MANAGER, tenant="other")
    assert other.get(MEASUREMENTS).json()["items"] == []
    assert other.get(f"{MEASUREMENTS}/{made['id']}/files").status_code == 404


@pytest.mark.needs_data
def test_what_sia_and_shockwave_published_can_be_uploaded(
    settings: Settings, client: TestClient, data_folder: Path
) -> None:
    folder = data_folder / "sia-artifact"
    files = {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted((folder / "profiles").rglob("*.csv"))
    }
    table = (data_folder / "shockwave" / "tacc_throughputs.json").read_text()
    with TestClient(
        create_app(settings.model_copy(update={"max_upload_bytes": 8_000_000}), queue=None),
        base_url="http://127.0.0.1:8000",
        client=("127.0.0.1", 50000),
    ) as local:
        assert "gpt" in uploaded(local, archived(files))["covers"]["a100"]
        covers = uploaded(local, profiles({"t.json": table}, name="Shockwave"))["covers"]
        assert covers["v100"]
