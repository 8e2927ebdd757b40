"""Makes, changes and lists webhooks. Commits nothing."""

from __future__ import annotations

import secrets
from datetime import timedelta

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant
from backend.audit.changes import Change, Shown, actor_of, record
from backend.clocktime import utc_now
from backend.clusters.repository import get_cluster
from backend.pagination import Order, PageAsked, Rows, paginate
from backend.problems import Conflict, FieldError, Forbidden, Invalid, NotFound
from backend.secret_key import secret_key
from backend.settings import Settings
from backend.web.conditional import check_version
from backend.webhooks.addresses import RefusedAddress, checked_target, without_path
from backend.webhooks.models import Webhook, WebhookDelivery
from maat.api.webhooks import Event, WebhookBody, WebhookChanges

MOST_WEBHOOKS = 20  # of a tenant, and of the deployment: each costs work for every event
OLD_SECRET_HOURS = 24
_PREFIX = "whsec_"


def check_url(url: str, settings: Settings) -> None:
    """Look the host up. Raises Invalid. It takes time: do it before the transaction that writes."""
    try:
        checked_target(url, to_private=settings.webhooks_to_private_addresses)
    except RefusedAddress as refused:
        remedy = "Give an address that this machine reaches."
        raise _invalid("/url", "bad_url", str(refused), remedy) from None


def add_webhook(
    session: Session, principal: Principal, body: WebhookBody, settings: Settings
) -> tuple[Webhook, str]:
    """Store a webhook; return it with its secret. Its URL must have been checked.

    Raises Invalid naming the field, NotFound for an unknown cluster, Forbidden, Conflict for too
    many.
    """
    tenant_id = _tenant_of(session, principal, body)
    _check_room(session, tenant_id)
    secret = _new_secret()
    row = Webhook(
        tenant_id=tenant_id,
        cluster_id=None if body.cluster is None else get_cluster(session, body.cluster).id,
        owner_id=principal.user_id,
        name=body.name,
        url=body.url,
        events=_words(body.events),
        secret=secret_key(settings).encrypted(secret),
    )
    session.add(row)
    session.flush()
    _record(session, principal, "make webhook", row, {}, written(row))
    return row, secret


def change_webhook(
    session: Session,
    principal: Principal,
    webhook_id: str,
    changes: WebhookChanges,
    if_match: str | None,
) -> Webhook:
    """Change what was given. Who changes a webhook owns it from then on.

    A new URL must have been checked. Raises NotFound, PreconditionFailed.
    """
    row = get_webhook(session, principal, webhook_id, lock=True)
    check_version(if_match, row.version)
    before = written(row)
    if changes.name is not None:
        row.name = changes.name
    if changes.url is not None:
        row.url, row.failures, row.rests_until = changes.url, 0, None
    if changes.events is not None:
        row.events = _words(changes.events)
    if "cluster" in changes.model_fields_set:
        cluster = changes.cluster
        row.cluster_id = None if cluster is None else get_cluster(session, cluster).id
    if changes.active is not None:
        row.active, row.failures, row.rests_until = changes.active, 0, None
    _store(session, principal, row)
    _record(session, principal, "change webhook", row, before, written(row))
    return row


def rotate_secret(
    session: Session, principal: Principal, webhook_id: str, settings: Settings
) -> tuple[Webhook, str]:
    """Give a webhook a new secret. The old one signs too for OLD_SECRET_HOURS. Raises NotFound."""
    row = get_webhook(session, principal, webhook_id, lock=True)
    secret = _new_secret()
    row.old_secret, row.old_secret_until = row.secret, utc_now() + timedelta(hours=OLD_SECRET_HOURS)
    row.secret = secret_key(settings).encrypted(secret)
    _store(session, principal, row)
    _record(session, principal, "rotate secret of webhook", row, {}, {"name": row.name})
    return row, secret


def delete_webhook(session: Session, principal: Principal, webhook_id: str) -> None:
    """Delete a webhook with its messages. Raises NotFound."""
    row = get_webhook(session, principal, webhook_id, lock=True)
    of_this = col(WebhookDelivery.webhook_id) == row.id
    session.connection().execute(sa.delete(WebhookDelivery).where(of_this))
    _record(session, principal, "remove webhook", row, written(row), {})
    session.delete(row)
    session.flush()


def get_webhook(
    session: Session, principal: Principal, webhook_id: str, *, lock: bool = False
) -> Webhook:
    """Find a webhook. Raises NotFound, for another tenant's and the deployment's too."""
    found = session.get(Webhook, webhook_id, with_for_update=lock or None)
    if found is None or not (principal.sees_all_tenants or found.tenant_id == principal.tenant_id):
        raise NotFound(f"There is no webhook {webhook_id!r}.")
    return found


def list_webhooks(session: Session, principal: Principal, asked: PageAsked) -> Rows[Webhook]:
    """List webhooks, oldest first."""
    statement = select(Webhook)
    if not principal.sees_all_tenants:
        statement = statement.where(Webhook.tenant_id == principal.tenant_id)
    seen = "all" if principal.sees_all_tenants else principal.tenant_id
    return asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(Webhook.id)]),
            filters={"list": "webhooks", "for": seen},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )


def written(row: Webhook) -> Shown:
    """Return what is written down of a webhook: of its URL, only the host; of its secret, none."""
    names = ("name", "tenant_id", "cluster_id", "events", "active")
    return {**{name: getattr(row, name) for name in names}, "url": without_path(row.url)}


def _tenant_of(session: Session, principal: Principal, body: WebhookBody) -> str | None:
    """Return whose webhook it is to be; None for the deployment's."""
    if body.deployment:
        if not principal.sees_all_tenants:
            raise Forbidden("Only a cluster admin may make a webhook that hears of all tenants.")
        if body.tenant is not None:
            raise _invalid(
                "/tenant", "either_or", "The deployment's webhook is of no tenant.", "Leave it out."
            )
        return None
    if body.tenant is None:
        return principal.tenant_id
    named = (col(Tenant.name) == body.tenant) | (col(Tenant.id) == body.tenant)
    found = session.exec(select(Tenant).where(named)).first()
    if found is None or not principal.may_see(found.id):
        raise _invalid(
            "/tenant",
            "unknown_tenant",
            "There is no tenant of this name that you may see.",
            "Leave it out for your own.",
        )
    return found.id


def _check_room(session: Session, tenant_id: str | None) -> None:
    count = session.exec(
        select(func.count()).select_from(Webhook).where(col(Webhook.tenant_id) == tenant_id)
    ).one()
    if count >= MOST_WEBHOOKS:
        raise Conflict(f"There are {count} webhooks, the most there can be: delete one first.")


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def _words(events: list[Event]) -> list[str]:
    return list(dict.fromkeys(event.value for event in events))


def _store(session: Session, principal: Principal, row: Webhook) -> None:
    row.owner_id = principal.user_id
    row.version += 1
    session.add(row)
    session.flush()


def _record(
    session: Session, principal: Principal, action: str, row: Webhook, before: Shown, after: Shown
) -> None:
    record(session, Change(actor_of(principal), action, row.id, before, after, row.tenant_id))


def _invalid(pointer: str, code: str, message: str, remedy: str) -> Invalid:
    return Invalid(f"{message} {remedy}", errors=[FieldError(pointer, code, message, remedy)])
