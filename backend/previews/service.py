"""Accepts previews of rounds: checks a request, then stores it. The worker plays the rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.clusters.interference import stored_interference
from backend.clusters.repository import get_cluster, nodes_of
from backend.clusters.service import wanted_parts
from backend.clusters.sharing import check_executor_shares, check_nothing_shared
from backend.database import after_commit
from backend.operations.models import Operation
from backend.operations.service import begin_operation
from backend.previews.models import RoundPreview
from backend.problems import Conflict, FieldError, Invalid, NotFound
from backend.queue import PREVIEW_ROUND, Queue
from backend.tenancy import find_owned
from maat.api.previews import RoundPreviewBody

PREVIEW = "preview"


@dataclass(frozen=True)
class PreparedPreview:
    """A checked request, ready to store."""

    cluster_id: str
    cluster_version: int
    request: dict[str, Any]
    wanted: dict[str, Any]


def prepare_preview(session: Session, cluster_id: str, body: RoundPreviewBody) -> PreparedPreview:
    """Check a request as a change of the cluster does.

    Raises Invalid naming the field, Conflict for a cluster without nodes.
    """
    cluster = get_cluster(session, cluster_id)
    given = body.model_dump(exclude_unset=True, exclude_none=True, exclude={"drained_nodes"})
    parts = wanted_parts(cluster, given)
    rounds = given.get("round_seconds", cluster.round_seconds)
    places = given.get("jobs_per_gpu", cluster.jobs_per_gpu)
    check_executor_shares(cluster.executor, places)
    if places < cluster.jobs_per_gpu:
        check_nothing_shared(session, cluster)
    nodes = nodes_of(session, cluster.id)
    if not nodes:
        raise Conflict(f"The cluster {cluster.name!r} has no node yet, and makes no rounds.")
    named = {key: node.name for node in nodes for key in (node.id, node.name)}
    for index, name in enumerate(body.drained_nodes):
        if name not in named:
            message, remedy = f"The cluster has no node {name!r}.", "Use one of its nodes."
            pointer = f"/drained_nodes/{index}"
            error = FieldError(pointer, "no_such_node", message, remedy, name)
            raise Invalid(message, errors=[error])
    drained = sorted({named[name] for name in body.drained_nodes})
    bounds = {
        name: getattr(body if name in body.model_fields_set else cluster, name)
        for name in ("least_stay_seconds", "most_moves_per_hour")
    }
    wanted = parts | bounds
    wanted |= {
        "round_seconds": rounds,
        "jobs_per_gpu": places,
        "interference": stored_interference(
            given.get("interference", cluster.interference),
            executor=cluster.executor,
            jobs_per_gpu=places,
        ),
        "drained_nodes": drained,
    }
    request = body.model_dump(exclude_unset=True)
    return PreparedPreview(cluster.id, cluster.version, request, wanted)


def store_preview(
    session: Session, principal: Principal, prepared: PreparedPreview, queue: Queue
) -> tuple[RoundPreview, Operation]:
    owner: dict[str, Any] = {"owner_id": principal.user_id, "tenant_id": principal.tenant_id}
    operation = Operation(
        kind=PREVIEW, total=2.0, unit="rounds", message="Waiting for a worker.", **owner
    )
    preview = RoundPreview(**vars(prepared), operation_id="", **owner)
    url = f"/api/v1/clusters/{prepared.cluster_id}/previews"
    begin_operation(session, operation, preview, result_url=url)
    after_commit(session, lambda: queue.send(PREVIEW_ROUND, preview.id))
    return preview, operation


def get_preview(
    session: Session, principal: Principal, cluster_id: str, preview_id: str
) -> RoundPreview:
    """Find a preview of this cluster. Raises NotFound for another tenant's preview too."""
    cluster = get_cluster(session, cluster_id)
    found = find_owned(session, principal, RoundPreview, preview_id, noun="preview")
    if found.cluster_id != cluster.id:
        raise NotFound(f"There is no preview {preview_id!r}.")
    return found
