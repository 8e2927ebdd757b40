"""Reports that the document allows, with an attempt's token, on both databases: never failed."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples
from reporting_agent import Agent

from backend.database import Database
from backend.settings import Settings

pytestmark = pytest.mark.both_databases


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"allow_commands": True})


@pytest.fixture
def agent(client: TestClient, database: Database, settings: Settings) -> Agent:
    return Agent(client, database, settings)


@pytest.mark.parametrize("count", [15, pytest.param(100, marks=pytest.mark.long)])
def test_no_report_that_the_document_allows_is_a_fault_of_the_service(
    app: FastAPI, agent: Agent, count: int
) -> None:
    way = "/api/v1/attempts/{attempt_id}/reports"
    operation = schemathesis.openapi.from_dict(app.openapi())[way]["POST"]
    statuses = set[int]()

    @examples(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def report(case: Any) -> None:
        agent.change(report_sequence=0, incarnation=None)
        for own in ({}, {"world_size": 2, "gpu_type": "cpu", "passes": [], "ranks": None}):
            answer = agent.report(**{**case.body, **own})
            assert answer.status_code in (200, 400, 422), (case.body, answer.text)
            statuses.add(answer.status_code)

    report()
    assert {200, 422} <= statuses
