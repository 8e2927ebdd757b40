"""A reproduction of papers' items in a database, as the service stores one; its state as shown."""

from __future__ import annotations

from live_samples import make_owner
from remembering_queue import RememberingQueue

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.database import Database
from backend.models import Reproduction
from backend.operations.service import cancel_operation
from backend.papers.resources import show_item_detail, show_reproductions
from backend.papers.service import check_reproduction, get_item, store_reproduction
from backend.settings import Settings
from maat.api.papers import ReproducedItemDetail, ReproductionBody, ReproductionOut


def ask(database: Database, settings: Settings, paper: str, *items: str) -> str:
    """Ask for items as the service does; return the reproduction's id."""
    body = ReproductionBody(paper=paper, items=list(items) or None)
    asked = check_reproduction(body, settings)
    asking, queue = _asking(database), RememberingQueue()
    with database.session_scope() as session:
        found = store_reproduction(session, asking, asked, queue).id
    assert queue.sent == [("maat.reproduce", found)]
    return found


def cancel(database: Database, found: str) -> None:
    asking = _asking(database)
    with database.session_scope() as session:
        cancel_operation(session, asking, session.get_one(Reproduction, found).operation_id)


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
