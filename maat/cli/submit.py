"""`maat submit`: a job, which is a model of the catalog or a command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.api.job_words import place_words, warning_words
from maat.cli import job_file
from maat.cli.command_line import RunOptions, run_body
from maat.cli.completion import model_names
from maat.cli.forecast import answer_question
from maat.cli.lazy_commands import words_after_dashes
from maat.cli.numbers import number_option, weight_option, whole_option
from maat.cli.option_groups import takes_groups
from maat.cli.priority import read_priority
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show
from maat.cli.stay_options import LeastStay, MostMoves
from maat.library.durations import bounds_of
from maat.scheduling.errors import ParameterError
from maat.vocabulary import LARGEST_INTEGER, MAX_GPUS, Adaptivity, ExecutorKind, WorkloadKind

if TYPE_CHECKING:
    from maat.api.job_answers import DryRunOut, JobOut
    from maat.client import Client

# The limits of the service.
MAX_ARRAY_JOBS, MAX_ARRAY_INDEX = 1000, 999_999
MAX_BATCH_SIZE, MAX_WORK_SCALE, MAX_PROMISED_SECONDS = LARGEST_INTEGER, 1000.0, 1_000_000.0


@takes_groups
def submit(
    context: typer.Context,
    options: RunOptions,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE",
            help="A name for the job; of a command: default its model. Or a YAML file that says "
            "all of it, with the fields of the REST API, such as job.yaml.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model of the catalog to train; of a command: any name, default its script's.",
            autocompletion=model_names,
        ),
    ] = None,
    adaptivity: Annotated[
        Adaptivity | None,
        typer.Option(
            help="What the scheduler may vary; default: adaptive, or rigid for a command without "
            "--batch-size."
        ),
    ] = None,
    gpu_count: Annotated[
        int | None,
        whole_option(
            "--gpus",
            least=1,
            most=MAX_GPUS,
            help="GPUs to ask for (rigid jobs: to run on; of a command: default 1).",
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
        typer.Option(
            parser=read_priority,
            metavar="CLASS",
            help="low, normal (the default), high or urgent; or a number: they are -10, 0, 10, 20.",
        ),
    ] = None,
    weight: Annotated[
        float | None,
        weight_option(
            help="How many jobs like it it counts as, to policies that weigh jobs; default: 1."
        ),
    ] = None,
    least_stay_seconds: LeastStay = None,
    most_moves_per_hour: MostMoves = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Label by which use and cost are summed up, such as team=vision. May be repeated.",
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="A wish, such as 2026-12-01T08:00:00Z (cluster time): it is told when it will be "
            "missed.",
        ),
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(
            metavar="INDICES",
            help="Submit it once for each index, such as 0-9 or 0,3,7; a command finds its own in "
            "MAAT_ARRAY_INDEX.",
        ),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOB",
            help="Start only once this job has succeeded; by id or external id. May be repeated.",
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check it and say what would be made.")
    ] = False,
    forecast: Annotated[
        bool,
        typer.Option(
            "--forecast",
            help="Only ask when it would start and end, and whom it would slow down.",
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Submit a job to a running Maat: a model of the catalog, or a command after --."""
    how = _How(dry_run, forecast, array, idempotency_key, as_json)
    if name is not None and job_file.is_job_file(name):
        path = Path(name)
        file = job_file.read(context, path)
        with job_file.refusals_by_line(path, file), client_of(url) as maat:
            _send(maat, file.body, how)
        return
    argv = words_after_dashes(context)
    run = None
    if argv is None:
        options.refuse_any()
        adaptivity = adaptivity or Adaptivity.ADAPTIVE
    else:
        run = run_body(argv, options)
        from maat.api.commands import stem_of

        model = model or stem_of(argv)
        name = name or model
        if adaptivity is None and batch_size is None:
            adaptivity, gpu_count = Adaptivity.RIGID, gpu_count or 1
        elif gpu_count is None:  # with both, the service asks which is meant
            adaptivity = adaptivity or Adaptivity.ADAPTIVE
    given: dict[str, Any] = {
        "adaptivity": None if adaptivity is None else adaptivity.value,
        "gpu_count": gpu_count,
        "min_gpus": min_gpus,
        "max_gpus": max_gpus,
        "batch_size": batch_size,
        "max_batch_size": max_batch_size,
        "gpu_types": gpu_type or None,
        "work_scale": work_scale,
        "promised_seconds": promised_seconds,
        "priority": priority,
        "weight": weight,
        **bounds_of(least_stay_seconds, most_moves_per_hour),
        "labels": labels_of(label or []) or None,
        "after": after or None,
        "deadline": deadline,
        "external_id": external_id,
        "run": run,
    }
    always = {
        "name": _needed("name", name, "Give the job a name: maat submit NAME --model MODEL."),
        "model": _needed("--model", model, "Give a model of `GET /models`, or a command after --."),
        "workload_kind": kind.value,
        "preemptible": preemptible,
    }
    body: Any = always | {k: v for k, v in given.items() if v is not None}
    if cluster is not None:
        body |= {"cluster_id": cluster}
    with client_of(url) as maat:
        _send(maat, body, how)


