"""The dialog of one webhook: its fields, and the body that they make."""

from __future__ import annotations

from typing import TypedDict

import dash_mantine_components as dmc
from dash import html

from frontend.attributes import submits
from frontend.components.dialogs import dialog
from frontend.forms import FormValues
from maat.api.webhooks import WebhookOut
from maat.client.calls import RawBody
from maat.client.errors import FieldProblem
from maat.vocabulary import WebhookEvent

FIELDS = ("name", "url", "events", "cluster", "whose")
ALL_TENANTS = "*"
EVENT_WORDS = {
    WebhookEvent.JOB_SUBMITTED: "a job was submitted",
    WebhookEvent.JOB_STARTED: "a job got its first GPUs",
    WebhookEvent.JOB_PREEMPTED: "a job lost its GPUs",
    WebhookEvent.JOB_PAUSED: "a job was paused",
    WebhookEvent.JOB_SUCCEEDED: "a job succeeded",
    WebhookEvent.JOB_FAILED: "a job failed",
    WebhookEvent.JOB_CANCELLED: "a job was cancelled",
    WebhookEvent.JOB_DEADLINE: "a job will miss its deadline",
    WebhookEvent.JOB_CHECKPOINT: "trouble with a checkpoint",
    WebhookEvent.JOB_FLAGGED: "what a job reports is unlikely",
    WebhookEvent.REPORT_READY: "a report is ready",
    WebhookEvent.CLUSTER_FAULT: "a cluster does not answer",
    WebhookEvent.CLUSTER_RECOVERED: "a cluster answers again",
    WebhookEvent.NODE_FAULT: "a node cannot be used",
    WebhookEvent.NODE_RECOVERED: "a node can be used again",
}


class Pressed(TypedDict):
    """A press of a button of one webhook; `webhook` is empty for a new one."""

    at: int
    action: str
    webhook: str
    name: str
    version: str


def field_id(name: str) -> str:
    return f"admin-webhook-{name}"


def pressed_for(action: str, webhook: WebhookOut | None) -> dict[str, str]:
    """Return what a button says of the webhook that it is for; None for a new one."""
    if webhook is None:
        return {"action": action, "webhook": "", "name": "", "version": ""}
    return {
        "action": action,
        "webhook": webhook["id"],
        "name": webhook["name"],
        "version": str(webhook["version"]),
    }


def webhook_dialog() -> dmc.Modal:
    events = [{"value": event.value, "label": words} for event, words in EVENT_WORDS.items()]
    form = html.Div(
        [
            html.Div(id="admin-webhook-problem"),
            dmc.TextInput(id=field_id("name"), label="Name", value="", withAsterisk=True),
            dmc.TextInput(
                id=field_id("url"),
                label="URL",
                value="",
                placeholder="https://hooks.example.com/maat",
                description="Messages are posted to it as JSON, signed.",
                withAsterisk=True,
                inputWrapperOrder=["label", "input", "description", "error"],
            ),
            dmc.MultiSelect(
                id=field_id("events"),
                label="Tell when",
                data=events,
                value=[],
                searchable=True,
                withAsterisk=True,
            ),
            dmc.Select(
                id=field_id("cluster"),
                label="Cluster",
                data=[],
                value=None,
                placeholder="all",
                clearable=True,
            ),
            html.Div(
                dmc.Select(
                    id=field_id("whose"),
                    label="Whose jobs and reports",
                    data=[],
                    value=None,
                    placeholder="your tenant's",
                    searchable=True,
                ),
                id="admin-webhook-whose-part",
            ),
            dmc.Group([dmc.Button("Save", id="admin-webhook-save", n_clicks=0)], mt=4),
        ],
        className="form-stack",
        **submits("admin-webhook-save"),
    )
    return dialog("admin-webhook", "Webhook", form)


def values_of(webhook: WebhookOut | None) -> dict[str, object]:
    """Return what the fields hold when the dialog opens."""
    if webhook is None:
        return {"name": "", "url": "", "events": [], "cluster": None, "whose": None}
    return {
        "name": webhook["name"],
        "url": webhook["url"],
        "events": webhook["events"],
        "cluster": webhook["cluster_id"],
        "whose": webhook["tenant"] or ALL_TENANTS,
    }


def body_of(values: FormValues, *, is_new: bool) -> RawBody:
    """The fields as the API's body."""
    body: RawBody = {
        "name": (values["name"] or "").strip(),
        "url": (values["url"] or "").strip(),
        "events": values["events"] or [],
    }
    if values["cluster"] or not is_new:
        body["cluster"] = values["cluster"]
    if is_new and values["whose"] == ALL_TENANTS:
        body["deployment"] = True
    elif is_new and values["whose"]:
        body["tenant"] = values["whose"]
    return body


def place_of(problem: FieldProblem) -> str | None:
    """Return the dialog's field of a problem."""
    field = problem.pointer.strip("/").split("/")[0]
    return "whose" if field == "tenant" else field if field in FIELDS else None
