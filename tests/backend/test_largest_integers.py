"""Every integer of every body at its largest, on both databases: answered or refused, never failed.

The largest is what the document of the API says, so a bound that a column does not take is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from reporting_agent import Agent, steps
from test_hostile_numbers import BODIES

from backend.database import Database
from backend.models import metadata
from backend.settings import Settings
from maat.vocabulary import LARGEST_COUNT, LARGEST_INTEGER

pytestmark = pytest.mark.both_databases

REPORT = {
    "sequence": 1,
    "kind": "report",
    "incarnation": "one",
    "world_size": 2,
    "gpu_type": "cpu",
    "progress": {"effective_samples": 640.0, "steps": 10, "epoch": 1},
    "passes": [{**steps(0.1), "accumulation_steps": 0}],
    "gradient": {"square": 0.5, "variance": 2.0, "steps": 4, "at_batch_size": 64},
    "checkpoint": {"step": 10, "seconds": 1.0, "bytes": 100},
    "memory": {"out_of_memory_at": 64},
    "plan_number": 3,
}
CHANGES = {
    "a change of a job": ("PATCH", "/jobs/{job_id}", {"priority": 0, "min_gpus": 1, "max_gpus": 4}),
    "an array": (
        "POST",
        "/jobs:array",
        {"job": {"name": "x", "model": "bert", "batch_size": 24}, "indices": [0]},
    ),
    "nodes": (
        "POST",
        "/clusters/{cluster_id}/nodes",
        {"nodes": [{"gpu_type": "t4", "gpu_count": 4, "count": 1}]},
    ),
    "a command": (
        "POST",
        "/jobs",
        {
            "name": "x",
            "model": "script",
            "cluster_id": "here",
            "gpu_count": 1,
            "batch_size": 64,
            "priority": 0,
            "run": {"argv": ["train"], "cwd": "/", "max_retries": 1},
        },
    ),
}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


@pytest.fixture
def agent(client: TestClient, database: Database, settings: Settings) -> Agent:
    return Agent(client, database, settings)


class Document:
    """The document of the API, with its references followed."""

    def __init__(self, app: FastAPI) -> None:
        self._whole = app.openapi()

    def body_of(self, method: str, path: str) -> Mapping[str, Any]:
        content = self._whole["paths"][f"/api/v1{path}"][method.lower()]["requestBody"]["content"]
        schema: Mapping[str, Any] = content["application/json"]["schema"]
        return schema

    def bodies(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for path, methods in self._whole["paths"].items():
            for method, operation in methods.items():
                content = operation.get("requestBody", {}).get("content", {})
                if "application/json" in content:
                    yield f"{method} {path}", content["application/json"]["schema"]

    def parts(self, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return what a value may be: the schema, or its choices."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.parts(self._whole["components"]["schemas"][name])
        choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
        return [part for choice in choices for part in self.parts(choice)] or [schema]

    def integers(
        self, schema: Mapping[str, Any], way: str = "", within: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield every integer that a value may have, by the way to it."""
        for part in self.parts(schema):
            if part.get("type") == "integer" and "enum" not in part and "const" not in part:
                yield way, part
            title = str(part.get("title", ""))
            if title and title in within:
                continue
            for name, inner in part.get("properties", {}).items():
                yield from self.integers(inner, f"{way}/{name}", (*within, title))
            if isinstance(part.get("items"), dict):
                yield from self.integers(part["items"], f"{way}/*", within)

    def largest(self, schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
        """Yield the value with each of its integers in turn at the largest that it may be."""
        for part in self.parts(schema):
            if part.get("type") == "integer" and isinstance(value, int):
                yield largest_of(part)
            if part.get("type") == "object" and isinstance(value, dict):
                for name, inner in part.get("properties", {}).items():
                    for changed in self.largest(inner, value[name]) if name in value else ():
                        yield {**value, name: changed}
            if part.get("type") == "array" and isinstance(value, list) and value:
                for changed in self.largest(part["items"], value[0]):
                    yield [changed, *value[1:]]


def largest_of(schema: Mapping[str, Any]) -> int:
    if "exclusiveMaximum" in schema:
        return int(schema["exclusiveMaximum"]) - 1
    return int(schema["maximum"])


def test_every_integer_of_every_body_has_a_largest_that_json_holds(app: FastAPI) -> None:
    document = Document(app)
    unbounded = [
        f"{label} {way}"
        for label, schema in document.bodies()
        for way, part in document.integers(schema)
        if not {"maximum", "exclusiveMaximum"} & part.keys() or largest_of(part) > LARGEST_COUNT
    ]
    assert unbounded == []


def test_a_report_with_each_of_its_integers_at_the_largest(agent: Agent, app: FastAPI) -> None:
    document = Document(app)
    schema = document.body_of("POST", "/attempts/{attempt_id}/reports")
    answers = []
    for body in document.largest(schema, REPORT):
        agent.change(report_sequence=0)
        answer = agent.report(**deepcopy(body))
        assert answer.status_code in (200, 422), (body, answer.text)
        answers.append(answer.status_code)
    assert len(answers) == 15
    assert answers.count(200) >= 8  # the others are refused: more replicas than GPUs, and such


def test_steps_of_two_reports_may_be_more_than_an_integer_of_four_bytes(agent: Agent) -> None:
    """The second of two legal reports was answered 500 on PostgreSQL."""
    many = {**steps(1e-6), "steps": LARGEST_INTEGER, "sync_seconds": 0.0}
    progress = {"effective_samples": 1e6, "steps": LARGEST_COUNT}
    for number in (1, 2):
        assert agent.report(sequence=number, passes=[many], progress=progress).is_success


@pytest.mark.long
def test_every_body_with_each_of_its_integers_at_the_largest(agent: Agent, app: FastAPI) -> None:
    document, failed = Document(app), []
    job = agent.client.post("/api/v1/jobs", json={"name": "y", "model": "bert"}).json()["id"]
    asked = {name: ("POST", path, body) for name, (path, body) in BODIES.items()} | CHANGES
    fills = {"{job_id}": job, "{cluster_id}": "demo"}
    for name, (method, path, body) in asked.items():
        way = path.replace("/clusters/demo/", "/clusters/{cluster_id}/")
        for number, changed in enumerate(document.largest(document.body_of(method, way), body)):
            if "name" in changed:
                changed = {**changed, "name": f"{name} {number}"}
            for key, value in fills.items():
                path = path.replace(key, value)
            answer = agent.client.request(
                method, f"/api/v1{path}", json=changed, headers={"If-Match": "*"}
            )
            if answer.status_code >= 500:
                failed.append((name, changed, answer.text))
    assert failed == []


def test_columns_that_take_counts_of_reports_have_eight_bytes(database: Database) -> None:
    if database.engine.dialect.name != "postgresql":
        return  # an integer of SQLite has as many bytes as it needs
    taken = {
        "attempts": ("report_sequence", "checkpoint_step", "timed_steps"),
        "job_samples": ("count",),
        "job_gradients": ("steps",),
        "sharing_samples": ("victim_batch", "partner_batch"),
    }
    for table, names in taken.items():
        for name in names:
            kind = metadata.tables[table].c[name].type.compile(database.engine.dialect)
            assert kind == "BIGINT", (table, name)
