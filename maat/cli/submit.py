"""`maat submit`: a job, which is a model of the catalog or a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.command_line import RunOptions, run_body
from maat.cli.lazy_commands import words_after_dashes
from maat.cli.numbers import number_option, whole_option
from maat.cli.option_groups import takes_groups
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show
from maat.scheduling.errors import ParameterError
from maat.vocabulary import MAX_GPUS, MAX_PRIORITY, Adaptivity, ExecutorKind, WorkloadKind

if TYPE_CHECKING:
    from maat.client import Client

# The limits of the service.
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
        if adaptivity is None and batch_size is None:
            adaptivity, gpu_count = Adaptivity.RIGID, gpu_count or 1
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
