"""Tests of the papers and their reproductions in the API: what is listed, taken and refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from measurement_samples import MEASUREMENTS, unequal, uploaded

from backend.accounts.permissions import Role
from backend.accounts.rate_limits import RateLimits
from backend.database import Database
from backend.models import ReproducedItem
from backend.settings import Settings

PAPERS, REPRODUCTIONS = "/api/v1/papers", "/api/v1/reproductions"
RESULT = {
    "labels": ["policy"],
    "rows": [
        {
            "of": ["Sia"],
            "measure": "hours",
            "published": "1.5",
            "ours": 1.25,
            "difference": -1 / 6,
            "spread": None,
            "runs": 1,
        }
    ],
    "why": "Ours has <b>fewer</b> jobs.",
    "notes": ["Without the published traces."],
    "cpu_minutes": 0.5,
    "figure": {"data": [{"type": "bar", "y": [1.25]}], "layout": {}},
}


def ask(client: TestClient, paper: str, *items: str, **fields: Any) -> dict[str, Any]:
    """Ask for items of a paper; return the answer, which must be 202."""
    body = {"paper": paper} | ({"items": list(items)} if items else {}) | fields
    answer = client.post(REPRODUCTIONS, json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(client: TestClient, **body: Any) -> dict[str, Any]:
    """Return the one error of a body that is refused."""
    answer = client.post(REPRODUCTIONS, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    (error,) = answer.json()["errors"]
    found: dict[str, Any] = error
    return found


def make(database: Database, reproduction_id: str) -> None:
    """Give all items of a reproduction a result, as the worker does."""
    with database.session_scope() as session:
        items = sa.update(ReproducedItem).where(
            ReproducedItem.reproduction_id == reproduction_id  # type: ignore[arg-type]
        )
        session.execute(items.values(state="succeeded", result=RESULT))


def listed(client: TestClient, paper: str, key: str, **own: str) -> dict[str, Any]:
    """Return an item as it is listed. `own`: uploads by kind."""
    found = client.get(PAPERS, params=own).json()
    papers = {each["name"]: each for each in found["papers"]}
    return next(item for item in papers[paper]["items"] if item["key"] == key)


def test_all_items_are_listed_with_what_they_need(refusing: TestClient) -> None:
    found = refusing.get(PAPERS).json()
    assert [paper["name"] for paper in found["papers"]] == ["sia", "pollux", "bsbf", "pal"]
    assert sum(len(paper["items"]) for paper in found["papers"]) == 55
    assert (found["has_data"], found["data_problem"]) == (False, None)
    possible = listed(refusing, "bsbf", "fig-1")
    assert (possible["standing"], possible["because"]) == ("possible now", None)
    lacking = listed(refusing, "pal", "fig-13")
    assert lacking["standing"] == "needs data"
    assert lacking["because"].startswith("It needs published data: ")
    assert "--data" not in lacking["because"]
    hardware = listed(refusing, "pal", "fig-3")
    assert (hardware["standing"], hardware["newest"]) == ("needs hardware", None)
    assert "Nsight" in hardware["because"]


def test_a_reproduction_is_an_operation_that_a_worker_is_told_of(
    client: TestClient, queue: Any
) -> None:
    answer = client.post(REPRODUCTIONS, json={"paper": "sia", "items": ["table-2", "fig-8"]})
    found = answer.json()
    assert answer.status_code == 202
    assert queue.sent == [("maat.reproduce", found["id"])]
    assert (found["paper"], found["quick"], found["state"]) == ("sia", True, "queued")
    assert [(item["key"], item["state"]) for item in found["items"]] == [
        ("table-2", "queued"),
        ("fig-8", "queued"),
    ]
    assert answer.headers["Location"] == f"/api/v1/operations/{found['operation_id']}"
    operation = client.get(answer.headers["Location"]).json()
    assert (operation["kind"], operation["done"], operation["total"]) == ("reproduction", 0, 2)
    assert client.get(operation["result_url"]).json() == found
    assert client.get(REPRODUCTIONS).json()["items"] == [found]


def test_an_item_by_a_further_name_and_twice_is_made_once(client: TestClient) -> None:
    assert "fig-7" not in {item["key"] for item in client.get(PAPERS).json()["papers"][3]["items"]}
    also = next(
        (paper["name"], item["key"], item["also"][0])
        for paper in client.get(PAPERS).json()["papers"]
        for item in paper["items"]
        if item["also"] and item["standing"] == "possible now"
    )
    paper, key, other = also
    assert [item["key"] for item in ask(client, paper, other, key, other)["items"]] == [key]


def test_a_whole_paper_is_all_that_can_be_made_now(
    app: FastAPI, client: TestClient, settings: Settings, tmp_path: Path
) -> None:
    possible = {
        paper["name"]: [
            item["key"] for item in paper["items"] if item["standing"] == "possible now"
        ]
        for paper in client.get(PAPERS).json()["papers"]
    }
    assert [item["key"] for item in ask(client, "bsbf")["items"]] == possible["bsbf"]
    nothing = refused(client, paper="pal")
    assert (nothing["pointer"], nothing["code"]) == ("/paper", "cannot_be_made")
    (tmp_path / "pal" / "variability").mkdir(parents=True)
    app.state.settings = settings.model_copy(update={"data": tmp_path})
    keys = [item["key"] for item in ask(client, "pal")["items"]]
    assert "fig-5" in keys
    assert not {"fig-3", "fig-13"} & set(keys), "one needs hardware, the other a trace"


# ---- uploads that stand in for published data

GPUS = {"name": "lab", "gpu_type": "v100"}


def test_an_upload_makes_possible_what_no_published_data_did(
    client: TestClient, database: Database
) -> None:
    uploaded(client, unequal(**GPUS))
    assert listed(client, "pal", "fig-4")["standing"] == "needs data"
    possible = listed(client, "pal", "fig-4", variability="lab")
    assert (possible["standing"], possible["because"]) == ("possible now", None)
    assert possible["takes"] == ["variability"]
    other = listed(client, "sia", "fig-8", variability="lab")
    assert other["standing"] == "takes other data"
    assert other["because"] == (
        "The measured GPUs lab cannot stand in for anything in it. It takes profiles and trace."
    )
    found = ask(client, "pal", "fig-4", variability="lab")
    assert [(each["kind"], each["name"]) for each in found["measurements"]] == [
        ("variability", "lab")
    ]
    make(database, found["id"])
    item = listed(client, "pal", "fig-4")
    assert item["newest"]["measurements"] == found["measurements"]
    assert item["newest_made"] is None, "nothing was made of published data"
    assert {each["key"] for each in ask(client, "pal", variability="lab")["items"]} >= {"fig-4"}


def test_an_upload_is_kept_as_long_as_a_reproduction_uses_it(client: TestClient) -> None:
    upload = uploaded(client, unequal(**GPUS))
    found = ask(client, "pal", "fig-4", variability=upload["id"])
    assert client.delete(f"{MEASUREMENTS}/{upload['id']}").status_code == 204
    (used,) = client.get(f"{REPRODUCTIONS}/{found['id']}").json()["measurements"]
    assert (used["name"], used["deleted"]) == ("lab", True)
    error = refused(client, paper="pal", items=["fig-4"], variability="lab")
    assert (error["pointer"], error["code"]) == ("/variability", "unknown_measurement")


def test_an_upload_that_cannot_stand_in_is_refused_where_it_is_named(client: TestClient) -> None:
    uploaded(client, unequal(**GPUS))
    uploaded(client, unequal(name="t4s"))
    wrong_kind = refused(client, paper="sia", items=["fig-8"], profiles="lab")
    assert (wrong_kind["pointer"], wrong_kind["value"]) == ("/profiles", "lab")
    not_taken = refused(client, paper="sia", items=["fig-8"], variability="lab")
    assert (not_taken["pointer"], not_taken["value"]) == ("/variability", "lab")
    assert not_taken["remedy"] == "Leave it out: no item of sia takes it."
    assert refused(client, paper="bsbf", variability="lab")["pointer"] == "/variability"
    lacking = refused(client, paper="pal", items=["fig-4"], variability="t4s")
    assert (lacking["pointer"], lacking["value"]) == ("/variability", "t4s")
    assert "no measurements of resnet" in lacking["message"]
    assert client.get(PAPERS, params={"trace": "nowhere"}).status_code == 422


def test_an_upload_of_another_tenant_is_as_if_it_were_not_there(
    client: TestClient, client_as: Callable[..., TestClient], database: Database
) -> None:
    upload = uploaded(client, unequal(**GPUS))
    found = ask(client, "pal", "fig-4", variability="lab")
    other = client_as(Role.SUBMITTER, tenant="other")
    for given in ("lab", upload["id"], "no-such"):
        body = {"paper": "pal", "items": ["fig-4"], "variability": given}
        error = refused(other, **body)
        assert (error["code"], error["value"]) == ("unknown_measurement", given)
        assert other.get(PAPERS, params={"variability": given}).status_code == 422
    assert other.get(f"{REPRODUCTIONS}/{found['id']}").status_code == 404
    assert listed(other, "pal", "fig-4")["newest"] is None


def test_a_list_says_how_many_runs_a_whole_item_has(
    app: FastAPI, client: TestClient, settings: Settings
) -> None:
    assert listed(client, "sia", "table-3")["whole_runs"] == 27
    assert listed(client, "sia", "table-1")["whole_runs"] == 0
    assert listed(client, "pal", "fig-13")["whole_runs"] is None, "it cannot be made"
    runs = listed(client, "bsbf", "fig-1")["whole_runs"]
    app.state.settings = settings.model_copy(update={"whole_paper_runs": runs})
    ask(client, "bsbf", "fig-1", quick=False)
    app.state.settings = settings.model_copy(update={"whole_paper_runs": runs - 1})
    assert refused(client, paper="bsbf", items=["fig-1"], quick=False)["code"] == "too_large"
    app.state.settings = settings.model_copy(update={"whole_paper_runs": 0})
    assert listed(client, "bsbf", "fig-1")["whole_runs"] is None, "it makes none"


def test_what_cannot_be_asked_for_is_named_with_a_remedy(refusing: TestClient) -> None:
    unknown = refused(refusing, paper="themis")
    assert (unknown["pointer"], unknown["value"]) == ("/paper", "themis")
    assert "sia, pollux, bsbf, pal" in unknown["remedy"]
    other = refused(refusing, paper="bsbf", items=["fig-1", "fig-13"])
    assert (other["pointer"], other["value"]) == ("/items/1", "fig-13")
    assert "fig-6a" in other["remedy"]
    hardware = refused(refusing, paper="pal", items=["fig-3"])
    assert (hardware["pointer"], hardware["code"]) == ("/items/0", "cannot_be_made")
    assert "Nsight" in hardware["message"]
    data = refused(refusing, paper="pal", items=["fig-13"])
    assert "It needs published data" in data["message"]
    assert refused(refusing, paper="sia", items=[])["pointer"] == "/items"
    assert refused(refusing, paper="sia", data="/etc")["pointer"] == "/data"


def test_a_whole_one_is_taken_up_to_what_the_operator_allows(
    app: FastAPI, client: TestClient, settings: Settings
) -> None:
    assert ask(client, "sia", "table-3", quick=False)["quick"] is False
    app.state.settings = settings.model_copy(update={"whole_paper_runs": 5})
    error = refused(client, paper="sia", items=["table-2", "table-3"], quick=False)
    assert error["pointer"] == "/quick"
    assert "more runs than this service plays for one whole reproduction: 5" in error["message"]
    assert "MAAT_WHOLE_PAPER_RUNS" in error["remedy"]
    app.state.settings = settings.model_copy(update={"whole_paper_runs": 0})
    alone = refused(client, paper="sia", items=["table-3"], quick=False)
    assert "quick reproductions alone" in alone["message"]
    assert ask(client, "sia", "table-3")["quick"] is True


def test_no_reader_learns_where_the_data_lie(
    app: FastAPI, client: TestClient, settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "published"
    app.state.settings = settings.model_copy(update={"data": folder})
    (folder / "pal").mkdir(parents=True)
    found = client.get(PAPERS)
    assert found.json()["has_data"] is True
    assert "(not in MAAT_DATA)" in listed(client, "pal", "fig-13")["because"]
    assert str(tmp_path) not in found.text
    (folder / "pal").rmdir()
    gone = client.get(PAPERS)
    assert (gone.json()["has_data"], str(tmp_path) in gone.text) == (False, False)
    assert "has nothing of the papers" in gone.json()["data_problem"]


def test_an_item_that_was_made_has_table_figure_and_files(
    client: TestClient, database: Database
) -> None:
    found = ask(client, "sia", "table-2", "table-1")
    address = f"{REPRODUCTIONS}/{found['id']}"
    waiting = client.get(f"{address}/items/table-2").json()
    assert (waiting["state"], waiting["rows"], waiting["figure"]) == ("queued", [], None)
    assert client.get(f"{address}/items/table-2/csv").status_code == 409
    assert client.get(f"{address}/report/html").status_code == 409
    make(database, found["id"])
    item = client.get(f"{address}/items/table-2").json()
    assert (item["state"], item["rows"], item["why"]) == (
        "succeeded",
        RESULT["rows"],
        RESULT["why"],
    )
    assert item["figure"] == RESULT["figure"]
    table = client.get(f"{address}/items/table-2/csv")
    assert table.headers["content-disposition"] == 'attachment; filename="sia-table-2.csv"'
    assert table.text.splitlines() == [
        "policy,measure,published,ours,difference,spread,runs",
        f"Sia,hours,1.5,1.25,{-1 / 6},,1",
    ]
    report = client.get(f"{address}/report/html")
    assert report.headers["content-type"].startswith("text/html")
    assert "Plotly.newPlot" in report.text
    assert "Made by Maat&#x27;s service, as asked for at 20" in report.text
    assert "Ours has &lt;b&gt;fewer&lt;/b&gt; jobs." in report.text
    assert report.text.count("<section") == 2
    assert "## Table 1: " in client.get(f"{address}/report/md").text
    assert client.get(f"{address}/items/fig-8").status_code == 404
    assert client.get(f"{address}/report/pdf").status_code == 422


def test_the_newest_reproduction_of_an_item_is_listed_and_the_newest_that_was_made(
    client: TestClient, database: Database
) -> None:
    first = ask(client, "sia", "table-2")
    make(database, first["id"])
    second = ask(client, "sia", "table-2", quick=False)
    item = listed(client, "sia", "table-2")
    assert (item["newest"]["reproduction_id"], item["newest"]["state"]) == (second["id"], "queued")
    assert item["newest"]["quick"] is False
    assert item["newest_made"]["reproduction_id"] == first["id"]
    assert listed(client, "sia", "table-1")["newest"] is None


def test_another_tenant_sees_the_papers_and_nothing_of_their_reproductions(
    client: TestClient, client_as: Callable[..., TestClient], database: Database
) -> None:
    found = ask(client_as(Role.SUBMITTER), "sia", "table-2")
    make(database, found["id"])
    other, viewer = client_as(Role.SUBMITTER, tenant="other"), client_as(Role.VIEWER)
    assert listed(other, "sia", "table-2")["newest"] is None
    assert listed(viewer, "sia", "table-2")["newest"]["reproduction_id"] == found["id"]
    assert other.get(REPRODUCTIONS).json()["items"] == []
    for path in ("", "/items/table-2", "/items/table-2/csv", "/report/html"):
        answer = other.get(f"{REPRODUCTIONS}/{found['id']}{path}")
        assert (answer.status_code, viewer.get(str(answer.url)).status_code) == (404, 200)
    cancel = f"/api/v1/operations/{found['operation_id']}/actions/cancel"
    assert other.post(cancel).status_code == 404
    assert viewer.post(REPRODUCTIONS, json={"paper": "sia"}).status_code == 403


def test_one_that_is_cancelled_before_it_began_shows_its_items_as_cancelled(
    client: TestClient,
) -> None:
    found = ask(client, "sia", "table-2")
    client.post(f"/api/v1/operations/{found['operation_id']}/actions/cancel")
    shown = client.get(f"{REPRODUCTIONS}/{found['id']}").json()
    assert (shown["state"], shown["items"][0]["state"]) == ("cancelled", "cancelled")
    assert listed(client, "sia", "table-2")["newest"]["state"] == "cancelled"


def test_a_reproduction_counts_among_the_simulations_of_its_user(
    app: FastAPI, client_as: Callable[..., TestClient], settings: Settings
) -> None:
    app.state.rate_limits = RateLimits(settings.model_copy(update={"simulations_per_hour": 1}))
    asking = client_as(Role.SUBMITTER)
    ask(asking, "sia", "table-2")
    assert asking.post(REPRODUCTIONS, json={"paper": "sia"}).status_code == 429
