"""`maat jobs` and `maat explain`: the jobs of a running service."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.api.job_words import state_in_words
from maat.api.move_words import moves_verdict
from maat.cli.explanation import NO_PRESS, explanation_lines
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
from maat.client import calls, change_as_it_is
from maat.scheduling.errors import ParameterError
from maat.vocabulary import Doubted

if TYPE_CHECKING:
    from rich.text import Text

    from maat.api.job_answers import ExplanationOut, JobOut, JobPage, Remedy
    from maat.client import Client

_COLUMNS = ("id", "name", "model", "state", "gpu_type", "gpu_count", "progress", "reason")
_MOST_CHARACTERS = {"name": 40, "model": 24}
_TIME = "in cluster time, such as 2026-11-20T08:00:00Z"


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
    tenant: Annotated[
        list[str] | None, typer.Option(help="Only jobs of this tenant. May be repeated.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Only jobs of this user.")] = None,
    flagged: Annotated[
        bool,
        typer.Option(
            "--flagged", help="Only jobs whose reports are unlikely, until they are dismissed."
        ),
    ] = False,
    array: Annotated[str | None, typer.Option(help="Only jobs of the array with this id.")] = None,
    submitted_after: Annotated[
        str | None,
        typer.Option(metavar="TIME", help=f"Only jobs submitted then or later, {_TIME}."),
    ] = None,
    submitted_before: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"Only jobs submitted before then, {_TIME}.")
    ] = None,
    limit: Annotated[
        int, whole_option("--limit", least=1, most=MAX_LISTED, help="How many, newest first.")
    ] = 20,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show the list again when a job changes, until q or Ctrl+C. With --json, one "
            "line each time.",
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    with client_of(url) as maat:
        read = partial(
            maat.jobs,
            cluster=cluster,
            state=state or [],
            label=label or [],
            tenant=tenant or [],
            owner=owner,
            array=array,
            flagged=flagged or None,
            submitted_after=submitted_after,
            submitted_before=submitted_before,
            limit=limit,
        )
        if watch:
            _watch(read, maat, url, cluster, as_json)
            return
        page = read()
    show(page, as_json, _table(page))
    if not as_json and any(_is_blocked(job) for job in page["items"]):
        typer.echo("Which jobs hold the GPUs that another waits for: maat explain JOB.", err=True)


def _is_blocked(job: JobOut) -> bool:
    """Return whether `maat explain` may name who holds what the job waits for; a list does not."""
    from maat.scheduling.explain import BLOCKED

    return job["allocation"] is None and job["reason"]["code"] in BLOCKED


def _watch(
    read: Callable[[], JobPage], maat: Client, url: str, cluster: str | None, as_json: bool
) -> None:
    from maat.cli.live.changes import Changes
    from maat.cli.live.screen import Watched, print_changes, show_changes

    cluster_id = None if cluster is None else maat.cluster(cluster)["id"]
    with client_of(url) as listening:
        watched = Watched(Changes(listening, ("rounds", "jobs"), cluster_id), read)
        if as_json:
            print_changes(watched, lambda page: typer.echo(json.dumps(page)))
        elif sys.stdout.isatty():
            show_changes(watched, _picture)
        else:
            print_changes(watched, lambda page: typer.echo(f"{_table(page)}\n"))


def _picture(page: JobPage, away: str | None, lines: int) -> Text:
    """Return the list as far as it fits, below why it may be old."""
    from rich.text import Text

    known = [*([] if away is None else [away]), *_table(page).splitlines()]
    return Text("\n".join(known[:lines]), no_wrap=True, overflow="ellipsis")


def _table(page: JobPage) -> str:
    if not page["items"]:
        return "No jobs match. `maat submit` adds one; `maat jobs` alone lists all."
    rows = [[_shortened(_cell(job, name), name) for name in _COLUMNS] for job in page["items"]]
    return table_of(_COLUMNS, rows)


def explain(
    job: JobNamed,
    apply: Annotated[
        str | None,
        typer.Option(metavar="REMEDY", help="Do what this remedy says, such as lower_min_gpus."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Explain why a job waits or has what it has, and do what helps."""
    with client_of(url) as maat:
        job_id = job_id_of(maat, job)
        shown, found = maat.job(job_id), maat.explanation(job_id)
        if apply is not None:
            remedy = _remedy_named(apply, found)
            changed = _press(maat, shown, remedy)
            show(changed, as_json, f"{job_id}: {remedy['sentence']}")
            return
        spans = [] if as_json else maat.send(calls.allocations(job_id))["items"]
    lines = [*explanation_lines(shown, found), moves_verdict(spans)]
    show(found, as_json, "\n".join(line for line in lines if line))


def dismiss(
    job: JobNamed,
    kind: Annotated[Doubted, typer.Argument(help="Of the flag, as maat explain shows it.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Dismiss a flag of a job: what it reports is right, though it is unlikely."""
    with client_of(url) as maat:
        job_id = job_id_of(maat, job)
        changed = maat.dismiss_flag(job_id, kind.value)
    show(changed, as_json, f"{job_id}: the flag {kind.value} is dismissed")


def _remedy_named(code: str, explanation: ExplanationOut) -> Remedy:
    """Return the remedy of this code. Raises ParameterError."""
    offered = [one for one in explanation["remedies"] if one["action"] != NO_PRESS]
    found = next((one for one in offered if one["code"] == code), None)
    if found is None:
        known = ", ".join(one["code"] for one in offered)
        remedy = f"Use one of: {known}." if known else "There is none for this job now."
        raise ParameterError("is no remedy of it", field="--apply", value=code, remedy=remedy)
    return found


def _press(maat: Client, job: JobOut, remedy: Remedy) -> Any:
    match remedy["action"]:
        case "resume" | "release":
            (target,) = remedy["targets"] or [job["id"]]
            return maat.resume_job(target)
        case "restore-nodes":
            return [maat.restore_node(job["cluster_id"], node) for node in remedy["targets"]]
        case "change-tenant":
            return change_as_it_is(
                lambda: maat.tenant(job["tenant"])["version"],
                lambda version: maat.change_tenant(
                    job["tenant"], remedy["changes"], version=version
                ),
            )
        case _:
            return change_as_it_is(
                lambda: maat.job(job["id"])["version"],
                lambda version: maat.change_job(job["id"], remedy["changes"], version=version),
            )


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
