"""`maat schedule-report`, `maat report-schedules` and `maat unschedule-report`."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    Url,
    client_of,
    cluster_or_first,
    show,
    table_of,
)
from maat.scheduling.errors import ParameterError

OF_CLUSTER = typer.Option(help="Cluster id or name; default: the first.")


def schedule_report(
    name: Annotated[str, typer.Argument(help="Name of the schedule.")],
    every: Annotated[str, typer.Option(help="week (each Monday) or month (each first).")] = "week",
    hour: Annotated[int, typer.Option(help="Hour of the day, UTC, wall time.")] = 6,
    folder: Annotated[
        bool, typer.Option("--folder", help="Write files to the operator's folder.")
    ] = False,
    webhook: Annotated[str | None, typer.Option(help="Post it to this URL.")] = None,
    variable: Annotated[
        str,
        typer.Option(
            "--secret-env", help="Variable of your environment with the secret that signs."
        ),
    ] = "MAAT_WEBHOOK_SECRET",
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


def unschedule_report(
    schedule: Annotated[str, typer.Argument(help="The schedule's id.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
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
    secret = os.environ.get(variable)
    if not secret:
        raise ParameterError(
            "is not set",
            field=variable,
            remedy="Put the secret that signs messages into this variable of the environment.",
        )
    return {"channel": "webhook", "url": webhook, "secret": secret}
