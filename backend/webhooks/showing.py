"""Webhooks and their messages as the API shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlmodel import Session, col, func, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Permission
from backend.answers import answer_of
from backend.clusters.models import Cluster
from backend.operations.models import OperationState
from backend.webhooks.addresses import without_path
from backend.webhooks.models import Webhook, WebhookDelivery
from maat.api.fields import rfc3339
from maat.api.webhooks import WebhookDeliveryOut, WebhookDeliveryWithBody, WebhookOut


def show_webhooks(
    session: Session, principal: Principal, rows: Sequence[Webhook]
) -> list[WebhookOut]:
    clusters = _names(session, Cluster, [row.cluster_id for row in rows])
    tenants = _names(session, Tenant, [row.tenant_id for row in rows])
    owners = _names(session, User, [row.owner_id for row in rows])
    waiting = _waiting(session, rows)
    whole = Permission.WEBHOOKS_MANAGE in principal.permissions
    return [
        answer_of(
            WebhookOut,
            row,
            url=row.url if whole else without_path(row.url),
            cluster=None if row.cluster_id is None else clusters[row.cluster_id],
            tenant=None if row.tenant_id is None else tenants[row.tenant_id],
            owner=owners[row.owner_id],
            waiting=waiting.get(row.id, 0),
        )
        for row in rows
    ]


def show_delivery(row: WebhookDelivery) -> WebhookDeliveryOut:
    return answer_of(WebhookDeliveryOut, row, next_try_at=_next(row))


def show_whole_delivery(row: WebhookDelivery) -> WebhookDeliveryWithBody:
    body = json.loads(row.body)
    return answer_of(WebhookDeliveryWithBody, row, next_try_at=_next(row), body=body)


def _next(row: WebhookDelivery) -> str | None:
    return rfc3339(row.next_try_at) if row.state == OperationState.QUEUED else None


def _waiting(session: Session, rows: Sequence[Webhook]) -> dict[str, int]:
    statement = (
        select(WebhookDelivery.webhook_id, func.count())
        .where(col(WebhookDelivery.webhook_id).in_([row.id for row in rows]))
        .where(col(WebhookDelivery.finished_at).is_(None))
        .group_by(col(WebhookDelivery.webhook_id))
    )
    return dict(session.exec(statement).all())


def _names(
    session: Session,
    table: type[Cluster] | type[Tenant] | type[User],
    ids: Sequence[str | None],
) -> dict[str, str]:
    wanted = {one for one in ids if one is not None}
    return dict(session.exec(select(table.id, table.name).where(col(table.id).in_(wanted))).all())
