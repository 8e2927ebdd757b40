"""Routes of webhooks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.idempotency import Answer, KeyHeader, Once, answer_once, answer_prepared
from backend.pagination import PageAsked
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from backend.webhooks import service
from backend.webhooks.models import Webhook
from backend.webhooks.showing import show_webhooks
from maat.api.fields import Page
from maat.api.webhooks import WebhookBody, WebhookChanges, WebhookMadeOut, WebhookOut

router = APIRouter(prefix="/webhooks", tags=["webhooks"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.WEBHOOKS_READ))]
Manager = Annotated[Principal, Depends(require(Permission.WEBHOOKS_MANAGE))]


@router.post("", operation_id="createWebhook", status_code=201, response_model=WebhookMadeOut)
def create_webhook(
    reading: ReadingDep,
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    body: WebhookBody,
    key: KeyHeader = None,
) -> JSONResponse:
    """Have what happens posted to a URL, signed with a secret that is shown this once."""

    def answer(_checked: None) -> Answer:
        row, secret = service.add_webhook(session, principal, body, settings)
        return _made(session, principal, row, secret, status=201)

    once = Once(principal.user_id, "POST /webhooks", key, body)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=lambda _: service.check_url(body.url, settings),
        answer=answer,
    )


@router.get("", operation_id="listWebhooks")
def read_webhooks(session: SessionDep, principal: Reader, asked: PageAsked) -> Page[WebhookOut]:
    """Oldest first."""
    found = service.list_webhooks(session, principal, asked)
    items = show_webhooks(session, principal, found.items)
    return Page(items=items, next_cursor=found.next_cursor)


@router.get("/{webhook_id}", operation_id="getWebhook")
def read_webhook(
    session: SessionDep, principal: Reader, webhook_id: str, response: Response
) -> WebhookOut:
    row = service.get_webhook(session, principal, webhook_id)
    response.headers["ETag"] = etag(row.version)
    return show_webhooks(session, principal, [row])[0]


@router.patch("/{webhook_id}", operation_id="changeWebhook")
def change_webhook(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    webhook_id: str,
    body: WebhookChanges,
    response: Response,
    if_match: IfMatch = None,
) -> WebhookOut:
    """Change its name, URL, events or cluster, or pause it. Needs If-Match.

    It hears with the rights of who changed it last. While it is paused nothing is sent, and what
    happens then is not told later.
    """
    if body.url is not None:
        service.check_url(body.url, settings)
    row = service.change_webhook(session, principal, webhook_id, body, if_match)
    response.headers["ETag"] = etag(row.version)
    return show_webhooks(session, principal, [row])[0]


@router.delete("/{webhook_id}", operation_id="deleteWebhook", status_code=204)
def remove_webhook(session: SessionDep, principal: Manager, webhook_id: str) -> None:
    """Delete a webhook with its messages, also those that wait."""
    service.delete_webhook(session, principal, webhook_id)


@router.post(
    "/{webhook_id}/actions/rotate-secret",
    operation_id="rotateWebhookSecret",
    response_model=WebhookMadeOut,
)
def rotate_secret(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    webhook_id: str,
    key: KeyHeader = None,
) -> JSONResponse:
    """Sign with a new secret, which is shown this once. For 24 hours the old one signs too."""

    def answer() -> Answer:
        row, secret = service.rotate_secret(session, principal, webhook_id, settings)
        return _made(session, principal, row, secret, status=200)

    route = f"POST /webhooks/{webhook_id}/actions/rotate-secret"
    return answer_once(session, Once(principal.user_id, route, key, {}), settings, answer)


def _made(
    session: Session, principal: Principal, row: Webhook, secret: str, *, status: int
) -> Answer:
    """Return the answer with the secret, which is not kept for repetitions."""
    (shown,) = show_webhooks(session, principal, [row])
    headers = {"ETag": etag(row.version), "Cache-Control": "no-store"}
    if status == 201:
        headers["Location"] = f"/api/v1/webhooks/{row.id}"
    return Answer(
        status,
        WebhookMadeOut(**shown, secret=secret),
        headers,
        kept=WebhookMadeOut(**shown, secret=None),
    )
