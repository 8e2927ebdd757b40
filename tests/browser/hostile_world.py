"""A world in which every text that a tenant gave is hostile: markup, formulas, turned letters."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn
from sqlmodel import col, select

from backend.models import Job, Round
from benchmarks.service.real_server import free_port

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "frontend"))

from two_tenants import SECRET, World, make_world

HOSTILE = (
    "=cmd()\"'><img src=x onerror=\"window.hacked='image'\"><b>bold</b>{{7*7}}"
    "[link](javascript:hacked=1)\u2067right\u2069\u200f\u202eturned \u05d0\u05d1"
)
LONGEST = (HOSTILE + "W" * 200)[:200]


@contextmanager
def hostile_world(folder: Path) -> Iterator[tuple[str, World]]:
    """Serve the world of two tenants with red's word made hostile; yields its address."""
    world = make_world(folder)
    _make_hostile(folder / "maat.db")
    with world.database.session_scope() as session:
        session.get_one(Job, world.red["jobs"][0]).name = LONGEST
    job = {"name": LONGEST, "model": "bert"}
    world.client("red-submitter").post("/api/v1/jobs", json=job).raise_for_status()
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(world.app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}", world
    finally:
        server.should_exit = True
        thread.join(30)


def _make_hostile(file: Path) -> None:
    """Replace red's word in every text of the database, and the names of cluster and nodes.

    The API would refuse some of these names, which stand in addresses: they stand for rows of
    before and of other systems, such as an identity provider.
    """
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.create_function("hostile", 1, _hostile)
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (trigger,) in triggers.fetchall():  # records of changes are kept from being changed
            database.execute(f'DROP TRIGGER "{trigger}"')
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in database.execute(f'PRAGMA table_info("{table}")').fetchall():
                column = f'"{row[1]}"'
                database.execute(
                    f'UPDATE "{table}" SET {column} = hostile({column}) WHERE instr({column}, ?)',
                    (SECRET,),
                )
        for table in ("clusters", "nodes"):
            database.execute(f"UPDATE {table} SET name = name || ?", (HOSTILE,))


def _hostile(value: str | bytes) -> str | bytes:
    """Return text with red's word replaced, JSON so that it stays JSON."""
    if not isinstance(value, str):
        return value
    is_json = value[:1] in ("{", "[")
    return value.replace(SECRET, json.dumps(HOSTILE)[1:-1] if is_json else HOSTILE)


def last_round(world: World) -> int:
    with world.database.session_scope(writes=False) as session:
        return session.exec(select(Round.number).order_by(col(Round.number).desc())).first() or 0
