"""Brings a database to the schema of this version, and says whether it is there. The migrations themselves stand in alembic/."""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

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


def is_current(database: Database) -> bool:
    """Whether the database has the schema that this version of Maat expects."""
    with database.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    return found == ScriptDirectory.from_config(alembic_config()).get_current_head()
