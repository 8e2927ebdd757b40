"""`maat jobs` and `maat explain`: the jobs of a running service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from maat.api.job_words import state_in_words
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

_MOST_CHARACTERS = {"name": 40, "model": 24}


def jobs(
    state: Annotated[
        list[str] | None, typer.Option(help="Only jobs in this state. May be repeated.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Only jobs with this label. Of several a job has all."
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Only jobs of this cluster, by its id or name.")
    ] = None,
    array: Annotated[str | None, typer.Option(help="Only jobs of the array with this id.")] = None,
    limit: Annotated[
        int, whole_option("--limit", least=1, most=MAX_LISTED, help="How many, newest first.")
    ] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    with client_of(url) as maat:
        page = maat.jobs(
            cluster=cluster, state=state or [], label=label or [], array=array, limit=limit
        )
    columns = ("id", "name", "model", "state", "gpu_type", "gpu_count", "progress", "reason")
    rows = [[_shortened(_cell(job, column), column) for column in columns] for job in page["items"]]
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


def _shortened(cell: str, column: str) -> str:
    """Return a name that does not push other columns away; --json has it whole."""
    most = _MOST_CHARACTERS.get(column, len(cell))
    return cell if len(cell) <= most else f"{cell[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def _cell(job: Mapping[str, Any] | Any, column: str) -> str:
    held = job.get("allocation") or {}
    if column in {"gpu_type", "gpu_count"}:
        return str(held.get(column, "-"))
    if column == "state":
        return state_in_words(job)
    if column == "progress":
        unknown = job["runs_command"] and job["progress"] == 0
        return "-" if unknown else f"{job['progress']:.0%}"
    if column == "reason":
        return str((job.get("reason") or {}).get("sentence") or "")
    return str(job.get(column, ""))
