"""Statements that SQLAlchemy has compiled, for all databases that the tests of a process open.

It compiles each statement once for an engine. A service has one engine for its life, but each test
one or two: half of what a request costs in a test is to compile what the last test compiled.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.util import LRUCache

from backend import database

MOST_STATEMENTS = 5000

_first: dict[str, Engine] = {}


def share(engine: Engine) -> None:
    """Let later databases on the same system compile for this engine's dialect.

    The engine has connected: its dialect knows the server.
    """
    if engine.dialect.name not in _first:
        engine._compiled_cache = LRUCache(MOST_STATEMENTS)
        _first[engine.dialect.name] = engine


def _shares(make: Any) -> Any:
    def made(url: sa.URL, *arguments: Any) -> Engine:
        engine: Engine = make(url, *arguments)
        first = _first.get(engine.dialect.name)
        if first is not None:
            engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
        return engine

    return made


database._sqlite_engine = _shares(database._sqlite_engine)
database._postgres_engine = _shares(database._postgres_engine)
