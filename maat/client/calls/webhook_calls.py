"""Calls about webhooks and their messages."""

from __future__ import annotations

from maat.api.fields import Page
from maat.api.webhooks import (
    WebhookBody,
    WebhookChanges,
    WebhookDeliveryOut,
    WebhookDeliveryWithBody,
    WebhookMadeOut,
    WebhookOut,
)
from maat.client.calls.core import (
    Call,
    Fields,
    as_json,
    given_of,
    keyed_by,
    path_of,
    version_of,
)


def webhooks(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[WebhookOut]]:
    return Call("GET", path_of("webhooks"), given_of(limit=limit, cursor=cursor))


def webhook(webhook_id: str) -> Call[WebhookOut]:
    return Call("GET", path_of("webhooks", webhook_id))


def create_webhook(
    body: WebhookBody | Fields, *, idempotency_key: str | None = None
) -> Call[WebhookMadeOut]:
    """Make a webhook. The answer shows its secret this once."""
    path = path_of("webhooks")
    return Call("POST", path, body=as_json(body), headers=keyed_by(idempotency_key))


def change_webhook(
    webhook_id: str, changes: WebhookChanges | Fields, *, version: int
) -> Call[WebhookOut]:
    path = path_of("webhooks", webhook_id)
    return Call("PATCH", path, body=as_json(changes), headers=version_of(version))


def remove_webhook(webhook_id: str) -> Call[None]:
    return Call("DELETE", path_of("webhooks", webhook_id))


def rotate_webhook_secret(
    webhook_id: str, *, idempotency_key: str | None = None
) -> Call[WebhookMadeOut]:
    """Give a webhook a new secret, which the answer shows this once."""
    path = path_of("webhooks", webhook_id, "actions", "rotate-secret")
    return Call("POST", path, headers=keyed_by(idempotency_key))


def send_webhook_test(
    webhook_id: str, *, idempotency_key: str | None = None
) -> Call[WebhookDeliveryOut]:
    """Send a message now, to see whether it arrives."""
    path = path_of("webhooks", webhook_id, "actions", "test")
    return Call("POST", path, headers=keyed_by(idempotency_key))


def webhook_deliveries(
    webhook_id: str,
    *,
    state: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Page[WebhookDeliveryOut]]:
    """List the messages of a webhook, newest first."""
    path = path_of("webhooks", webhook_id, "deliveries")
    return Call("GET", path, given_of(state=state, limit=limit, cursor=cursor))


def webhook_delivery(webhook_id: str, delivery_id: str) -> Call[WebhookDeliveryWithBody]:
    return Call("GET", path_of("webhooks", webhook_id, "deliveries", delivery_id))


def redeliver(webhook_id: str, delivery_id: str) -> Call[WebhookDeliveryOut]:
    """Send a message once more, with the same id and body."""
    path = path_of("webhooks", webhook_id, "deliveries", delivery_id, "actions", "redeliver")
    return Call("POST", path)
