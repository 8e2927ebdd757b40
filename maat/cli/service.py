"""What the commands of a running service share: its address, its client, what they print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from maat.cli.address import checked_address, token_of
from maat.cli.completion import job_names
from maat.cli.terminal_text import in_one_line, without_controls
from maat.scheduling.errors import ParameterError
from maat.vocabulary import MAX_TEXT

if TYPE_CHECKING:
    from maat.api.job_answers import JobOut
    from maat.client import Client

Url = Annotated[str, typer.Option("--url", envvar="MAAT_URL", help="Address of the service.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobNamed = Annotated[
    str,
    typer.Argument(
        help="The job's id; or its name, if no other job has it.", autocompletion=job_names
    ),
]

DEFAULT_URL = "http://127.0.0.1:8000"
MAX_LISTED = 500  # by the service, in one answer
_JOB_ID = re.compile("job_[0-9a-hjkmnp-tv-z]{26}")  # as the service makes them
_MOST_TOLD = 10


def client_of(url: str) -> Client:
    """Return a client of the service. Raises ParameterError."""
    # It loads an HTTP library, which takes longer than a small simulation runs.
    from maat.client import Client

    return Client(checked_address(url), token=token_of())


def job_id_of(maat: Client, named: str) -> str:
    """Return the id of a job that is named by its id or by its name.

    Raises ParameterError if no job that the caller sees has the name, or several have it.
    """
    if _JOB_ID.fullmatch(named):
        return named
    found = list(_jobs_named(maat, named)) if 0 < len(named) <= MAX_TEXT else []
    if len(found) == 1:
        return found[0]["id"]
    if not found:
        raise ParameterError(
            "is neither the id nor the name of a job that you may see",
            field="job",
            value=named,
            remedy="`maat jobs` lists them.",
        )
    told = ", ".join(f"{job['id']} ({job['state']})" for job in found[:_MOST_TOLD])
    more = f" and {len(found) - _MOST_TOLD} older ones" if len(found) > _MOST_TOLD else ""
    raise ParameterError(
        f"is the name of {len(found)} jobs",
        field="job",
        value=named,
        remedy=f"Give the id of one: {told}{more}.",
    )


def _jobs_named(maat: Client, name: str) -> Iterator[JobOut]:
    """Yield the jobs of exactly this name, newest first."""
    cursor = None
    while True:
        page = maat.jobs(q=name, limit=MAX_LISTED, cursor=cursor)
        yield from (job for job in page["items"] if job["name"] == name)
        cursor = page["next_cursor"]
        if cursor is None:
            return


def show(data: object, as_json: bool, text: str) -> None:
    typer.echo(json.dumps(data, indent=2) if as_json else without_controls(text))


def table_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return lines of cells in columns. No cell breaks its line or steers the terminal."""
    rows = [[in_one_line(cell) for cell in row] for row in rows]
    widths = [max([len(c), *(len(row[i]) for row in rows)]) for i, c in enumerate(columns)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    ]
    return "\n".join(lines)
