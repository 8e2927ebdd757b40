"""Runs migrations on the settings' database, or on the caller's connection.

Holds no schema.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlmodel.sql.sqltypes import AutoString

from alembic import context
from backend.columns import CompressedJson, UtcDateTime
from backend.database import Database
from backend.models import metadata
from backend.settings import get_settings


def render_item(kind: str, item: object, _autogen_context: object) -> str | bool:
    """Render plain SQL types, so that migrations stay independent of the application."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, AutoString):
        return f"sa.String({item.length or ''})"
    if kind == "type" and isinstance(item, CompressedJson):
        return "sa.LargeBinary()"
    if kind == "type" and isinstance(item, sa.BigInteger):
        return "sa.BigInteger().with_variant(sa.Integer(), 'sqlite')"
    return False


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        render_item=render_item,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    database = Database.of(get_settings())
    with database.migration() as own:
        run(own)
    database.dispose()
