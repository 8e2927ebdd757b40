"""`maat import cluster`: a cluster of the nodes that another system names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.clusters import (
    Interference,
    JobsPerGpu,
    PlacerOption,
    created_lines,
    number_or_name,
)
from maat.cli.import_trace import pairs_of
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.models.gpu_types import GPU_TYPES
from maat.scheduling.errors import ClusterError
from maat.vocabulary import ExecutorKind
from maat.workloads.cluster_text import (
    MOST_CHARACTERS,
    FoundCluster,
    LeftOut,
    cluster_text,
    read_cluster,
)

_MOST_SHOWN = 10
_MOST_REASONS = 20


def import_cluster(
    file: Annotated[
        Path, typer.Argument(help="What scontrol or sinfo wrote, slurm.conf, or YAML.")
    ],
    name: Annotated[
        str | None, typer.Option(help="The cluster's name; default: the file's.")
    ] = None,
    gpu_type: Annotated[
        list[str] | None,
        typer.Option(metavar="THEIRS=OURS", help="What a GPU type counts as. May be repeated."),
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Its policy; default: sia.")] = None,
    placer: PlacerOption = None,
    jobs_per_gpu: JobsPerGpu = None,
    interference: Interference = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which nodes it would have. No service.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Create a cluster of the nodes that scontrol, sinfo, slurm.conf or YAML name.

    Its jobs are simulated.
    """
    cluster = read_cluster(
        _text(file), gpu_types=pairs_of(gpu_type or [], field="gpu_type", example="titan=v100")
    )
    lines = node_lines(cluster)
    if dry_run:
        show(_as_json(cluster), as_json, "\n".join(lines))
        return
    body: dict[str, Any] = {
        "name": name or file.stem,
        "executor": ExecutorKind.SIMULATED.value,
        "nodes": [
            {"name": node.name, "gpu_type": node.gpu_type, "gpu_count": node.gpu_count}
            for node in cluster.nodes
        ],
    }
    given = {
        "policy": policy,
        "placer": placer,
        "jobs_per_gpu": jobs_per_gpu,
        "interference": number_or_name(interference),
    }
    body |= {key: value for key, value in given.items() if value is not None}
    with client_of(url) as maat:
        made = maat.create_cluster(body)
    show(made, as_json, "\n".join([*lines, created_lines(made)]))


def node_lines(cluster: FoundCluster) -> list[str]:
    """Return the nodes by type, what their GPU types were called, and what was left out."""
    rows = [
        [kind, str(count), str(gpus), str(count * gpus)]
        for (kind, gpus), count in cluster.groups.items()
    ]
    lines = [
        f"Read as {cluster.format}:",
        table_of(("GPU type", "nodes", "GPUs per node", "GPUs"), rows),
        *(f"{given} counts as {known}" for given, known in cluster.renamed.items()),
    ]
    out = [f"{node.name} ({node.out_of_service})" for node in cluster.nodes if node.out_of_service]
    if out:
        lines.append(f"{len(out)} out of service there, and in service here: {_named(out)}")
    asleep = [node.name for node in cluster.nodes if node.is_asleep]
    if asleep:
        words = "asleep there to save power, and in service here"
        lines.append(f"{len(asleep)} {words}: {_named(asleep)}")
    lines += _left_out_lines(cluster)
    if types := cluster.unknown_types:
        like = f"say what each is like, such as --gpu-type {types[0]}=a100"
        lines.append(f"GPU types that are not known: {', '.join(types)}; {like}")
        lines.append(f"known are {', '.join(GPU_TYPES)}")
    return lines


def _left_out_lines(cluster: FoundCluster) -> list[str]:
    """Return what was left out, by the reason for it: hundreds of nodes may have the same."""
    by_reason: dict[str, list[LeftOut]] = {}
    for each in cluster.left_out:
        by_reason.setdefault(each.why, []).append(each)
    lines = []
    for why, nodes in list(by_reason.items())[:_MOST_REASONS]:
        first, named = nodes[0], _named([node.name for node in nodes])
        if len(nodes) == 1:
            lines.append(f"left out, line {first.row}: {first.name} {why}")
        else:
            words = f"{len(nodes)} nodes, of which each {why}: {named}"
            lines.append(f"left out, from line {first.row}: {words}")
    if more := len(by_reason) - _MOST_REASONS:
        lines += [f"left out for {more} more reasons; --json names all"] if more > 0 else []
    return lines


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _as_json(cluster: FoundCluster) -> dict[str, Any]:
    return {
        "format": cluster.format,
        "groups": [
            {"gpu_type": kind, "gpus_per_node": gpus, "nodes": count}
            for (kind, gpus), count in cluster.groups.items()
        ],
        "nodes": [
            {"name": node.name, "gpu_type": node.gpu_type, "gpu_count": node.gpu_count}
            for node in cluster.nodes
        ],
        "left_out": [{"row": e.row, "name": e.name, "why": e.why} for e in cluster.left_out],
        "renamed": dict(cluster.renamed),
        "out_of_service": {n.name: n.out_of_service for n in cluster.nodes if n.out_of_service},
        "asleep": [node.name for node in cluster.nodes if node.is_asleep],
        "unknown_types": list(cluster.unknown_types),
    }


def _text(file: Path) -> str:
    """Return the text of a file. Raises ClusterError."""
    try:
        with file.open("rb") as opened:
            read = opened.read(MOST_CHARACTERS + 1)
        return cluster_text(read)
    except OSError as problem:
        raise ClusterError(
            f"cannot be read: {problem.strerror}",
            field="file",
            value=str(file),
            remedy="Check the path and that the file may be read.",
        ) from None
