"""Makes messages of what happened: of each notice, one for every webhook that hears of it.

A notice goes in the transaction that queues its messages, so each is told once to each webhook,
whatever worker is killed.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.database import Database
from backend.models import Webhook, WebhookNotice
from backend.settings import Settings
from backend.webhooks.deliveries import add_message
from worker.webhooks.messages import told_of

AT_ONCE = 200  # notices per transaction, to keep it short


def take_notices(database: Database, settings: Settings) -> int:
    """Queue the messages of the oldest notices; return how many notices were taken.

    Finds out without the writer's lock whether there are any. Of two workers, one waits for the
    other: the numbers of a webhook's messages have no gap.
    """
    if not are_there(database):
        return 0
    with database.session_scope() as session:
        webhooks = _listening(session)
        oldest = select(WebhookNotice).order_by(col(WebhookNotice.id)).limit(AT_ONCE)
        notices = session.exec(oldest).all()
        for notice in notices:
            _tell(session, webhooks, notice, settings)
        taken = col(WebhookNotice.id).in_([notice.id for notice in notices])
        session.flush()
        session.connection().execute(sa.delete(WebhookNotice).where(taken))
    return len(notices)


def are_there(database: Database) -> bool:
    with database.session_scope(writes=False) as session:
        return session.exec(select(WebhookNotice.id).limit(1)).first() is not None


def _listening(session: Session) -> Sequence[Webhook]:
    """Return the webhooks that are not paused, locked."""
    active = select(Webhook).where(col(Webhook.active))
    return session.exec(active.order_by(col(Webhook.id)).with_for_update()).all()


def _tell(
    session: Session, webhooks: Sequence[Webhook], notice: WebhookNotice, settings: Settings
) -> None:
    told = told_of(session, notice, public_url=settings.public_url)
    if told is None:
        return
    for webhook in webhooks:
        if told.is_heard_by(webhook):
            add_message(session, webhook, told.event.value, told.content)
