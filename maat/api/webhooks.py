"""Webhooks: what happens to jobs, reports and clusters, posted to a URL of the tenant."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import NEVER_NULL, Body, Name, Timestamp
from maat.api.reports import WebUrl
from maat.vocabulary import WebhookEvent

TEST_EVENT = "webhook.test"
"""The type of a message that was asked for to see whether it arrives."""

Event = Annotated[WebhookEvent, Field(strict=False)]
Events = Annotated[
    list[Event],
    Field(min_length=1, max_length=len(WebhookEvent), description="What it is told of."),
]


class WebhookBody(Body):
    """A webhook of a tenant: it hears of the tenant's jobs and reports, and of clusters.

    `tenant`: default, your own. `deployment`: it hears of all tenants; only for cluster admins.
    `cluster`: only of this one; default, of all.
    """

    name: Name
    url: WebUrl
    events: Events
    cluster: Name | None = None
    tenant: Name | None = None
    deployment: bool = False


class WebhookChanges(Body):
    """What to change of a webhook; what is left out stays.

    `active`: a webhook that is paused is told of nothing, and not later either. `cluster`: null for
    all.
    """

    name: Annotated[Name | None, NEVER_NULL] = None
    url: Annotated[WebUrl | None, NEVER_NULL] = None
    events: Annotated[Events | None, NEVER_NULL] = None
    cluster: Name | None = None
    active: Annotated[bool | None, NEVER_NULL] = None


class WebhookOut(TypedDict):
    """A webhook. Of its URL, only who may change it sees the path.

    `tenant`: null for one of the deployment. `owner`: with whose rights it hears.
    `waiting`: messages on their way. `failures`: failed tries since one last arrived.
    """

    id: str
    name: str
    url: str
    events: list[WebhookEvent]
    cluster_id: str | None
    cluster: str | None
    tenant: str | None
    owner: str
    active: bool
    waiting: int
    failures: int
    rests_until: Annotated[
        Timestamp | None, Field(description="After failures, nothing is sent before this time.")
    ]
    version: int
    created_at: Timestamp


class WebhookMadeOut(WebhookOut):
    """The same, with the secret that signs. It is shown this once."""

    secret: str | None


class WebhookDeliveryOut(TypedDict):
    """A message on its way. Repetitions have the same `id`, `number` and body.

    `number`: counts the messages of a webhook, in the order of what happened. `answered`: the HTTP
    status of the last answer. `next_try_at`: null once it has ended.
    """

    id: str
    webhook_id: str
    number: int
    type: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    tries: int
    answered: int | None
    message: str
    created_at: Timestamp
    next_try_at: Timestamp | None
    finished_at: Timestamp | None


class WebhookDeliveryWithBody(WebhookDeliveryOut):
    """The same, with what is sent."""

    body: Annotated[dict[str, Any], Field(description="The message.")]
