"""The tab of webhooks: what its dialog sends, and what its tables say."""

from __future__ import annotations

import json
from typing import Any

from frontend.pages.admin.webhook_dialog import (
    ALL_TENANTS,
    EVENT_WORDS,
    body_of,
    place_of,
    values_of,
)
from frontend.pages.admin.webhook_rows import message_table, webhook_table
from maat.api.webhooks import WebhookBody, WebhookChanges, WebhookDeliveryOut, WebhookOut
from maat.client.errors import FieldProblem
from maat.vocabulary import WebhookEvent

HOOK: WebhookOut = {
    "id": "whk_1",
    "name": "<b>pager</b>",
    "url": "https://hooks.example.com/…",
    "events": [WebhookEvent.JOB_FAILED],
    "cluster_id": None,
    "cluster": None,
    "tenant": "blue",
    "owner": "ann",
    "active": True,
    "waiting": 2,
    "failures": 1,
    "rests_until": None,
    "version": 3,
    "created_at": "2026-11-23T15:00:00.000Z",
}
MESSAGE: WebhookDeliveryOut = {
    "id": "whd_1",
    "webhook_id": "whk_1",
    "number": 7,
    "type": "job.failed",
    "state": "queued",
    "tries": 1,
    "answered": 500,
    "message": "The webhook answered 500.",
    "created_at": "2026-11-23T15:00:00.000Z",
    "next_try_at": "2026-11-23T15:01:00.000Z",
    "finished_at": None,
}


def text_of(component: Any) -> str:
    return json.dumps(component, default=lambda part: part.to_plotly_json(), ensure_ascii=False)


def test_the_dialog_sends_what_the_service_takes() -> None:
    values = {"name": " pager ", "url": "https://x.example.com/", "events": ["job.failed"]}
    own = body_of({**values, "cluster": None, "whose": None}, is_new=True)
    assert WebhookBody.model_validate(own).tenant is None
    other = body_of({**values, "cluster": "clu_1", "whose": "blue"}, is_new=True)
    assert WebhookBody.model_validate(other).tenant == "blue"
    whole = body_of({**values, "cluster": None, "whose": ALL_TENANTS}, is_new=True)
    assert WebhookBody.model_validate(whole).deployment
    changed = body_of({**values, "cluster": None, "whose": "blue"}, is_new=False)
    assert "cluster" in WebhookChanges.model_validate(changed).model_fields_set
    assert values_of(HOOK)["events"] == ["job.failed"]
    wrong = FieldProblem.parse({"pointer": "/events/0", "message": "Unknown."})
    assert place_of(wrong) == "events"


def test_every_event_has_words() -> None:
    assert EVENT_WORDS.keys() == set(WebhookEvent)
    assert len(set(EVENT_WORDS.values())) == len(EVENT_WORDS)


def test_the_tables_say_how_it_stands_and_offer_only_what_one_may() -> None:
    shown = text_of(webhook_table([HOOK], may=True)).replace("\u00a0", " ")
    for words in ("a job failed", "blue, all clusters", "2 messages on the way", "1 try failed"):
        assert words in shown
    assert "Delete: " in shown
    assert "Delete: " not in text_of(webhook_table([HOOK], may=False))
    listed = text_of(message_table([MESSAGE], may=True))
    assert "The webhook answered 500. Next try" in listed
    assert "Send message 7 again" in listed
    assert "Send message" not in text_of(message_table([MESSAGE], may=False))
    assert "No message yet" in text_of(message_table([], may=True))
