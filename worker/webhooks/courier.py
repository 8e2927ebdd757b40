"""Sends the messages of webhooks: one at a time to each webhook, oldest first.

A message is a row of work: it is claimed, posted and settled, and what a killed worker had claimed
is claimed again, so it arrives at least once. One that fails waits, and lets later ones pass. After
a failure its webhook rests, so that a receiver that is away costs little.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, col, select

from backend.accounts.models import User
from backend.accounts.permissions import Permission
from backend.accounts.principals import principal_where
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import OperationState, Webhook, WebhookDelivery
from backend.problems import Unauthenticated
from backend.secret_key import SecretError, secret_key
from backend.settings import Settings
from worker.webhooks.notices import AT_ONCE, are_there, take_notices
from worker.webhooks.posting import Undelivered, post_signed
from worker.work_queue import Claim, Condition, WorkQueue

log = logging.getLogger(__name__)

MESSAGES = WorkQueue(WebhookDelivery, key=col(WebhookDelivery.id))
PAUSES_SECONDS = (10.0, 60.0, 300.0, 1800.0, 7200.0, 21_600.0)
"""How long a message waits after each failed try; after the last one, as long again."""
LONGEST_REST_SECONDS = 300.0
AT_ONE_TIME = 8
"""Webhooks to which one process sends at a time: each may take as long as its receiver may."""
SERVING_SECONDS = 20.0


@dataclass(frozen=True)
class _Parcel:
    """A claimed message, and where it goes."""

    claim: Claim
    webhook: Webhook
    message: WebhookDelivery


class Courier:
    """Sends what is due in threads of its own: what calls it does not wait for receivers."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
        self._lock = threading.Condition()
        self._under_way: set[str] = set()

    def call(self) -> None:
        """See to it that messages are made and sent. One read tells that there is nothing."""
        if are_there(self._database):
            self._begin("", self._make_messages)
        self._serve_due()

    def _make_messages(self) -> None:
        while take_notices(self._database, self._settings) == AT_ONCE:
            pass
        self._serve_due()

    def _serve_due(self) -> None:
        for webhook_id in due_webhooks(self._database):
            self._begin(webhook_id, partial(self._serve, webhook_id))

    def _serve(self, webhook_id: str) -> None:
        end = time.monotonic() + SERVING_SECONDS
        while time.monotonic() < end and send_next(self._database, self._settings, webhook_id):
            pass

    def _begin(self, name: str, work: Callable[[], object]) -> None:
        """Do this work beside the caller, unless it is under way or too much else is.

        A later call begins what this one has not.
        """
        with self._lock:
            if name in self._under_way or len(self._under_way) >= AT_ONE_TIME:
                return
            self._under_way.add(name)
        # The process need not wait for it to end: what was claimed is claimed again.
        threading.Thread(target=self._done, args=(name, work), name="webhooks", daemon=True).start()

    def wait(self) -> None:
        """Wait until nothing is under way."""
        with self._lock:
            self._lock.wait_for(lambda: not self._under_way)

    def _done(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except SQLAlchemyError as error:  # the next call finds the same rows
            log.warning("messages of webhooks wait: %s", type(error).__name__)
        except Exception:
            log.exception("messages of webhooks could not be sent")
        finally:
            with self._lock:
                self._under_way.discard(name)
                self._lock.notify_all()


def due_webhooks(database: Database) -> list[str]:
    """Return the webhooks that have a message whose time has come."""
    now = utc_now()
    due = (
        sa.select(col(WebhookDelivery.webhook_id))
        .join(Webhook, col(Webhook.id) == col(WebhookDelivery.webhook_id))
        .where(*_open(), col(WebhookDelivery.next_try_at) <= now)
        .where(*_sends(now))
        .distinct()
    )
    with database.session_scope(writes=False) as session:
        return sorted(session.connection().execute(due).scalars())


def send_next(database: Database, settings: Settings, webhook_id: str) -> bool:
    """Send the oldest message of a webhook that is due; return whether there was one.

    There is none while another worker sends to it, or while it rests.
    """
    with database.session_scope() as session:
        parcel = _claimed(session, webhook_id)
    if parcel is None:
        return False
    if parcel.message.until < utc_now():
        _fail(database, parcel, "Its time was over before it arrived.", final=True)
        return True
    with MESSAGES.working_on(database, parcel.claim):
        try:
            status = _send(database, parcel, settings)
        except Undelivered as failed:
            _fail(database, parcel, str(failed), status=failed.status, final=failed.final)
            return True
        except Exception as error:
            log.exception("a message of a webhook could not be sent")
            _fail(database, parcel, f"An internal error: {type(error).__name__}.")
            return True
    with database.session_scope() as session:
        if parcel.webhook.failures:  # the webhook's row first, as when it was claimed
            _note(session, webhook_id, failures=0, rests_until=None)
        told = {"message": f"The webhook answered {status}.", "answered": status}
        MESSAGES.settle(session, parcel.claim, OperationState.SUCCEEDED, **told)
    return True


def _claimed(session: Session, webhook_id: str) -> _Parcel | None:
    """Claim the next message. The webhook's row is locked first: one worker sends to it."""
    now = utc_now()
    one = select(Webhook).where(col(Webhook.id) == webhook_id, *_sends(now)).with_for_update()
    webhook = session.exec(one).first()
    its = (*_open(), col(WebhookDelivery.webhook_id) == webhook_id)
    if webhook is None or MESSAGES.is_worked_on(session, *its):
        return None
    is_time = col(WebhookDelivery.next_try_at) <= now
    order = col(WebhookDelivery.number)
    claim = MESSAGES.claim_next(
        session, *its, is_time, order=order, tries=WebhookDelivery.tries + 1
    )
    if claim is None:
        return None
    return _Parcel(claim, webhook, session.get_one(WebhookDelivery, claim.key))


def _send(database: Database, parcel: _Parcel, settings: Settings) -> int:
    """Raises Undelivered."""
    webhook, message = parcel.webhook, parcel.message
    with database.session_scope(writes=False) as session:
        _check_owner(session, webhook)
    return post_signed(
        webhook.url,
        message.body.encode(),
        _secrets(webhook, settings),
        settings,
        event_id=message.id,
    )


def _check_owner(session: Session, webhook: Webhook) -> None:
    """Raise Undelivered if the owner may no longer have this webhook."""
    try:
        owner = principal_where(session, col(User.id) == webhook.owner_id)
    except Unauthenticated:
        owner = None
    is_theirs = owner is not None and (
        owner.sees_all_tenants or webhook.tenant_id == owner.tenant_id
    )
    if owner is None or not is_theirs or Permission.WEBHOOKS_MANAGE not in owner.permissions:
        raise Undelivered(
            "Who changed this webhook last may no longer have it. Change it, and it is yours.",
            final=True,
        )


def _secrets(webhook: Webhook, settings: Settings) -> list[str]:
    """Return the secrets that sign: the new one, and for a while the one before."""
    key, until = secret_key(settings), webhook.old_secret_until
    found = [webhook.secret]
    if webhook.old_secret is not None and until is not None and utc_now() < until:
        found.append(webhook.old_secret)
    try:
        return [key.decrypted(one) for one in found]
    except SecretError:
        raise Undelivered("The secret cannot be read: rotate it.", final=True) from None


def _fail(
    database: Database,
    parcel: _Parcel,
    message: str,
    *,
    status: int | None = None,
    final: bool = False,
) -> None:
    """Queue a message again after a pause, or give it up; its webhook rests for a while."""
    now, tries = utc_now(), parcel.message.tries
    told = {"message": message[:1000], "answered": status}
    again = now + timedelta(seconds=PAUSES_SECONDS[min(tries, len(PAUSES_SECONDS)) - 1])
    failures = parcel.webhook.failures + 1
    rest = min(2.0 ** min(failures, 20), LONGEST_REST_SECONDS)
    with database.session_scope() as session:
        until = now + timedelta(seconds=rest)
        _note(session, parcel.webhook.id, failures=failures, rests_until=until)
        if final or again > parcel.message.until:
            MESSAGES.settle(session, parcel.claim, OperationState.FAILED, **told)
        else:
            queued = OperationState.QUEUED
            MESSAGES.beat(session, parcel.claim, state=queued, next_try_at=again, **told)


def _note(session: Session, webhook_id: str, **values: object) -> None:
    one = sa.update(Webhook).where(col(Webhook.id) == webhook_id)
    session.connection().execute(one.values(**values))


def _open() -> tuple[Condition, ...]:
    return (col(WebhookDelivery.finished_at).is_(None),)


def _sends(now: object) -> tuple[Condition, ...]:
    """Select webhooks to which messages may go now."""
    rests = col(Webhook.rests_until)
    return (sa.and_(col(Webhook.active), sa.or_(rests.is_(None), rests <= now)),)
