"""Commands that talk to a running service: jobs, clusters, reservations, demo."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.command_line import RunOptions, run_body
from maat.cli.explanation import explanation_lines
from maat.cli.lazy_commands import words_after_dashes
from maat.cli.numbers import number_option, whole_argument, whole_option
from maat.cli.option_groups import takes_groups
from maat.scheduling.errors import ParameterError
from maat.vocabulary import (
    MAX_GPUS,
    MAX_PRIORITY,
    Adaptivity,
    ExecutorKind,
    MeasurementKind,
    WorkloadKind,
)

if TYPE_CHECKING:
    from maat.client import Client


Url = Annotated[str, typer.Option("--url", envvar="MAAT_URL", help="Address of the service.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_URL = "http://127.0.0.1:8000"
# The limits of the service.
MAX_LISTED, MAX_DEMO_JOBS, MAX_DEMO_SEED = 500, 200, 2**31 - 1
MAX_BATCH_SIZE, MAX_WORK_SCALE, MAX_PROMISED_SECONDS = 2**31 - 1, 1000.0, 1_000_000.0


@takes_groups
def submit(
    context: typer.Context,
    options: RunOptions,
    name: Annotated[
        str | None, typer.Argument(help="A name for the job; of a command: default its model.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model of the catalog to train; of a command: any name, default its script's."
        ),
    ] = None,
    adaptivity: Annotated[
        Adaptivity | None,
        typer.Option(
            help="What the scheduler may vary; default: adaptive, of a command with --gpus: rigid."
        ),
    ] = None,
    gpu_count: Annotated[
        int | None,
        whole_option(
            "--gpus", least=1, most=MAX_GPUS, help="GPUs to ask for (rigid jobs: to run on)."
        ),
    ] = None,
    min_gpus: Annotated[
        int | None,
        whole_option("--min-gpus", least=1, most=MAX_GPUS, help="Minimum number of GPUs."),
    ] = None,
    max_gpus: Annotated[
        int | None,
        whole_option("--max-gpus", least=1, most=MAX_GPUS, help="Maximum number of GPUs."),
    ] = None,
    batch_size: Annotated[
        int | None,
        whole_option(
            "--batch-size",
            least=1,
            most=MAX_BATCH_SIZE,
            help="Total batch size, if it is fixed; of a command: that it was tuned for.",
        ),
    ] = None,
    max_batch_size: Annotated[
        int | None,
        whole_option(
            "--max-batch-size",
            least=1,
            most=MAX_BATCH_SIZE,
            help="Largest total batch size that the scheduler may choose.",
        ),
    ] = None,
    gpu_type: Annotated[
        list[str] | None, typer.Option(help="GPU type that the job may use. May be repeated.")
    ] = None,
    work_scale: Annotated[
        float | None,
        number_option(
            "--work-scale",
            least=0,
            most=MAX_WORK_SCALE,
            help="Share of the model's standard training; default: 1.",
        ),
    ] = None,
    kind: Annotated[
        WorkloadKind, typer.Option(help="Kind of work, which decides what counts as goodput.")
    ] = WorkloadKind.TRAINING,
    promised_seconds: Annotated[
        float | None,
        number_option(
            "--promised-seconds",
            least=0,
            most=MAX_PROMISED_SECONDS,
            help="Latency SLO of latency-bound inference for a batch of --batch-size requests.",
        ),
    ] = None,
    preemptible: Annotated[
        bool, typer.Option(help="Whether the scheduler may take its GPUs away.")
    ] = True,
    priority: Annotated[
        int | None,
        whole_option(
            "--priority",
            least=-MAX_PRIORITY,
            most=MAX_PRIORITY,
            help="Under fifo, jobs of higher priority go first; default: 0.",
        ),
    ] = None,
    external_id: Annotated[
        str | None, typer.Option(help="Your own id, unique in your tenant.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Repeat with the same key to get the same job again.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Cluster id or name; default: the first; of a command: that runs commands."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Submit a job to a running Maat: a model of the catalog, or a command after --."""
    argv = words_after_dashes(context)
    run = None
    if argv is None:
        options.refuse_any()
    else:
        run = run_body(argv, options)
        from maat.api.commands import stem_of

        model = model or stem_of(argv)
        name = name or model
        if adaptivity is None and gpu_count is not None and batch_size is None:
            adaptivity = Adaptivity.RIGID
    given: dict[str, Any] = {
        "gpu_count": gpu_count,
        "min_gpus": min_gpus,
        "max_gpus": max_gpus,
        "batch_size": batch_size,
        "max_batch_size": max_batch_size,
        "gpu_types": gpu_type or None,
        "work_scale": work_scale,
        "promised_seconds": promised_seconds,
        "priority": priority,
        "external_id": external_id,
        "run": run,
    }
    always = {
        "name": _needed("name", name, "Give the job a name: maat submit NAME --model MODEL."),
        "model": _needed("--model", model, "Give a model of `GET /models`, or a command after --."),
        "adaptivity": (adaptivity or Adaptivity.ADAPTIVE).value,
        "workload_kind": kind.value,
        "preemptible": preemptible,
    }
    body: Any = always | {k: v for k, v in given.items() if v is not None}
    with client_of(url) as maat:
        if run is not None and cluster is None:
            cluster = _cluster_of_commands(maat)
        body |= {} if cluster is None else {"cluster_id": cluster}
        job = maat.submit_job(body, idempotency_key=idempotency_key)
    show(job, as_json, f"{job['id']} is {job['state']}")


