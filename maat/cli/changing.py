"""`maat change` and `maat clone`: other values of a job, in place or in a job like it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from maat.cli.bulk import JobMeant, JobsMeant, act
from maat.cli.numbers import weight_option
from maat.cli.option_groups import takes_groups
from maat.cli.priority import read_priority
from maat.cli.service import DEFAULT_URL, AsJson, JobNamed, Url, client_of, job_id_of, show
from maat.cli.stay_options import LeastStay, MostMoves
from maat.cli.submit import labels_of, tell_warnings
from maat.client import change_as_it_is
from maat.library.durations import bounds_of
from maat.scheduling.errors import ParameterError


@takes_groups
def change(
    meant: JobsMeant,
    job: JobMeant = None,
    name: Annotated[str | None, typer.Option(help="Its new name.")] = None,
    priority: Annotated[
        int | None,
        typer.Option(
            parser=read_priority,
            metavar="CLASS",
            help="Its new priority: low, normal, high or urgent; or a number from -1000 to 1000.",
        ),
    ] = None,
    weight: Annotated[
        float | None,
        weight_option(help="Its new weight: how many jobs like it it counts as."),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Its new deadline, in cluster time; or none."),
    ] = None,
    least_stay_seconds: LeastStay = None,
    most_moves_per_hour: MostMoves = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="What it asks for while it holds no GPUs, such as min_gpus=2 or "
            'gpu_types=["t4","a100"]; null takes it away. May be repeated.',
        ),
    ] = None,
    set_label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A label to set; others stay. May be repeated."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Change a job that lives; of many jobs, their priority, weight or labels."""
    labels = labels_of(set_label or [])
    given: dict[str, Any] = {
        "name": name,
        "priority": priority,
        "weight": weight,
        "labels": labels or None,
    }
    given = {key: value for key, value in given.items() if value is not None}
    if deadline is not None:
        given["deadline"] = None if deadline == "none" else deadline
    bounds = bounds_of(least_stay_seconds, most_moves_per_hour)
    given |= bounds | changes_of(set_ or [])
    if not given:
        remedy = (
            "Give --name, --priority, --weight, --deadline, --least-stay-seconds, "
            "--most-moves-per-hour, --set or --set-label."
        )
        raise ParameterError("is missing", field="change", remedy=remedy)
    if job is not None and not meant.dry_run:
        with client_of(url) as maat:
            job_id = job_id_of(maat, job)
            changed = change_as_it_is(
                lambda: maat.job(job_id),
                lambda now: maat.change_job(
                    job_id,
                    {**given, **({"labels": {**now["labels"], **labels}} if labels else {})},
                    version=now["version"],
                ),
            )
        show(changed, as_json, f"{changed['id']} is changed")
        return
    if len(given) > 1 or set_ or bounds or given.keys() & {"name", "deadline"}:
        remedy = "Of many jobs change --priority, --weight or --set-label, one at a time."
        raise ParameterError("is too much at once", field="change", remedy=remedy)
    (field,) = given
    action = "label" if field == "labels" else field
    act(
        action,
        job,
        meant,
        one=lambda maat, job_id: maat.job(job_id),
        told=lambda _: "is changed",
        url=url,
        as_json=as_json,
        more=given,
    )


def clone(
    job: JobNamed,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="A field of the new job, such as gpu_count=4, labels.team=vision or "
            "run.max_retries=0; null takes its default. May be repeated.",
        ),
    ] = None,
    secret_env: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a variable of your own environment: secrets are not copied. "
            "May be repeated."
        ),
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Repeat with the same key to get the same job again.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Submit a job like another one, with some fields changed."""
    changes = changes_of(set_ or [])
    if secret_env:
        run = changes.setdefault("run", {})
        run["secret_env"] = {name: _value_here(name) for name in secret_env}
    with client_of(url) as maat:
        job_id = job_id_of(maat, job)
        if isinstance(changes.get("labels"), dict):
            changes["labels"] = {**maat.job(job_id)["labels"], **changes["labels"]}
        made = maat.clone_job(job_id, changes, idempotency_key=idempotency_key)
    show(made, as_json, f"{made['id']} is {made['state']}")
    tell_warnings([made])


def changes_of(given: Sequence[str]) -> dict[str, Any]:
    """Read `field=value`: JSON, or else text; `a.b=value` sets a member. Raises ParameterError."""
    changes: dict[str, Any] = {}
    for text in given:
        path, equals, value = text.partition("=")
        first, dot, member = path.partition(".")
        if not equals or not first or (dot and not member):
            remedy = "Write FIELD=VALUE, such as --set gpu_count=4."
            raise ParameterError("is no change", field="--set", value=text, remedy=remedy)
        if not dot:
            changes[first] = _read(value)
            continue
        inner = changes.setdefault(first, {})
        if not isinstance(inner, dict):
            remedy = f"Set {first}, or members of it, and not both."
            raise ParameterError("is set twice", field="--set", value=text, remedy=remedy)
        inner[member] = value if first == "labels" else _read(value)
    return changes


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _value_here(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ParameterError(
            "is no variable of your environment",
            field="--secret-env",
            value=name,
            remedy=f"Set it first: export {name}=...",
        )
    return value
