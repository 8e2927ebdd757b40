"""A reproduction of papers' items in a database, as the service stores one; its state as shown."""

from __future__ import annotations

import sqlalchemy as sa
from live_samples import make_owner
from remembering_queue import RememberingQueue
from sqlmodel import col

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.clocktime import utc_now
from backend.database import Database
from backend.measurements.service import (
    delete_measurement,
    prepare_measurement,
    store_measurement,
)
from backend.models import PaperRun, ReproducedItem, ReproducedRun, Reproduction
from backend.operations.service import cancel_operation
from backend.papers.resources import show_item_detail, show_reproductions
from backend.papers.service import check_reproduction, get_item, store_reproduction
from backend.settings import Settings
from maat.api.measurements import FileBody, MeasurementBody
from maat.api.papers import ReproducedItemDetail, ReproductionBody, ReproductionOut
from maat.vocabulary import MeasurementKind
from worker.papers.wanting import RUNS, wanting


def ask(database: Database, settings: Settings, paper: str, *items: str, **own: str) -> str:
    """Ask for items as the service does; return the reproduction's id. `own`: uploads by kind."""
    body = ReproductionBody(paper=paper, items=list(items) or None, **own)
    asking, queue = _asking(database), RememberingQueue()
    with database.session_scope(writes=False) as session:
        asked = check_reproduction(session, asking, body, settings)
    with database.session_scope() as session:
        found = store_reproduction(session, asking, asked, queue).id
    assert queue.sent == [("maat.reproduce", found)]
    return found


def upload_gpus(database: Database, name: str, *, slowest: float = 1.5) -> str:
    """Upload measured GPUs of PAL's 64, of which one is slow; return the upload's id."""
    rows = "".join(f"gpu-{number},1\n" for number in range(19)) + f"gpu-19,{slowest}\n"
    names = [f"{application}-v100.csv" for application in ("resnet", "bert", "pagerank")]
    files = [FileBody(name=each, text=f"uuid,perf\n{rows}") for each in names]
    kind = MeasurementKind.VARIABILITY
    body = MeasurementBody(kind=kind, name=name, files=files, source="Our lab", licence="CC0")
    with database.session_scope() as session:
        prepared = prepare_measurement(session, _asking(database), body)
        return store_measurement(session, prepared).id


def delete_upload(database: Database, found: str) -> None:
    with database.session_scope() as session:
        delete_measurement(session, _asking(database), found)


def cancel(database: Database, found: str) -> None:
    asking = _asking(database)
    with database.session_scope() as session:
        cancel_operation(session, asking, session.get_one(Reproduction, found).operation_id)


def waiting_keys(database: Database) -> list[str]:
    """Keys of the runs without a worker, in the order in which they are played."""
    waits, _, _ = RUNS.standings(utc_now())
    first = sa.func.min(col(ReproducedItem.position))
    wanted = (
        wanting(col(PaperRun.key))
        .join(PaperRun, col(PaperRun.key) == col(ReproducedRun.run_key))
        .where(waits)
        .group_by(col(PaperRun.key))
        .order_by(first, col(PaperRun.key))
    )
    with database.session_scope(writes=False) as session:
        return list(session.exec(wanted))


def shown(database: Database, found: str) -> ReproductionOut:
    with database.session_scope(writes=False) as session:
        return show_reproductions(session, [session.get_one(Reproduction, found)])[0]


def item_of(database: Database, found: str, key: str) -> ReproducedItemDetail:
    with database.session_scope(writes=False) as session:
        reproduction = session.get_one(Reproduction, found)
        return show_item_detail(session, reproduction, get_item(session, reproduction, key))


def states(work: ReproductionOut) -> dict[str, str]:
    return {item["key"]: item["state"] for item in work["items"]}


def _asking(database: Database) -> Principal:
    user, tenant = make_owner(database)
    role = Role.CLUSTER_ADMIN
    return Principal(user, "owner", tenant, "tenant", role, PERMISSIONS[role])
