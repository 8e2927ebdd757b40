"""`maat report-schedules`, and the commands that make, change, send and delete a schedule."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    Url,
    client_of,
    show,
    table_of,
)
from maat.library.live import cluster_or_first
from maat.scheduling.errors import ParameterError

if TYPE_CHECKING:
    from maat.api.reports import ScheduleOut

ScheduleId = Annotated[str, typer.Argument(help="The schedule's id, from `maat report-schedules`.")]
SecretFrom = typer.Option(
    "--secret-env", help="Variable of your environment with the secret that signs."
)
OF_CLUSTER = typer.Option(help="Cluster id or name; default: the first.")


def schedule_report(
    name: Annotated[str, typer.Argument(help="Name of the schedule.")],
    every: Annotated[str, typer.Option(help="week (each Monday) or month (each first).")] = "week",
    hour: Annotated[int, typer.Option(help="Hour of the day, UTC, wall time.")] = 6,
    folder: Annotated[
        bool, typer.Option("--folder", help="Write files to the operator's folder.")
    ] = False,
    webhook: Annotated[str | None, typer.Option(help="Post it to this URL.")] = None,
    variable: Annotated[str, SecretFrom] = "MAAT_WEBHOOK_SECRET",
    form: Annotated[
        list[str] | None, typer.Option(help="pdf, csv or json; may be repeated; default: pdf.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Of this tenant; default: of all that you may see.")
    ] = None,
    paper: Annotated[str, typer.Option(help="Paper of the PDF: a4 or letter.")] = "a4",
    cluster: Annotated[str | None, OF_CLUSTER] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Have a report made each week or month, and sent to a folder or a webhook.

    It covers the week or month before, of the cluster's calendar.
    """
    body: dict[str, Any] = {"name": name, "every": every, "hour": hour, "paper": paper}
    body |= {"forms": form or ["pdf"], **_channel(folder, webhook, variable)}
    if tenant is not None:
        body["tenant"] = tenant
    with client_of(url) as maat:
        made = maat.schedule_report({**body, "cluster": cluster_or_first(maat, cluster)})
    show(made, as_json, f"{made['id']} is next due at {made['next_due_at']}")


def report_schedules(
    schedule: Annotated[
        str | None, typer.Argument(help="Id of a schedule, to list its deliveries.")
    ] = None,
    cluster: Annotated[str | None, OF_CLUSTER] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List schedules of reports, or the deliveries of one."""
    with client_of(url) as maat:
        found: list[Any] = (
            list(maat.report_schedules(cluster=cluster_or_first(maat, cluster)))
            if schedule is None
            else list(maat.report_deliveries(schedule))
        )
    columns = (
        ("id", "name", "every", "channel", "url", "tenant", "active", "next_due_at")
        if schedule is None
        else ("id", "state", "due_at", "report_id", "tries", "answered", "message")
    )
    rows = [["-" if (cell := one[key]) is None else str(cell) for key in columns] for one in found]
    show(found, as_json, table_of(columns, rows))


def change_report_schedule(
    schedule: ScheduleId,
    name: Annotated[str | None, typer.Option(help="Its new name.")] = None,
    hour: Annotated[int | None, typer.Option(help="Another hour of the day, UTC.")] = None,
    webhook: Annotated[str | None, typer.Option(help="Post it to this URL from now on.")] = None,
    variable: Annotated[str | None, SecretFrom] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change a schedule's name, hour, URL or secret."""
    secret = None if variable is None else _secret(variable)
    given = {"name": name, "hour": hour, "url": webhook, "secret": secret}
    body = {field: value for field, value in given.items() if value is not None}
    if not body:
        raise ParameterError(
            "are missing",
            field="changes",
            remedy="Say what to change: --name, --hour, --webhook or --secret-env.",
        )
    _change(schedule, body, url, as_json)


def pause_report_schedule(
    schedule: ScheduleId, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Pause a schedule: no report is made by it until it is resumed."""
    _change(schedule, {"active": False}, url, as_json)


def resume_report_schedule(
    schedule: ScheduleId, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Resume a paused schedule, from its next due time on."""
    _change(schedule, {"active": True}, url, as_json)


def send_report(schedule: ScheduleId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Make a schedule's report and send it now, to see whether it arrives."""
    with client_of(url) as maat:
        made = maat.deliver_report(schedule)
    show(made, as_json, _on_its_way(made["id"], schedule))


def retry_report(
    schedule: ScheduleId,
    delivery: Annotated[
        str, typer.Argument(help="The delivery's id, from `maat report-schedules ID`.")
    ],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Send a report once more whose delivery has failed, with the same id."""
    with client_of(url) as maat:
        made = maat.retry_report_delivery(schedule, delivery)
    show(made, as_json, _on_its_way(made["id"], schedule))


def unschedule_report(
    schedule: ScheduleId, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Delete a schedule of reports. Kept reports stay."""
    with client_of(url) as maat:
        maat.unschedule_report(schedule)
    show({"removed": schedule}, as_json, f"{schedule} is deleted")


def _channel(folder: bool, webhook: str | None, variable: str) -> dict[str, str]:
    if folder == (webhook is not None):
        raise ParameterError(
            "is not clear",
            field="channel",
            remedy="Give either --folder or --webhook URL.",
        )
    if webhook is None:
        return {"channel": "folder"}
    return {"channel": "webhook", "url": webhook, "secret": _secret(variable)}


def _secret(variable: str) -> str:
    """Return the secret of this variable of the environment. Raises ParameterError."""
    secret = os.environ.get(variable)
    if not secret:
        raise ParameterError(
            "is not set",
            field=variable,
            remedy="Put the secret that signs messages into this variable of the environment.",
        )
    return secret


def _change(schedule: str, body: dict[str, Any], url: str, as_json: bool) -> None:
    with client_of(url) as maat:
        version = maat.report_schedule(schedule)["version"]
        changed = maat.change_report_schedule(schedule, body, version=version)
    show(changed, as_json, _sentence(changed))


def _sentence(one: ScheduleOut) -> str:
    if not one["active"]:
        return f"{one['name']} ({one['id']}) is paused"
    return f"{one['name']} ({one['id']}) is next due at {one['next_due_at']}"


def _on_its_way(delivery: str, schedule: str) -> str:
    return f"{delivery} is on its way: `maat report-schedules {schedule}` says what came of it"
