"""Messages of webhooks: made ready, listed, and sent once more by hand. Sends nothing.

Commits nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.audit.changes import Change, actor_of, record
from backend.clocktime import utc_now
from backend.ids import new_id
from backend.operations.models import OperationState
from backend.pagination import Order, PageAsked, Rows, paginate
from backend.problems import Conflict, NotFound
from backend.webhooks.models import Webhook, WebhookDelivery
from maat.api.fields import rfc3339
from maat.api.webhooks import TEST_EVENT

ENVELOPE = 1
GIVE_UP_HOURS = 24.0
"""A message that has not arrived so long after it was made, or sent again by hand, is given up."""


def add_message(
    session: Session, webhook: Webhook, kind: str, content: Mapping[str, Any]
) -> WebhookDelivery:
    """Queue a message as the webhook's next. The webhook's row must be locked."""
    now = utc_now()
    webhook.last_number += 1
    delivery_id = new_id("whd")
    message = {
        "version": ENVELOPE,
        "id": delivery_id,
        "webhook_id": webhook.id,
        "number": webhook.last_number,
        "type": kind,
        "made_at": rfc3339(now),
        **content,
    }
    row = WebhookDelivery(
        id=delivery_id,
        webhook_id=webhook.id,
        number=webhook.last_number,
        type=kind,
        body=json.dumps(message, separators=(",", ":")),
        created_at=now,
        next_try_at=now,
        until=now + timedelta(hours=GIVE_UP_HOURS),
    )
    session.add_all([webhook, row])
    return row


def ask_test(session: Session, principal: Principal, webhook: Webhook) -> WebhookDelivery:
    """Queue a message that only says that it arrived. Raises Conflict if the webhook is paused."""
    _check_active(webhook)
    webhook.rests_until = None
    row = add_message(session, webhook, TEST_EVENT, {"webhook": webhook.name})
    session.flush()
    _record(session, principal, "test webhook", webhook, row)
    return row


def redeliver(
    session: Session, principal: Principal, webhook: Webhook, delivery_id: str
) -> WebhookDelivery:
    """Queue a message once more, with the same id and body. One that waits is sent now.

    Raises NotFound, Conflict if it is being sent or the webhook is paused.
    """
    row = get_delivery(session, webhook, delivery_id, lock=True)
    _check_active(webhook)
    if row.state == OperationState.RUNNING:
        raise Conflict("The message is being sent just now.")
    now = utc_now()
    row.state, row.tries, row.next_try_at = OperationState.QUEUED.value, 0, now
    row.until = now + timedelta(hours=GIVE_UP_HOURS)
    row.heartbeat_at = row.finished_at = row.started_at = None
    webhook.rests_until = None
    session.add_all([row, webhook])
    session.flush()
    _record(session, principal, "send message of webhook again", webhook, row)
    return row


def get_delivery(
    session: Session, webhook: Webhook, delivery_id: str, *, lock: bool = False
) -> WebhookDelivery:
    """Raises NotFound."""
    row = session.get(WebhookDelivery, delivery_id, with_for_update=lock or None)
    if row is None or row.webhook_id != webhook.id:
        raise NotFound(f"The webhook has no message {delivery_id!r}.")
    return row


def list_deliveries(
    session: Session, webhook: Webhook, asked: PageAsked, *, state: OperationState | None
) -> Rows[WebhookDelivery]:
    """List the messages of a webhook, newest first."""
    statement = select(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook.id)
    if state is not None:
        statement = statement.where(WebhookDelivery.state == state.value)
    return asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(WebhookDelivery.number)], descending=True),
            filters={"list": "webhook-deliveries", "webhook": webhook.id, "state": state},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )


def _check_active(webhook: Webhook) -> None:
    if not webhook.active:
        raise Conflict("The webhook is paused, and sends nothing: set it active first.")


def _record(
    session: Session, principal: Principal, action: str, webhook: Webhook, row: WebhookDelivery
) -> None:
    after = {"name": webhook.name, "delivery": row.id, "type": row.type}
    actor = actor_of(principal)
    record(session, Change(actor, action, webhook.id, {}, after, webhook.tenant_id))
