"""What acts on one job, or on all that a filter matches, after a preview."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.completion import job_names
from maat.cli.service import client_of, job_id_of, show
from maat.scheduling.errors import ParameterError

if TYPE_CHECKING:
    from maat.api.bulk import BulkOut
    from maat.api.job_answers import JobOut
    from maat.client import Client

_PANEL = "Many jobs at once"
_MOST_SHOWN = 10

JobMeant = Annotated[
    str | None,
    typer.Argument(
        help="The job's id; or its name, if no other job has it. Or options below.",
        autocompletion=job_names,
    ),
]


@dataclass(frozen=True)
class JobsMeant:
    """The options by which a command finds the living jobs that it acts on."""

    state: Annotated[
        list[str] | None,
        typer.Option(help="Jobs in this state. May be repeated.", rich_help_panel=_PANEL),
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Jobs with this label. Of several a job has all.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(help="Jobs of this model. May be repeated.", rich_help_panel=_PANEL),
    ] = None
    owner: Annotated[
        str | None, typer.Option(help="Jobs of this user.", rich_help_panel=_PANEL)
    ] = None
    tenant: Annotated[
        list[str] | None,
        typer.Option(help="Jobs of this tenant. May be repeated.", rich_help_panel=_PANEL),
    ] = None
    array: Annotated[
        str | None,
        typer.Option(help="Jobs of the array with this id.", rich_help_panel=_PANEL),
    ] = None
    cluster: Annotated[
        str | None, typer.Option(help="Jobs of this cluster.", rich_help_panel=_PANEL)
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.", rich_help_panel=_PANEL)
    ] = False
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before.", rich_help_panel=_PANEL)
    ] = False

    @property
    def filter(self) -> Mapping[str, Any]:
        found = {
            "state": self.state,
            "label": self.label,
            "model": self.model,
            "owner": self.owner,
            "tenant": self.tenant,
            "array": self.array,
            "cluster": self.cluster,
        }
        return {name: value for name, value in found.items() if value}


def act(
    action: str,
    job: str | None,
    meant: JobsMeant,
    *,
    one: Callable[[Client, str], JobOut],
    told: Callable[[JobOut], str],
    url: str,
    as_json: bool,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Act on the named job by `one`, or on all jobs of a filter. Raises ParameterError.

    `told`: what became of the one. `more`: what the action sets.
    """
    if (job is None) == (not meant.filter):
        raise ParameterError(
            "is missing" if job is None else "is given beside a filter",
            field="job",
            value=job,
            remedy="Name one job, or say which ones: --label team=vision --state pending.",
        )
    with client_of(url) as maat:
        if job is not None and not meant.dry_run:
            done = one(maat, job_id_of(maat, job))
            show(done, as_json, f"{done['id']} {told(done)}")
            return
        wanted = {"ids": [job_id_of(maat, job)]} if job is not None else meant.filter
        body = {"action": action, "filter": wanted, **(more or {})}
        found = maat.change_jobs(body | {"dry_run": True})
        if meant.dry_run or not found["count"]:
            show(found, as_json, "\n".join(_lines(found)))
            return
        if not meant.yes:
            typer.echo("\n".join(_lines(found)), err=True)
            typer.confirm(f"{action} {found['count']} jobs?", abort=True, err=True)
        changed = maat.change_jobs(body | {"expected_count": found["count"]})
        show(changed, as_json, f"{action}: {_jobs(changed['count'])} changed")


def _lines(found: BulkOut) -> list[str]:
    """Return what would be done: how many jobs, in which states, the newest of them."""
    states = ", ".join(f"{count} {state}" for state, count in found["by_state"].items())
    lines = [f"{found['action']}: {_jobs(found['count'])}{f' ({states})' if states else ''}"]
    shown = found["preview"][:_MOST_SHOWN]
    lines += [f"  {job['id']}  {job['state']}  {job['name']}" for job in shown]
    if found["count"] > len(shown):
        lines.append(f"  and {found['count'] - len(shown)} older ones")
    if found["unchanged"]:
        lines.append(f"{_jobs(found['unchanged'])} more match, and stay as they are")
    if found["not_yours"]:
        lines.append(f"{_jobs(found['not_yours'])} more match, and belong to other users")
    return lines


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
