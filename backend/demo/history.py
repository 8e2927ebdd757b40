"""The history that a demo cluster begins with: rows of rounds that were played beforehand.

`python -m worker.demo_history` plays them and writes the file beside this one. It holds the rows at
the beginning of several days: first whole, then by what changed since. What is stored is what stood
in the database that was played, but for three things. Ids are new. Days lie where the cluster's
calendar begins. Wall time is now, since a history is made as it is stored.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import lzma
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, SQLModel, select

from backend import models
from backend.accounts.models import Tenant, User
from backend.clocktime import wind_to
from backend.clusters.models import Cluster, Node
from backend.columns import UtcDateTime
from backend.demo.people import ensure_people
from backend.ids import new_id
from backend.jobs.counting import fold_counts
from backend.moments import moment_of
from backend.periods import DAY, day_start

FILE = Path(__file__).with_name("history.jsonl.xz")
WHOLE_WEEKS = 2
LEAST_PLAYED = dt.timedelta(hours=4)
"""At least this much of the history is played at the first start: its rounds can be looked at."""

TABLES = (
    "allocation_readings",
    "allocations",
    "batch_changes",
    "capacity_days",
    "cluster_states",
    "ended_beliefs",
    "ended_days",
    "executor_jobs",
    "executor_samples",
    "forecast_promises",
    "job_dependencies",
    "job_events",
    "job_fairness",
    "job_gradients",
    "job_pauses",
    "job_wait_reasons",
    "jobs",
    "marginal_value_days",
    "rho_days",
    "rounds",
    "share_days",
    "summed_days",
    "summed_rounds",
    "usage_days",
    "wait_days",
)
"""What the file holds: of rounds the last few before each beginning, as if the others were old."""

ID = re.compile(r"\b([a-z]{2,4})_[0-9a-hjkmnp-tv-z]{26}\b")
PLACE = re.compile(r"<([a-z]{2,4}:[0-9]+)>")

Row = Mapping[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Beginning:
    """Where a cluster goes on: its second, its next round, and its rows by table."""

    seconds: float
    next_round_number: int
    tables: Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Calendar:
    """From where on the cluster's time counts, and from which of its seconds on it is played."""

    epoch: dt.datetime
    begins: float


def calendar_of(now: dt.datetime, beginnings: Sequence[float]) -> Calendar:
    """Return the calendar of a cluster that is made now: two whole weeks lie before this one.

    `beginnings`: the cluster seconds at which the file can begin, in order.
    """
    latest = (now - LEAST_PLAYED).astimezone(dt.UTC)
    day = (latest - dt.timedelta(seconds=beginnings[0] % DAY.total_seconds())).date()
    epoch = day_start(day - (day.weekday() + WHOLE_WEEKS * 7) * DAY)
    passed = (latest - epoch).total_seconds()
    return Calendar(epoch, max(seconds for seconds in beginnings if seconds <= passed))


class History:
    """The file: a line that says what is in it, then one for each beginning."""

    def __init__(self, text: str) -> None:
        first, *self._parts = text.splitlines()
        self._head: Mapping[str, Any] = json.loads(first)

    @classmethod
    def shipped(cls, file: Path = FILE) -> History:
        with lzma.open(file, "rt", encoding="utf-8") as text:
            return cls(text.read())

    @property
    def beginnings(self) -> list[float]:
        return [float(seconds) for seconds, _ in self._head["beginnings"]]

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """What stands for the ids of tenants, users, nodes and the cluster: [kind, name]."""
        names: Mapping[str, Sequence[str]] = self._head["names"]
        return names

    @property
    def jobs(self) -> Sequence[str]:
        """What stands for the ids of jobs, in the order in which they came."""
        first, number = self._head["jobs"]
        return [f"job:{place}" for place in range(first, first + number)]

    def at(self, seconds: float, ids: Mapping[str, str] | None = None) -> Beginning:
        """Return the rows as they were at this beginning. `ids`: what to put in their places."""
        tables: dict[str, dict[Key, dict[str, Any]]] = {name: {} for name in TABLES}
        for (begins, next_round_number), text in zip(
            self._head["beginnings"], self._parts, strict=True
        ):
            filled = text if ids is None else PLACE.sub(lambda match: ids[match.group(1)], text)
            for name, change in json.loads(filled).items():
                _apply(tables[name], change, key=_key_of(name))
            if begins == seconds:
                rows = {name: list(found.values()) for name, found in tables.items()}
                return Beginning(seconds, next_round_number, rows)
        raise ValueError(f"The history has no beginning at {seconds:g} s.")


def store_history(session: Session, cluster: Cluster, history: History, begins: float) -> None:
    """Store the rows of this beginning, and have the cluster go on from there.

    All in the caller's transaction: a cluster has its whole history or is not there.
    """
    ensure_people(session)
    now = moment_of(session)
    ids = _ids_of(session, cluster, history.names)
    ids |= {place: new_id("job") for place in history.jobs}
    beginning = history.at(begins, ids)
    first_day, connection = cluster.epoch.date(), session.connection()
    for table in models.metadata.sorted_tables:
        if rows := beginning.tables.get(table.name):
            connection.execute(sa.insert(table), _to_insert(table, rows, first_day, now.wall))
    fold_counts(session)
    cluster.next_round_number = beginning.next_round_number
    wind_to(cluster, now, begins)
    session.add(cluster)
    session.flush()


