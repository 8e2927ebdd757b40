"""What tests of the worker share: migrated databases, and a cluster that runs commands in one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from training_samples import TrainingCluster

sys.path.insert(
    0, str(Path(__file__).resolve().parent.parent / "backend")
)  # the databases are the service's

from database_fixtures import *  # noqa: F403

from backend.database import Database
from backend.settings import Settings


@pytest.fixture
def cluster(database: Database, tmp_path: Path) -> Iterator[TrainingCluster]:
    """Commands that run on this machine; rounds are made when a test says so."""
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", allow_commands=True)
    found = TrainingCluster(database, settings, tmp_path)
    yield found
    found.close()
