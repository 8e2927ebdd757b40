"""`maat gpu-scores`, `maat forget`: what is believed by reports, by whom, and how it ends."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from maat.api.evidence import reporters_words
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.library.live import cluster_or_first
from maat.scheduling.errors import ParameterError

Cluster = Annotated[str | None, typer.Option(help="Cluster id or name; default: the first.")]
_COLUMNS = ("node", "GPU", "type", "score", "weight", "attempts", "reported by")


class Forgotten(StrEnum):
    """What is forgotten of a cluster."""

    GPU_SCORES = "gpu-scores"
    SLOWDOWNS = "slowdowns"


def gpu_scores(cluster: Cluster = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List how slow GPUs are believed to be, by jobs that ran on several, and who reported it."""
    with client_of(url) as maat:
        found = maat.gpu_scores(cluster_or_first(maat, cluster))
    rows = [
        [
            one["node"],
            str(one["gpu_index"]),
            one["gpu_type"],
            f"{one['score']:.2f}",
            f"{one['weight']:.2f}",
            str(one["attempts"]),
            reporters_words(one["reported_by"]),
        ]
        for one in found
    ]
    show(found, as_json, table_of(_COLUMNS, rows) if rows else "No job has compared GPUs yet.")


def forget(
    what: Annotated[Forgotten, typer.Argument(help="What jobs reported of GPUs, or of pairs.")],
    node: Annotated[
        str | None, typer.Option(help="Only the scores of this node's GPUs, by its name or id.")
    ] = None,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Forget what jobs reported of a cluster: GPUs count as equal, pairs as declared."""
    if node is not None and what is Forgotten.SLOWDOWNS:
        raise ParameterError(
            "is not for slowdowns, which are of no node",
            field="node",
            value=node,
            remedy="Leave --node out.",
        )
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        if what is Forgotten.GPU_SCORES:
            maat.reset_gpu_scores(where, node_id=node)
        else:
            maat.reset_slowdowns(where)
    show({"forgotten": what.value, "cluster": where}, as_json, f"{what.value} are forgotten")


def forget_belief(
    job: Annotated[str, typer.Argument(help="The job's id.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Forget what was measured of a job; it is measured again as it trains."""
    with client_of(url) as maat:
        maat.reset_belief(job)
    show({"forgotten": "belief", "job": job}, as_json, f"what was measured of {job} is forgotten")