def text_of(parts: Sequence[Beginning], names: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a file of these beginnings: the first whole, the others by what changed.

    `names`: what an id of a tenant, a user, a node or the cluster stands for: [kind, name]. Jobs
    have no name. Raises KeyError for another id.
    """
    before: dict[str, dict[Key, Row]] = {name: {} for name in TABLES}
    changes = []
    for part in parts:
        after = {name: {_key_of(name)(row): row for row in part.tables[name]} for name in TABLES}
        changed = {name: _change(before[name], after[name]) for name in TABLES}
        changes.append(_json({name: change for name, change in changed.items() if change}))
        before = after
    places = {
        found: f"{found.split('_')[0]}:{number}"
        for number, found in enumerate(
            sorted({match.group(0) for text in changes for match in ID.finditer(text)})
        )
    }
    jobs = [number for number, found in enumerate(places) if found.startswith("job_")]
    head = {
        "beginnings": [[part.seconds, part.next_round_number] for part in parts],
        "names": {place: names[id] for id, place in places.items() if not id.startswith("job_")},
        "jobs": [min(jobs, default=0), len(jobs)],
    }
    filled = (ID.sub(lambda match: f"<{places[match.group(0)]}>", text) for text in changes)
    return "\n".join([_json(head), *filled])


def write_history(text: str, file: Path = FILE) -> None:
    file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def plain_row(table: sa.Table, row: Row, first_day: dt.date) -> dict[str, Any]:
    """Return a row as JSON holds it: days count from the first, moments are only there or not."""
    return {column.name: _plain(column, row[column.name], first_day) for column in table.columns}


def _plain(column: sa.Column[Any], value: Any, first_day: dt.date) -> Any:
    if value is None:
        return None
    if isinstance(column.type, UtcDateTime):
        return True
    if isinstance(value, dt.date):
        return (value - first_day).days
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _to_insert(
    table: sa.Table, rows: Sequence[Row], first_day: dt.date, now: dt.datetime
) -> list[dict[str, Any]]:
    """Return rows to insert. The database numbers rows itself; new columns have their default."""
    columns = [column for column in table.columns if column is not table.autoincrement_column]
    given = [column for column in columns if column.name in rows[0]]
    defaults = _defaults(table, [c.name for c in columns if c.name not in rows[0]])
    return [
        {
            **defaults,
            **{column.name: _stored(column, row[column.name], first_day, now) for column in given},
        }
        for row in rows
    ]


def _stored(column: sa.Column[Any], value: Any, first_day: dt.date, now: dt.datetime) -> Any:
    if value is None:
        return None
    if isinstance(column.type, UtcDateTime):
        return now
    if isinstance(column.type, sa.Date):
        return first_day + dt.timedelta(days=value)
    return base64.b64decode(value) if isinstance(column.type, sa.LargeBinary) else value


def _defaults(table: sa.Table, missing: Sequence[str]) -> dict[str, Any]:
    """Return what columns are set to that the file was written without."""
    fields = model_of(table.name).model_fields
    return {name: fields[name].get_default(call_default_factory=True) for name in missing}


def model_of(table: str) -> type[SQLModel]:
    """Return the class whose fields a table has."""
    classes: list[type[SQLModel]] = [getattr(models, name) for name in models.__all__]
    return next(one for one in classes if getattr(one, "__tablename__", None) == table)


def _key_of(table: str) -> Callable[[Row], Key]:
    names = [column.name for column in models.metadata.tables[table].primary_key]
    return lambda row: tuple(row[name] for name in names)


def _change(before: Mapping[Key, Row], after: Mapping[Key, Row]) -> dict[str, Any]:
    """Return the rows that are new or differ, by column, and the keys of those that are gone."""
    new = [row for key, row in after.items() if before.get(key) != row]
    gone = [list(key) for key in before if key not in after]
    columns = {name: [row[name] for row in new] for name in (new[0] if new else ())}
    parts = {"rows": columns, "gone": gone}
    return {name: value for name, value in parts.items() if value}


def _apply(
    rows: dict[Key, dict[str, Any]], change: Mapping[str, Any], *, key: Callable[[Row], Key]
) -> None:
    for gone in change.get("gone", ()):
        del rows[tuple(gone)]
    columns: Mapping[str, list[Any]] = change.get("rows", {})
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        rows[key(row)] = row


def _ids_of(
    session: Session, cluster: Cluster, names: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the ids of what is there already, by what stands for them."""
    nodes = select(Node.name, Node.id).where(Node.cluster_id == cluster.id)
    ids: dict[tuple[str, str], str] = {("cluster", cluster.name): cluster.id}
    ids |= {("node", name): id for name, id in session.exec(nodes)}
    ids |= {("tenant", name): id for name, id in session.exec(select(Tenant.name, Tenant.id))}
    ids |= {("user", name): id for name, id in session.exec(select(User.name, User.id))}
    return {place: ids[kind, name] for place, (kind, name) in names.items()}
