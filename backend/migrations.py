"""Brings a database to the schema of this version.

The migrations are in alembic/.
"""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config

from alembic import command
from backend.database import Database

_ROOT = Path(__file__).resolve().parent.parent


def alembic_config() -> Config:
    return Config(_ROOT / "alembic.ini")


def upgrade(database: Database, revision: str = "head") -> None:
    """Run every migration that is missing, in one transaction."""
    with database.migration() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
