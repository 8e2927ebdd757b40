"""`maat webhooks ...`: what happens to jobs, reports and clusters, posted to a URL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.scheduling.errors import ParameterError
from maat.vocabulary import WebhookEvent

if TYPE_CHECKING:
    from maat.api.webhooks import WebhookOut

WebhookId = Annotated[str, typer.Argument(help="The webhook's id, from `maat webhooks list`.")]
_EVENTS = ", ".join(event.value for event in WebhookEvent)
_ALL = "all"


def list_webhooks(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List webhooks, oldest first."""
    with client_of(url) as maat:
        found = maat.webhooks(limit=500)
    columns = ("id", "name", "url", "tenant", "cluster", "state", "waiting", "failures", "events")
    rows = [
        [
            one["id"],
            one["name"],
            one["url"],
            one["tenant"] or "(all)",
            one["cluster"] or "(all)",
            "active" if one["active"] else "paused",
            str(one["waiting"]),
            str(one["failures"]),
            ",".join(one["events"]),
        ]
        for one in found
    ]
    show(found, as_json, table_of(columns, rows) if rows else "No webhook.")


def create(
    name: Annotated[str, typer.Argument(help="Name of the webhook.")],
    to: Annotated[str, typer.Option("--to", help="The URL to which messages are posted.")],
    event: Annotated[list[str], typer.Option(help=f"Repeat it, or `all`: {_EVENTS}.")],
    cluster: Annotated[
        str | None, typer.Option(help="Only of this cluster; default: of all.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose it is; default: your own.")] = None,
    deployment: Annotated[
        bool, typer.Option("--deployment", help="It hears of all tenants; for cluster admins.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make a webhook and print its secret. It is shown only once."""
    body: dict[str, Any] = {"name": name, "url": to, "events": _events(event)}
    given = {"cluster": cluster, "tenant": tenant}
    body |= {field: value for field, value in given.items() if value is not None}
    body |= {"deployment": True} if deployment else {}
    with client_of(url) as maat:
        made = maat.create_webhook(body)
    show(made, as_json, f"{made['id']}\n{made['secret']}")


def change(
    webhook: WebhookId,
    name: Annotated[str | None, typer.Option(help="Its new name.")] = None,
    to: Annotated[str | None, typer.Option("--to", help="Its new URL.")] = None,
    event: Annotated[
        list[str] | None, typer.Option(help=f"In place of those it has; or `all`: {_EVENTS}.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Only of this cluster; `all` for all of them.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change a webhook's name, URL, events or cluster. It is yours from then on."""
    given = {"name": name, "url": to, "events": _events(event) if event else None}
    body: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    if cluster is not None:
        body["cluster"] = None if cluster == _ALL else cluster
    if not body:
        raise ParameterError(
            "are missing",
            field="changes",
            remedy="Say what to change: --name, --to, --event or --cluster.",
        )
    show_changed(webhook, body, url, as_json)


def pause(webhook: WebhookId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Pause a webhook: it is told of nothing, and not later either."""
    show_changed(webhook, {"active": False}, url, as_json)


def resume(webhook: WebhookId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Tell a paused webhook again, of what happens from now on."""
    show_changed(webhook, {"active": True}, url, as_json)


def show_changed(webhook: str, body: dict[str, Any], url: str, as_json: bool) -> None:
    with client_of(url) as maat:
        version = maat.webhook(webhook)["version"]
        changed = maat.change_webhook(webhook, body, version=version)
    show(changed, as_json, _sentence(changed))


def remove(webhook: WebhookId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a webhook with its messages, also those that wait."""
    with client_of(url) as maat:
        maat.remove_webhook(webhook)
    show({"removed": webhook}, as_json, f"{webhook} is deleted")


def send_test(webhook: WebhookId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Send a message, to see whether it arrives."""
    with client_of(url) as maat:
        made = maat.send_webhook_test(webhook)
    words = f"{made['id']} is on its way: `maat webhooks deliveries {webhook}` says what came of it"
    show(made, as_json, words)


def rotate_secret(webhook: WebhookId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Give a webhook a new secret and print it. For 24 hours the old one signs too."""
    with client_of(url) as maat:
        made = maat.rotate_webhook_secret(webhook)
    show(made, as_json, str(made["secret"]))


def deliveries(
    webhook: WebhookId,
    delivery: Annotated[
        str | None, typer.Argument(help="Id of a message, to print its body.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(help="Only queued, running, succeeded or failed ones.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the messages of a webhook, newest first; or print the body of one."""
    with client_of(url) as maat:
        if delivery is not None:
            one = maat.webhook_delivery(webhook, delivery)
            show(one, as_json, json.dumps(one["body"], indent=2))
            return
        found: list[Any] = list(maat.webhook_deliveries(webhook, state=state))
    columns = ("id", "number", "type", "state", "tries", "answered", "created_at", "message")
    rows = [["-" if (cell := one[key]) is None else str(cell) for key in columns] for one in found]
    show(found, as_json, table_of(columns, rows))


def redeliver(
    webhook: WebhookId,
    delivery: Annotated[str, typer.Argument(help="Id of a message.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Send a message once more, with the same id and body."""
    with client_of(url) as maat:
        made = maat.redeliver(webhook, delivery)
    show(made, as_json, f"{made['id']} is on its way")


def _events(given: list[str]) -> list[str]:
    return [event.value for event in WebhookEvent] if _ALL in given else given


def _sentence(one: WebhookOut) -> str:
    state = "active" if one["active"] else "paused"
    return f"{one['name']} ({one['id']}) is {state}, and hears of {', '.join(one['events'])}"
