"""Migrations on both databases: from zero to now and back, and the same schema as the code's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic.script import ScriptDirectory

from alembic import command
from backend.database import Database
from backend.migrations import alembic_config, is_current, upgrade
from backend.models import metadata


def run(database: Database, action: str, *arguments: str) -> None:
    with database.migration() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        getattr(command, action)(config, *arguments)


def test_an_empty_database_is_brought_to_the_schema_of_the_code(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    assert not is_current(database)
    upgrade(database)
    assert is_current(database)
    assert set(metadata.tables) <= set(sa.inspect(database.engine).get_table_names())
    run(database, "check")
    database.dispose()


def test_migrating_twice_changes_nothing(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    upgrade(database)
    upgrade(database)
    assert is_current(database)
    database.dispose()


def test_every_migration_can_be_taken_back(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    upgrade(database)
    run(database, "downgrade", "base")
    assert set(sa.inspect(database.engine).get_table_names()) <= {"alembic_version"}
    upgrade(database)
    run(database, "check")
    database.dispose()


def test_there_is_one_line_of_migrations() -> None:
    assert len(ScriptDirectory.from_config(alembic_config()).get_heads()) == 1
