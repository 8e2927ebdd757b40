"""Routes of the messages of webhooks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from backend.idempotency import Answer, KeyHeader, Once, answer_once
from backend.operations.models import OperationState
from backend.pagination import PageAsked
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from backend.webhooks import deliveries
from backend.webhooks.routes import Manager, Reader
from backend.webhooks.service import get_webhook
from backend.webhooks.showing import show_delivery, show_whole_delivery
from maat.api.fields import Page
from maat.api.webhooks import WebhookDeliveryOut, WebhookDeliveryWithBody

router = APIRouter(prefix="/webhooks/{webhook_id}", tags=["webhooks"], route_class=StrictRoute)


@router.post(
    "/actions/test",
    operation_id="testWebhook",
    status_code=202,
    response_model=WebhookDeliveryOut,
)
def send_webhook_test(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    webhook_id: str,
    key: KeyHeader = None,
) -> JSONResponse:
    """Send a message now, to see whether it arrives."""

    def answer() -> Answer:
        row = get_webhook(session, principal, webhook_id, lock=True)
        made = deliveries.ask_test(session, principal, row)
        return Answer(202, show_delivery(made), {"Retry-After": "2"})

    route = f"POST /webhooks/{webhook_id}/actions/test"
    return answer_once(session, Once(principal.user_id, route, key, {}), settings, answer)


@router.get("/deliveries", operation_id="listWebhookDeliveries")
def read_deliveries(
    session: SessionDep,
    principal: Reader,
    webhook_id: str,
    asked: PageAsked,
    state: Annotated[OperationState | None, Query(description="Only those in this state.")] = None,
) -> Page[WebhookDeliveryOut]:
    """Newest first: how often each was tried, and what was answered."""
    row = get_webhook(session, principal, webhook_id)
    return deliveries.list_deliveries(session, row, asked, state=state).shown(show_delivery)


@router.get("/deliveries/{delivery_id}", operation_id="getWebhookDelivery")
def read_delivery(
    session: SessionDep, principal: Reader, webhook_id: str, delivery_id: str
) -> WebhookDeliveryWithBody:
    """One message with its body."""
    row = get_webhook(session, principal, webhook_id)
    return show_whole_delivery(deliveries.get_delivery(session, row, delivery_id))


@router.post(
    "/deliveries/{delivery_id}/actions/redeliver",
    operation_id="redeliverWebhookDelivery",
    status_code=202,
)
def redeliver(
    session: SessionDep, principal: Manager, webhook_id: str, delivery_id: str
) -> WebhookDeliveryOut:
    """Send a message once more: the same body under the same id."""
    row = get_webhook(session, principal, webhook_id, lock=True)
    return show_delivery(deliveries.redeliver(session, principal, row, delivery_id))
