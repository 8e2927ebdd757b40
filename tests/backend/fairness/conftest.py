"""A cluster that began two days ago, for jobs that ended in it."""

from __future__ import annotations

import pytest
from ended_jobs import Rows
from fastapi.testclient import TestClient

from backend.database import Database


@pytest.fixture
def rows(client: TestClient, database: Database) -> Rows:
    return Rows(database)