@dataclass(frozen=True)
class _How:
    """What is done with a job besides submitting it once."""

    dry_run: bool
    forecast: bool
    array: str | None
    idempotency_key: str | None
    as_json: bool


def _send(maat: Client, body: Any, how: _How) -> None:
    """Submit a job as it was asked for, and print what came of it."""
    if body.get("run") is not None and body.get("cluster_id") is None:
        body = {**body, "cluster_id": _cluster_of_commands(maat)}
    if how.dry_run:
        found = maat.try_job(body)
        show(found, how.as_json, "\n".join(dry_run_lines(found)))
        return
    if how.forecast:
        answer_question(maat, {"job": body}, how.as_json)
        return
    if how.array is not None:
        made = maat.submit_array(
            body, indices=indices_of(how.array), idempotency_key=how.idempotency_key
        )
        first = made["items"][0]["job"]
        words = f"{made['created']} jobs: array {first['array_id'] if first else ''}"
        show(made, how.as_json, words)
        tell_warnings(item["job"] for item in made["items"])
        return
    job = maat.submit_job(body, idempotency_key=how.idempotency_key)
    show(job, how.as_json, f"{job['id']} is {job['state']}")
    tell_warnings([job])
    if not how.as_json:
        typer.echo(_next_step(job), err=True)


def tell_warnings(jobs: Iterable[JobOut | None]) -> None:
    """Say on standard error why no round will start jobs as things stand, each reason once."""
    each = (warning_words(one) for job in jobs if job is not None for one in job["warnings"])
    for line in dict.fromkeys(each):
        typer.echo(line, err=True)


def indices_of(given: str) -> list[int]:
    """Read `0-9`, `0,3,7` or both: `0-3,8`. Raises ParameterError."""
    found: list[int] = []
    for part in given.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise _no_indices(given)
        low, high = int(first), int(last) if dash else int(first)
        if not low <= high <= MAX_ARRAY_INDEX or high - low >= MAX_ARRAY_JOBS:
            raise _no_indices(given)
        found += range(low, high + 1)
    return found


def _no_indices(given: str) -> ParameterError:
    remedy = f"Write 0-9 or 0,3,7: at most {MAX_ARRAY_JOBS} indices, up to {MAX_ARRAY_INDEX}."
    return ParameterError("are no indices", field="--array", value=given, remedy=remedy)


def dry_run_lines(found: DryRunOut) -> list[str]:
    types = [
        f"  {one['gpu_type']}: from {one['least_gpus']} of {one['cluster_gpus']} GPUs"
        for one in found["runs_on"]
    ]
    place = place_words(found["waiting"], found["position"], would="it would be")
    warned = [warning_words(one) for one in found["warnings"]]
    return [found["sentence"], *warned, place, "It could run on", *types]


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


def labels_of(given: Sequence[str]) -> dict[str, str]:
    """Read labels, each `key=value`. Raises ParameterError."""
    labels: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or key in labels:
            raise ParameterError(
                "is given twice" if key in labels else "is no label",
                field="--label",
                value=text,
                remedy="Write key=value, each key once, such as --label team=vision.",
            )
        labels[key] = value
    return labels


def _needed(field: str, value: str | None, remedy: str) -> str:
    if value is None:
        raise ParameterError("is missing", field=field, remedy=remedy)
    return value


def _next_step(job: JobOut) -> str:
    """Say how to follow a job: on standard error, so that a script reads the id alone."""
    if job["runs_command"]:
        return f"Follow it: maat logs -f {job['id']}. Why it waits: maat explain {job['id']}."
    return f"Why it waits, or has what it has: maat explain {job['id']}."
