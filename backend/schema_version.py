"""Which schema a database has, and which one this version needs.

Asks no Alembic, which takes every process half a second to import. Revisions are numbered, and the
name of a migration's file begins with its number: test_migrations.py compares both with Alembic.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import sqlalchemy as sa

_VERSIONS = Path(__file__).resolve().parent.parent / "alembic" / "versions"


@cache
def known_revisions() -> Sequence[str]:
    """Return the revisions of this version's code, the newest last."""
    return tuple(sorted(path.name.partition("_")[0] for path in _VERSIONS.glob("[0-9]*_*.py")))


def head_revision() -> str:
    """Return the newest revision of this version's code."""
    return known_revisions()[-1]


def revision_of(connection: sa.Connection) -> str | None:
    """Return the revision of a database's schema; None for a database without tables of Maat."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return found
