"""`maat reserve`, `maat reservations` and `maat unreserve`: GPUs that are kept for somebody."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from maat.cli.numbers import whole_argument
from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    Url,
    client_of,
    job_id_of,
    show,
    table_of,
)
from maat.library.live import cluster_or_first
from maat.vocabulary import MAX_GPUS


def reserve(
    gpu_type: Annotated[str, typer.Argument(help="GPU type.")],
    gpu_count: Annotated[
        int,
        whole_argument("gpu_count", least=1, most=MAX_GPUS, help="How many GPUs to reserve."),
    ],
    tenant: Annotated[str | None, typer.Option(help="For all jobs of this tenant.")] = None,
    job: Annotated[
        str | None, typer.Option(help="For this job, by its id, or its name if no other has it.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="Cluster time, such as 2026-11-20T12:00:00Z; default: now."),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--until", help="Cluster time; default: until it is removed.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Reserve GPUs of a running cluster for a tenant or a job."""
    with client_of(url) as maat:
        given = {
            "tenant": tenant,
            "job_id": None if job is None else job_id_of(maat, job),
            "start_at": start,
            "end_at": end,
        }
        body: Any = {
            "gpu_type": gpu_type,
            "gpu_count": gpu_count,
            **{k: v for k, v in given.items() if v is not None},
        }
        made = maat.reserve(cluster_or_first(maat, cluster), body)
    show(made, as_json, f"{made['id']} is {made['state']}")


def reservations(
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    over: Annotated[bool, typer.Option("--over", help="Include those that are over.")] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the reservations of a cluster."""
    with client_of(url) as maat:
        found = maat.reservations(cluster_or_first(maat, cluster), over=over)
    columns = ("id", "state", "gpu_count", "gpu_type", "tenant", "job_id", "start_at", "end_at")
    rows = [
        ["-" if (value := one.get(column)) is None else str(value) for column in columns]
        for one in found
    ]
    show(found, as_json, table_of(columns, rows))


def unreserve(
    reservation_id: Annotated[str, typer.Argument(help="The reservation's id.")],
    cluster: Annotated[
        str | None, typer.Option(help="Cluster id or name; default: the first.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Remove a reservation: from the next round, any job may get its GPUs."""
    with client_of(url) as maat:
        maat.remove_reservation(cluster_or_first(maat, cluster), reservation_id)
    show({"removed": reservation_id}, as_json, f"{reservation_id} is removed")
