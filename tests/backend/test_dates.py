"""Dates of requests are RFC 3339 and nothing else, wherever one is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

DATES = {
    "/api/v1/jobs": ["submitted_after", "submitted_before"],
    "/api/v1/clusters/demo/rounds": ["after", "before"],
    "/api/v1/clusters/demo/timeline": ["from", "to"],
    "/api/v1/fairness": ["from", "to"],
    "/api/v1/usage": ["from", "to"],
    "/api/v1/clusters/demo/report": ["from", "to"],
    "/api/v1/clusters/demo/report/{form}": ["from", "to"],
    "/api/v1/clusters/demo/report-files": ["from", "to"],
    "/api/v1/audit": ["from", "to"],
    "/api/v1/audit/export/{form}": ["from", "to"],
    "/api/v1/fairness/worst": ["from", "to"],
    "/api/v1/fairness/shares": ["from", "to"],
}
BODIES = {
    "/api/v1/jobs": ["deadline"],
    "/api/v1/clusters/demo/reservations": ["start_at", "end_at"],
    "/api/v1/fairness/actions/recompute": ["from", "to"],
    "/api/v1/reports": ["from", "to"],
    "/api/v1/tokens": ["expires_at"],
}
OF_OTHER_BODIES = {("/api/v1/jobs:batch", "jobs")}  # each is a body that is tried by itself
REST_OF_BODY = {
    "/api/v1/jobs": {"name": "train", "model": "bert"},
    "/api/v1/clusters/demo/reservations": {"gpu_type": "t4", "gpu_count": 1, "tenant": "default"},
    "/api/v1/reports": {"cluster": "demo"},
    "/api/v1/tokens": {"name": "laptop"},
}
LATER = {"to": "2026-11-21T12:00:00Z"}
NO_DATES = [
    "0.5",
    "1700000000",
    "-1",
    "1e9",
    "NaN",
    "",
    "yesterday",
    "2026-11-20",
    "12:00:00Z",
    "20261120T120000Z",
    "2026-W47-5T12:00:00Z",
    "2026-324T12:00:00Z",
    "2026-11-20T12:00:00",
    "2026-11-20T12:00Z",
    "2026-11-20T12:00:00+01",
    "2026-11-20T12:00:00 01:00",
    "2026-13-20T12:00:00Z",
    "2026-11-20T25:00:00Z",
    "2026-11-20T12:00:60Z",
    "2026-11-20T12:00:00+24:00",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-23:59",
    "\uff12026-11-20T12:00:00Z",
]
SAME_MOMENT = [
    "2026-11-20T12:00:00Z",
    "2026-11-20t12:00:00.000z",
    "2026-11-20T13:00:00+01:00",
    "2026-11-20 06:30:00.000000000-05:30",
]


def said_to_be_dates(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Query parameters and fields of bodies that the document calls dates."""
    document = app.openapi()
    for path, operations in document["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", []):
            if "date-time" in str(parameter["schema"]):
                yield path, parameter["name"]
        body = str(operations.get("post", {}).get("requestBody", ""))
        for name, schema in document["components"]["schemas"].items():
            if f"/{name}'" in body:
                yield from (
                    (path, field)
                    for field, given in schema["properties"].items()
                    if "date-time" in str(given)
                )


def test_every_date_of_a_request_is_tried_here(app: FastAPI) -> None:
    given = [*DATES.items(), *BODIES.items()]
    tried = {(path, name) for path, names in given for name in names} | OF_OTHER_BODIES
    assert {
        (path.replace("{cluster_id}", "demo"), name) for path, name in said_to_be_dates(app)
    } == tried


def test_what_is_no_date_is_refused_by_name_value_and_remedy(client: TestClient) -> None:
    for path, names in DATES.items():
        for name in names:
            for given in NO_DATES:
                check(client.get(path.replace("{form}", "json"), params={name: given}), name, given)


def test_what_is_no_date_is_refused_in_a_body_too(client: TestClient) -> None:
    for path, names in BODIES.items():
        for name in names:
            for given in [*NO_DATES, 0.5, 1_700_000_000, True, [], {}]:
                body = REST_OF_BODY.get(path, {}) | {name: given}
                check(client.post(path, json=body), name, given)


def check(answer: Any, name: str, given: Any) -> None:
    assert answer.status_code == 422, (name, given, answer.text)
    (error,) = answer.json()["errors"]
    assert (error["field"], error["remedy"] != "") == (name, True)
    assert "2026-11-20T12:00:00Z" in error["remedy"] or "9999" in error["remedy"]
    if isinstance(given, str | float):
        assert error["value"] == given


@pytest.mark.parametrize("given", SAME_MOMENT)
def test_a_date_may_have_any_offset(client: TestClient, given: str) -> None:
    body = {
        "gpu_type": "t4",
        "gpu_count": 1,
        "tenant": "default",
        "end_at": "2200-01-01T00:00:00Z",
        "start_at": given.replace("2026", "2126"),
    }
    made = client.post("/api/v1/clusters/demo/reservations", json=body)
    assert made.json()["start_at"] == "2126-11-20T12:00:00.000Z", made.text
    for path, names in DATES.items():
        params = dict.fromkeys(names, given) | {k: v for k, v in LATER.items() if k in names}
        assert client.get(path.replace("{form}", "json"), params=params).status_code == 200
