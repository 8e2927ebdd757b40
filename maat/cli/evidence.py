"""`maat gpu-scores`, `maat forget`: what is believed by reports, by whom, and how it ends."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from maat.api.evidence import model_words, reporters_words
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.library.live import cluster_or_first
from maat.scheduling.errors import ParameterError

Cluster = Annotated[str | None, typer.Option(help="Cluster id or name; default: the first.")]
_COLUMNS = ("node", "GPU", "type", "score", "weight", "attempts", "reported by")


class Forgotten(StrEnum):
    """What is forgotten of a cluster."""

    GPU_SCORES = "gpu-scores"
    SLOWDOWNS = "slowdowns"
    BELIEFS = "beliefs"
    GRADIENTS = "gradients"
    HISTORY = "history"


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


def evidence(cluster: Cluster = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List of how many jobs of each model there are reports, and who reported."""
    with client_of(url) as maat:
        found = maat.model_evidence(cluster_or_first(maat, cluster))
    rows = [
        [
            model_words(one["model"], one["tenant"]),
            str(one["beliefs"]),
            str(one["gradients"]),
            str(one["history"]),
            reporters_words(one["reported_by"]),
        ]
        for one in found
    ]
    columns = ("model", "beliefs", "gradients", "history", "reported by")
    show(found, as_json, table_of(columns, rows) if rows else "No job has reported yet.")


def forget(
    what: Annotated[
        Forgotten, typer.Argument(help="What jobs reported of GPUs, of pairs, or of their models.")
    ],
    node: Annotated[
        str | None, typer.Option(help="Only the scores of this node's GPUs, by its name or id.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Only beliefs, gradients or history of this model.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Only beliefs, gradients or history of this tenant.")
    ] = None,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Forget what jobs reported of a cluster: of its GPUs, of pairs, or of their models."""
    of_models = what not in (Forgotten.GPU_SCORES, Forgotten.SLOWDOWNS)
    for name, value, belongs in (
        ("node", node, what is Forgotten.GPU_SCORES),
        ("model", model, of_models),
        ("tenant", tenant, of_models),
    ):
        if value is not None and not belongs:
            raise ParameterError(
                f"is not for {what.value}, which are of no {name}",
                field=name,
                value=value,
                remedy=f"Leave --{name} out.",
            )
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        if what is Forgotten.GPU_SCORES:
            maat.reset_gpu_scores(where, node_id=node)
        elif what is Forgotten.SLOWDOWNS:
            maat.reset_slowdowns(where)
        else:
            maat.reset_model_evidence(where, what.value, model=model, tenant=tenant)
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
