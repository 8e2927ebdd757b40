"""Calls about the nodes of a cluster: what there is, and changes, which can be tried first."""

from __future__ import annotations

from maat.api.clusters import NodeChanges, NodeEffectOut, NodeOut, NodesBody
from maat.api.fields import Page
from maat.client.calls.core import (
    Call,
    Fields,
    Query,
    as_json,
    given_of,
    keyed_by,
    path_of,
    version_of,
)

_TRIED: Query = {"dry_run": "true"}


def nodes(cluster_id: str, *, limit: int = 500, cursor: str | None = None) -> Call[Page[NodeOut]]:
    return Call(
        "GET", path_of("clusters", cluster_id, "nodes"), given_of(limit=limit, cursor=cursor)
    )


def node(cluster_id: str, node_id: str) -> Call[NodeOut]:
    return Call("GET", path_of("clusters", cluster_id, "nodes", node_id))


def add_nodes(
    cluster_id: str, body: NodesBody | Fields, *, idempotency_key: str | None = None
) -> Call[Page[NodeOut]]:
    """Add nodes after the present ones."""
    return Call(
        "POST",
        path_of("clusters", cluster_id, "nodes"),
        body=as_json(body),
        headers=keyed_by(idempotency_key),
    )


def change_node(
    cluster_id: str, node_id: str, changes: NodeChanges | Fields, *, version: int
) -> Call[NodeOut]:
    return Call(
        "PATCH",
        path_of("clusters", cluster_id, "nodes", node_id),
        body=as_json(changes),
        headers=version_of(version),
    )


def try_node_change(
    cluster_id: str, node_id: str, changes: NodeChanges | Fields
) -> Call[NodeEffectOut]:
    """Say which jobs would have to leave after a change of a node; change nothing."""
    path = path_of("clusters", cluster_id, "nodes", node_id)
    return Call("PATCH", path, _TRIED, body=as_json(changes))


def act_on_node(
    cluster_id: str, node_id: str, action: str, *, version: int | None = None
) -> Call[NodeOut]:
    """Act on a node. `version`: refused unless the node has this version."""
    headers = {} if version is None else version_of(version)
    return Call(
        "POST",
        path_of("clusters", cluster_id, "nodes", node_id, "actions", action),
        headers=headers,
    )


def drain_node(cluster_id: str, node_id: str, *, version: int | None = None) -> Call[NodeOut]:
    return act_on_node(cluster_id, node_id, "drain", version=version)


def restore_node(cluster_id: str, node_id: str, *, version: int | None = None) -> Call[NodeOut]:
    return act_on_node(cluster_id, node_id, "restore", version=version)


def try_drain(cluster_id: str, node_id: str) -> Call[NodeEffectOut]:
    """Say which jobs a drain of the whole node would move; change nothing."""
    return Call(
        "POST", path_of("clusters", cluster_id, "nodes", node_id, "actions", "drain"), _TRIED
    )


def remove_node(cluster_id: str, node_id: str, *, version: int | None = None) -> Call[None]:
    """Remove the last node, which must be drained and idle."""
    headers = {} if version is None else version_of(version)
    return Call("DELETE", path_of("clusters", cluster_id, "nodes", node_id), headers=headers)


def try_node_removal(cluster_id: str, node_id: str) -> Call[NodeEffectOut]:
    """Say which jobs must leave before a node can be removed; change nothing."""
    return Call("DELETE", path_of("clusters", cluster_id, "nodes", node_id), _TRIED)
