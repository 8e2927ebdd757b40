"""Routes that change nodes which jobs may use: each can be tried first (`dry_run`)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.models import Node
from backend.clusters.resources import show_node
from backend.idempotency import Answer
from backend.occupancy import effects, service
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import ReadingDep, SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.clusters import NodeChanges, NodeEffectOut, NodeOut

router = APIRouter(
    prefix="/clusters/{cluster_id}/nodes", tags=["clusters"], route_class=StrictRoute
)

Writer = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]
DryRun = Annotated[
    bool, Query(description="Change nothing: only say which jobs would have to leave.")
]
EITHER = NodeOut | NodeEffectOut
TRIED: dict[int | str, dict[str, Any]] = {
    200: {"model": NodeEffectOut, "description": "With `dry_run`: nothing was changed."}
}


@router.patch("/{node_id}", operation_id="changeNode", response_model=EITHER)
def change_node(
    session: SessionDep,
    reading: ReadingDep,
    principal: Writer,
    cluster_id: str,
    node_id: str,
    body: NodeChanges,
    response: Response,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> NodeOut | NodeEffectOut:
    """Set which GPUs of a node may not be used, or how many the last node has.

    Needs If-Match, but for `dry_run`. GPUs that are to go must be drained and idle.
    """
    if dry_run:
        with reading() as before:
            return effects.effect_of_change(before, principal, cluster_id, node_id, body)
    return _shown(service.change_node(session, cluster_id, node_id, body, if_match), response)


@router.post("/{node_id}/actions/drain", operation_id="drainNode", response_model=EITHER)
def drain_node(
    session: SessionDep,
    reading: ReadingDep,
    principal: Writer,
    cluster_id: str,
    node_id: str,
    response: Response,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> NodeOut | NodeEffectOut:
    """Take the whole node out of service: the next round moves its jobs away."""
    if dry_run:
        with reading() as before:
            return effects.effect_of_drain(before, principal, cluster_id, node_id)
    return _shown(service.set_drained(session, cluster_id, node_id, True, if_match), response)


@router.post("/{node_id}/actions/restore", operation_id="restoreNode")
def restore_node(
    session: SessionDep,
    _: Writer,
    cluster_id: str,
    node_id: str,
    response: Response,
    if_match: IfMatch = None,
) -> NodeOut:
    return _shown(service.set_drained(session, cluster_id, node_id, False, if_match), response)


@router.delete("/{node_id}", operation_id="deleteNode", status_code=204, responses=TRIED)
def delete_node(
    session: SessionDep,
    reading: ReadingDep,
    principal: Writer,
    cluster_id: str,
    node_id: str,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> Response:
    """Delete the last node, which must be drained and idle.

    The other GPUs keep their numbers.
    """
    if dry_run:
        with reading() as before:
            found = effects.effect_of_removal(before, principal, cluster_id, node_id)
        return Answer(200, found).response()
    service.delete_node(session, cluster_id, node_id, if_match)
    return Response(status_code=204)


def _shown(node: Node, response: Response) -> NodeOut:
    response.headers["ETag"] = etag(node.version)
    return show_node(node)
