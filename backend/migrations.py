"""Brings a database to the schema of this version.

The migrations are in alembic/.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from alembic import command
from backend.database import Database

_ROOT = Path(__file__).resolve().parent.parent


def alembic_config() -> Config:
    return Config(_ROOT / "alembic.ini")


@cache
def head_revision() -> str:
    """Return the newest revision of this version's code."""
    return str(ScriptDirectory.from_config(alembic_config()).get_current_head())


def upgrade(database: Database, revision: str = "head") -> None:
    """Run every migration that is missing, in one transaction."""
    with database.migration() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
