"""`maat import cluster`: a cluster of the nodes that another system names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.clusters import JobsPerGpu, PlacerOption, created_line
from maat.cli.import_trace import pairs_of
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.scheduling.errors import ClusterError
from maat.vocabulary import ExecutorKind
from maat.workloads.cluster_text import MOST_CHARACTERS, FoundCluster, read_cluster

_MOST_SHOWN = 10


def import_cluster(
    file: Annotated[Path, typer.Argument(help="What scontrol or sinfo wrote, or YAML.")],
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which nodes it would have. No service.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Create a cluster of the nodes that scontrol, sinfo or YAML name; its jobs are simulated."""
    found = read_cluster(
        _text(file), gpu_types=pairs_of(gpu_type or [], field="gpu_type", example="titan=v100")
    )
    lines = node_lines(found)
    if dry_run:
        show(_as_json(found), as_json, "\n".join(lines))
        return
    body: dict[str, Any] = {
        "name": name or file.stem,
        "executor": ExecutorKind.SIMULATED.value,
        "nodes": [
            {"name": node.name, "gpu_type": node.gpu_type, "gpu_count": node.gpu_count}
            for node in found.nodes
        ],
    }
    given = {"policy": policy, "placer": placer, "jobs_per_gpu": jobs_per_gpu}
    body |= {key: value for key, value in given.items() if value is not None}
    with client_of(url) as maat:
        made = maat.create_cluster(body)
    show(made, as_json, "\n".join([*lines, created_line(made)]))


def node_lines(found: FoundCluster) -> list[str]:
    """Return the nodes by type, what their GPU types were called, and what was left out."""
    rows = [
        [kind, str(count), str(gpus), str(count * gpus)]
        for (kind, gpus), count in found.groups.items()
    ]
    lines = [
        f"Read as {found.format}:",
        table_of(("GPU type", "nodes", "GPUs per node", "GPUs"), rows),
        *(f"{given} counts as {known}" for given, known in found.renamed.items()),
    ]
    out = [node for node in found.nodes if node.out_of_service]
    if out:
        named = ", ".join(f"{node.name} ({node.out_of_service})" for node in out[:_MOST_SHOWN])
        lines.append(f"{len(out)} are out of service there, and in service here: {named}")
    for each in found.left_out[:_MOST_SHOWN]:
        lines.append(f"left out, line {each.row}: {each.name} {each.why}")
    if len(found.left_out) > _MOST_SHOWN:
        lines.append(f"left out: {len(found.left_out) - _MOST_SHOWN} more")
    return lines


def _as_json(found: FoundCluster) -> dict[str, Any]:
    return {
        "format": found.format,
        "groups": [
            {"gpu_type": kind, "gpus_per_node": gpus, "nodes": count}
            for (kind, gpus), count in found.groups.items()
        ],
        "nodes": [
            {"name": node.name, "gpu_type": node.gpu_type, "gpu_count": node.gpu_count}
            for node in found.nodes
        ],
        "left_out": [{"row": e.row, "name": e.name, "why": e.why} for e in found.left_out],
        "renamed": dict(found.renamed),
    }


def _text(file: Path) -> str:
    """Return the text of a file. Raises ClusterError."""
    try:
        with file.open("rb") as opened:
            read = opened.read(MOST_CHARACTERS + 1)
        return read.decode("utf-8-sig")
    except OSError as problem:
        raise ClusterError(
            f"cannot be read: {problem.strerror}",
            field="file",
            value=str(file),
            remedy="Check the path and that the file may be read.",
        ) from None
    except UnicodeDecodeError:
        raise ClusterError(
            "is no text in UTF-8",
            field="file",
            value=str(file),
            remedy="Save it as UTF-8 text.",
        ) from None