def jobs(
    state: Annotated[
        list[str] | None, typer.Option(help="Only jobs in this state. May be repeated.")
    ] = None,
    limit: Annotated[
        int, whole_option("--limit", least=1, most=MAX_LISTED, help="How many, newest first.")
    ] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    with client_of(url) as maat:
        page = maat.jobs(state=state or [], limit=limit)
    columns = ("id", "name", "model", "state", "gpu_type", "gpu_count", "progress", "reason")
    rows = [[_cell(job, column) for column in columns] for job in page["items"]]
    show(page, as_json, table_of(columns, rows))


def cancel(
    job_id: Annotated[str, typer.Argument(help="The job's id.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Cancel a job. Its training so far is lost."""
    with client_of(url) as maat:
        job = maat.cancel_job(job_id)
    show(job, as_json, f"{job['id']} is {job['state']}")


def explain(
    job_id: Annotated[str, typer.Argument(help="The job's id.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Explain a job's allocation, and what its owner could request instead."""
    from maat.client import calls

    with client_of(url) as maat:
        job, found = maat.job(job_id), maat.send(calls.explanation(job_id))
    show(found, as_json, "\n".join(explanation_lines(job, found)))


def clusters(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List clusters with their policy."""
    with client_of(url) as maat:
        found = maat.clusters()
    columns = ("id", "name", "executor", "policy", "placer", "round_seconds", "speed", "paused")
    rows = [[str(cluster.get(column, "")) for column in columns] for cluster in found]
    show(found, as_json, table_of(columns, rows))


def reserve(
    gpu_type: Annotated[str, typer.Argument(help="GPU type.")],
    gpu_count: Annotated[
        int,
        whole_argument("gpu_count", least=1, most=MAX_GPUS, help="How many GPUs to reserve."),
    ],
    tenant: Annotated[str | None, typer.Option(help="For all jobs of this tenant.")] = None,
    job: Annotated[str | None, typer.Option(help="For this job, by its id.")] = None,
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
    given = {"tenant": tenant, "job_id": job, "start_at": start, "end_at": end}
    body: Any = {
        "gpu_type": gpu_type,
        "gpu_count": gpu_count,
        **{k: v for k, v in given.items() if v is not None},
    }
    with client_of(url) as maat:
        made = maat.reserve(_cluster(maat, cluster), body)
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
        found = maat.reservations(_cluster(maat, cluster), over=over)
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
) -> None:
    """Remove a reservation: from the next round, any job may get its GPUs."""
    with client_of(url) as maat:
        maat.remove_reservation(_cluster(maat, cluster), reservation_id)
    typer.echo(f"{reservation_id} is removed")


def measurements(
    kind: Annotated[
        MeasurementKind | None, typer.Option(help="Only measurements of this kind.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List uploaded measurements, newest first."""
    with client_of(url) as maat:
        found = maat.measurements(kind=None if kind is None else kind.value)
    columns = ("id", "kind", "name", "covers", "bytes", "digest", "owner", "created_at")
    shown: list[Mapping[str, Any]] = [
        {**one, "covers": ", ".join(one["covers"]), "digest": one["digest"][:12]} for one in found
    ]
    show(
        found,
        as_json,
        table_of(columns, [[str(one[column]) for column in columns] for one in shown]),
    )


def upload_measurement(
    files: Annotated[
        list[Path],
        typer.Argument(
            exists=True,
            help="A table of interference (CSV or JSON); "
            "or CSV files of measured GPUs, or their folder.",
        ),
    ],
    kind: Annotated[MeasurementKind, typer.Option(help="What was measured.")],
    name: Annotated[
        str | None,
        typer.Option(help="Name for use in simulations; default: that of the file or folder."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Upload measurements of GPU variability or interference for simulations."""
    paths = [
        path
        for given in files
        for path in (sorted(given.glob("*.csv")) if given.is_dir() else [given])
    ]
    contents: Any = [{"name": path.name, "text": _text_of(path)} for path in paths]
    with client_of(url) as maat:
        made = maat.upload_measurement(
            {"kind": kind.value, "name": files[0].stem if name is None else name, "files": contents}
        )
    covers = "; ".join(
        f"{gpu_type}: {', '.join(measured)}" for gpu_type, measured in made["covers"].items()
    )
    show(made, as_json, f"{made['id']} {made['name']!r} holds measurements of {covers}")


def delete_measurement(
    measurement_id: Annotated[str, typer.Argument(help="The measurement's id.")],
    url: Url = DEFAULT_URL,
) -> None:
    """Delete uploaded measurements. Simulations that use them keep them."""
    with client_of(url) as maat:
        maat.delete_measurement(measurement_id)
    typer.echo(f"{measurement_id} is deleted")


def _text_of(path: Path) -> str:
    """Read a file. Raises ParameterError if it is not text or cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        remedy = "Give readable CSV or JSON files in UTF-8."
        raise ParameterError(
            "is not readable text", field="files", value=str(path), remedy=remedy
        ) from wrong


def _cluster(maat: Client, named: str | None) -> str:
    """Return the named cluster, or the first.== maat/cli/child_process.py."""
    if named is not None:
        return named
    known = maat.clusters()
    if not known:
        raise ParameterError(
            "is missing: the service has none",
            field="cluster",
            remedy="Create one with POST /api/v1/clusters.",
        )
    return known[0]["id"]


def _cluster_of_commands(maat: Client) -> str:
    """Return the first cluster that runs commands."""
    for known in maat.clusters():
        if known["executor"] != ExecutorKind.SIMULATED:
            return known["id"]
    raise ParameterError(
        "is missing: no cluster of the service runs commands",
        field="cluster",
        remedy="Create one: maat create-cluster NAME --shape cpu=1x4 --executor local.",
    )


def _needed(field: str, value: str | None, remedy: str) -> str:
    if value is None:
        raise ParameterError("is missing", field=field, remedy=remedy)
    return value


def client_of(url: str) -> Client:
    # It loads an HTTP library, which takes longer than a small simulation runs.
    from maat.client import Client

    return Client(url, token=os.environ.get("MAAT_TOKEN"))


def show(data: object, as_json: bool, text: str) -> None:
    typer.echo(json.dumps(data, indent=2) if as_json else text)


def _cell(job: Mapping[str, Any] | Any, column: str) -> str:
    held = job.get("allocation") or {}
    if column in {"gpu_type", "gpu_count"}:
        return str(held.get(column, "-"))
    if column == "progress":
        unknown = job["runs_command"] and job["progress"] == 0
        return "-" if unknown else f"{job['progress']:.0%}"
    if column == "reason":
        return str((job.get("reason") or {}).get("sentence") or "")
    return str(job.get(column, ""))


def table_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max([len(c), *(len(row[i]) for row in rows)]) for i, c in enumerate(columns)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    ]
    return "\n".join(lines)
