"""`maat jobs`, `maat explain` and `maat cancel`: the jobs of a running service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from maat.cli.explanation import explanation_lines
from maat.cli.numbers import whole_option
from maat.cli.service import (
    DEFAULT_URL,
    MAX_LISTED,
    AsJson,
    JobNamed,
    Url,
    client_of,
    job_id_of,
    show,
    table_of,
)


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


def explain(
    job: JobNamed,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Explain a job's allocation, and what its owner could request instead."""
    with client_of(url) as maat:
        job_id = job_id_of(maat, job)
        shown, found = maat.job(job_id), maat.explanation(job_id)
    show(found, as_json, "\n".join(explanation_lines(shown, found)))


def cancel(
    job: JobNamed,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Cancel a job: it ends and cannot go on. A command is asked to save first."""
    with client_of(url) as maat:
        ended = maat.cancel_job(job_id_of(maat, job))
    how = "is cancelled" if ended["state"] == "cancelled" else "is asked to end"
    show(ended, as_json, f"{ended['id']} {how}")


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
