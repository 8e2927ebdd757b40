"""Routes of clusters, and of the nodes that they have. occupancy/ changes nodes that jobs use."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters import service
from backend.clusters.interference import with_measurements
from backend.clusters.models import Cluster, Node
from backend.clusters.repository import get_cluster, get_node
from backend.clusters.resources import show_cluster, show_clusters, show_node
from backend.idempotency import Answer, KeyHeader, Once, answer_once, answer_prepared
from backend.pagination import Order, PageAsked, paginate
from backend.web.bodies import NODES_BYTES, takes_bytes
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.clusters import (
    ClusterBody,
    ClusterChanges,
    ClusterOut,
    NodeOut,
    NodesBody,
)
from maat.api.fields import Page

router = APIRouter(prefix="/clusters", tags=["clusters"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.CLUSTERS_READ))]
Writer = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]


@router.get("", operation_id="listClusters")
def list_clusters(
    session: SessionDep,
    _: Reader,
    asked: PageAsked,
) -> Page[ClusterOut]:
    """Oldest first; jobs that name no cluster go to the first."""
    found = asked.linked(
        paginate(
            session,
            select(Cluster),
            order=Order([col(Cluster.id)]),
            filters={"list": "clusters"},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    return Page(items=show_clusters(session, found.items), next_cursor=found.next_cursor)


@router.post("", operation_id="createCluster", status_code=201, response_model=ClusterOut)
@takes_bytes(NODES_BYTES)
def create_cluster(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Writer,
    body: ClusterBody,
    key: KeyHeader = None,
) -> Response:
    """Make a cluster with its nodes; its time begins now."""

    def answer(prepared: service.PreparedCluster) -> Answer:
        cluster = service.store_cluster(session, prepared)
        return Answer(
            201,
            show_cluster(session, cluster),
            {"Location": f"/api/v1/clusters/{cluster.id}", "ETag": _tag(cluster)},
        )

    once = Once(principal.user_id, "POST /clusters", key, body)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=lambda before: service.prepare_cluster(with_measurements(before, principal, body)),
        answer=answer,
    )


@router.get("/{cluster_id}", operation_id="getCluster")
def read_cluster(session: SessionDep, _: Reader, cluster_id: str, response: Response) -> ClusterOut:
    """By id or by name."""
    return _shown(session, get_cluster(session, cluster_id), response)


@router.patch("/{cluster_id}", operation_id="changeCluster")
def change_cluster(
    session: SessionDep,
    reading: ReadingDep,
    principal: Writer,
    cluster_id: str,
    body: ClusterChanges,
    response: Response,
    if_match: IfMatch = None,
) -> ClusterOut:
    """Change policy, placer, round interval or speed; the next round follows.

    Needs If-Match.
    """
    with reading() as before:
        service.check_changes(before, cluster_id, body)
        wanted = with_measurements(before, principal, body)
    return _shown(session, service.change_cluster(session, cluster_id, wanted, if_match), response)


@router.post("/{cluster_id}/actions/pause", operation_id="pauseCluster")
def pause_cluster(
    session: SessionDep, _: Writer, cluster_id: str, response: Response, if_match: IfMatch = None
) -> ClusterOut:
    """Stop cluster time: no rounds and no progress until it is resumed."""
    return _shown(session, service.set_paused(session, cluster_id, True, if_match), response)


@router.post("/{cluster_id}/actions/resume", operation_id="resumeCluster")
def resume_cluster(
    session: SessionDep, _: Writer, cluster_id: str, response: Response, if_match: IfMatch = None
) -> ClusterOut:
    return _shown(session, service.set_paused(session, cluster_id, False, if_match), response)


@router.get("/{cluster_id}/nodes", operation_id="listNodes")
def list_nodes(
    session: SessionDep,
    _: Reader,
    cluster_id: str,
    asked: PageAsked,
) -> Page[NodeOut]:
    """In the order that numbers the GPUs."""
    cluster = get_cluster(session, cluster_id)
    statement = select(Node).where(Node.cluster_id == cluster.id)
    filters = {"list": "nodes", "cluster": cluster.id}
    found = asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(Node.position)]),
            filters=filters,
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    return found.shown(show_node)


@router.post(
    "/{cluster_id}/nodes", operation_id="addNodes", status_code=201, response_model=Page[NodeOut]
)
@takes_bytes(NODES_BYTES)
def add_nodes(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Writer,
    cluster_id: str,
    body: NodesBody,
    key: KeyHeader = None,
) -> Response:
    """Add nodes after the present ones: no GPU changes its number."""

    def answer() -> Answer:
        nodes = service.add_nodes(session, cluster_id, body.nodes)
        return Answer(201, Page(items=[show_node(node) for node in nodes], next_cursor=None))

    with reading() as before:
        route = f"POST /clusters/{get_cluster(before, cluster_id).id}/nodes"
    return answer_once(session, Once(principal.user_id, route, key, body), settings, answer)


@router.get("/{cluster_id}/nodes/{node_id}", operation_id="getNode")
def read_node(
    session: SessionDep, _: Reader, cluster_id: str, node_id: str, response: Response
) -> NodeOut:
    """By id or by name."""
    return _shown_node(get_node(session, get_cluster(session, cluster_id).id, node_id), response)


def _shown(session: Session, cluster: Cluster, response: Response) -> ClusterOut:
    response.headers["ETag"] = _tag(cluster)
    return show_cluster(session, cluster)


def _tag(cluster: Cluster) -> str:
    """Return the ETag. Rounds change what is shown of a cluster."""
    return etag(cluster.version, cluster.latest_round)


def _shown_node(node: Node, response: Response) -> NodeOut:
    response.headers["ETag"] = etag(node.version)
    return show_node(node)
