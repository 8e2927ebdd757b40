"""Commands that talk to a running service: submit, jobs, cancel, clusters, demo."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.scheduling.job import Adaptivity

if TYPE_CHECKING:
    from maat.client import Client

Url = Annotated[str, typer.Option("--url", envvar="MAAT_URL", help="Address of the service.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_URL = "http://127.0.0.1:8000"


def submit(
    name: Annotated[str, typer.Argument(help="A name for the job.")],
    model: Annotated[str, typer.Option(help="Model of the catalog that it trains.")],
    adaptivity: Annotated[Adaptivity, typer.Option(help="What the scheduler may vary.")] = Adaptivity.ADAPTIVE,
    gpu_count: Annotated[int | None, typer.Option("--gpus", help="GPUs that it asks for (rigid jobs: needs).")] = None,
    min_gpus: Annotated[int | None, typer.Option(help="Fewest GPUs that it can run on.")] = None,
    max_gpus: Annotated[int | None, typer.Option(help="Most GPUs that it may get.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Total batch size, where it is fixed.")] = None,
    gpu_type: Annotated[list[str] | None, typer.Option(help="GPU type that it may use. May be repeated.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Cluster id; by default the first.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Submit a job to a running Maat."""
    given: dict[str, Any] = {
        "gpu_count": gpu_count,
        "min_gpus": min_gpus,
        "max_gpus": max_gpus,
        "batch_size": batch_size,
        "gpu_types": gpu_type or None,
        "cluster_id": cluster,
    }
    body: Any = {"name": name, "model": model, "adaptivity": adaptivity.value, **{k: v for k, v in given.items() if v is not None}}
    with _client(url) as maat:
        job = maat.submit_job(**body)
    _show(job, as_json, f"{job['id']} is {job['state']}")


def jobs(
    state: Annotated[list[str] | None, typer.Option(help="Only jobs in this state. May be repeated.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many, newest first.")] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    with _client(url) as maat:
        page = maat.jobs(state=state or [], limit=limit)
    columns = ("id", "name", "model", "state", "gpu_type", "gpu_count", "progress", "reason")
    rows = [[_cell(job, column) for column in columns] for job in page["items"]]
    _show(page, as_json, _table(columns, rows))


def cancel(job_id: Annotated[str, typer.Argument(help="The job's id.")], url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Cancel a job. What it has trained so far is lost."""
    with _client(url) as maat:
        job = maat.cancel_job(job_id)
    _show(job, as_json, f"{job['id']} is {job['state']}")


def clusters(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List clusters with their policy."""
    with _client(url) as maat:
        found = maat.clusters()
    columns = ("id", "name", "policy", "placer", "round_seconds", "speed", "paused")
    rows = [[str(cluster.get(column, "")) for column in columns] for cluster in found]
    _show(found, as_json, _table(columns, rows))


def demo(
    count: Annotated[int, typer.Option(min=1, max=200, help="How many jobs.")] = 10,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed adds the same jobs.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add demo jobs to the first cluster."""
    with _client(url) as maat:
        result = maat.add_demo_jobs(count=count, seed=seed)
    _show(result, as_json, f"{count} demo jobs added")


def _client(url: str) -> Client:
    from maat.client import Client  # brings an HTTP library, which takes longer to import than a small simulation to run

    return Client(url, token=os.environ.get("MAAT_TOKEN"))


def _show(data: object, as_json: bool, text: str) -> None:
    typer.echo(json.dumps(data, indent=2) if as_json else text)


def _cell(job: Mapping[str, Any] | Any, column: str) -> str:
    held = job.get("allocation") or {}
    if column in {"gpu_type", "gpu_count"}:
        return str(held.get(column, "-"))
    if column == "progress":
        return f"{job['progress']:.0%}"
    if column == "reason":
        return str((job.get("reason") or {}).get("sentence") or "")
    return str(job.get(column, ""))


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max([len(c), *(len(row[i]) for row in rows)]) for i, c in enumerate(columns)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (columns, *rows)]
    return "\n".join(lines)
