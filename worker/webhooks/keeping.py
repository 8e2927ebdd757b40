"""Gives up messages of webhooks that are too old to send, and deletes those that ended long ago."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa
from sqlmodel import col

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import OperationState, WebhookDelivery

AT_ONCE = 500  # rows per transaction, to keep it short
_GIVEN_UP = "It was given up: its time was over before it arrived."


def give_up(database: Database) -> int:
    """End the queued messages whose time is over; return how many."""
    now = utc_now()
    late = (
        col(WebhookDelivery.finished_at).is_(None),
        col(WebhookDelivery.state) == OperationState.QUEUED,
        col(WebhookDelivery.until) < now,
    )
    with database.session_scope(writes=False) as session:
        first = sa.select(col(WebhookDelivery.id)).where(*late).limit(1)
        if session.connection().execute(first).first() is None:
            return 0
    told = sa.case(
        (col(WebhookDelivery.message) == "", sa.literal(_GIVEN_UP)),
        else_=sa.func.substr(col(WebhookDelivery.message), 1, 900) + " " + _GIVEN_UP,
    )
    ended = sa.update(WebhookDelivery).where(*late)
    values = {"state": OperationState.FAILED.value, "finished_at": now, "message": told}
    with database.session_scope() as session:
        return session.connection().execute(ended.values(**values)).rowcount


def prune(database: Database, *, days: float) -> int:
    """Delete messages that ended longer ago than this; return how many. In portions."""
    before, gone = utc_now() - timedelta(days=days), 0
    old = sa.select(col(WebhookDelivery.id)).where(col(WebhookDelivery.finished_at) < before)
    portion = old.limit(AT_ONCE)
    while True:
        with database.session_scope(writes=False) as session:
            found = list(session.connection().execute(portion).scalars())
        if not found:
            return gone
        these = sa.delete(WebhookDelivery).where(col(WebhookDelivery.id).in_(found))
        with database.session_scope() as session:
            gone += session.connection().execute(these).rowcount
