"""Calls about clusters: reservations, quotas, rounds, and previews of rounds."""

from __future__ import annotations

from maat.api.clusters import (
    ClusterBody,
    ClusterChanges,
    ClusterChangesOut,
    ClusterOut,
    ClusterStateOut,
)
from maat.api.evidence import GpuScoreOut, ModelEvidenceOut, SharedModelOut, SlowdownOut
from maat.api.fields import Page
from maat.api.imports import ClusterImportBody, ClusterImportOut
from maat.api.previews import RoundPreviewBody, RoundPreviewOut
from maat.api.quotas import QuotaBody, QuotaOut, QuotaPage
from maat.api.reservations import ReservationBody, ReservationOut
from maat.api.rounds import RoundDetailOut, RoundOut, TimelineOut
from maat.client.calls.core import (
    Call,
    Fields,
    as_json,
    given_of,
    keyed_by,
    path_of,
    version_of,
)


def clusters() -> Call[Page[ClusterOut]]:
    return Call("GET", path_of("clusters"), {"limit": 100})


def cluster(cluster_id: str) -> Call[ClusterOut]:
    return Call("GET", path_of("clusters", cluster_id))


def create_cluster(
    body: ClusterBody | Fields, *, idempotency_key: str | None = None
) -> Call[ClusterOut]:
    return Call("POST", path_of("clusters"), body=as_json(body), headers=keyed_by(idempotency_key))


def import_cluster(body: ClusterImportBody | Fields) -> Call[ClusterImportOut]:
    """Read other systems' nodes; give the answer's `nodes` to `create_cluster`."""
    return Call("POST", path_of("imports", "cluster"), body=as_json(body))


def change_cluster(
    cluster_id: str, changes: ClusterChanges | Fields, *, version: int
) -> Call[ClusterOut]:
    return Call(
        "PATCH", path_of("clusters", cluster_id), body=as_json(changes), headers=version_of(version)
    )


def act_on_cluster(cluster_id: str, action: str, *, version: int | None = None) -> Call[ClusterOut]:
    """Act on a cluster. `version`: refused unless the cluster has this version."""
    return Call(
        "POST",
        path_of("clusters", cluster_id, "actions", action),
        headers={} if version is None else version_of(version),
    )


def preview_round(
    cluster_id: str, body: RoundPreviewBody | Fields, *, idempotency_key: str | None = None
) -> Call[RoundPreviewOut]:
    """Ask what the next round would do after a change; follow it with `round_preview`."""
    return Call(
        "POST",
        path_of("clusters", cluster_id, "previews"),
        body=as_json(body),
        headers=keyed_by(idempotency_key),
    )


def round_preview(cluster_id: str, preview_id: str) -> Call[RoundPreviewOut]:
    return Call("GET", path_of("clusters", cluster_id, "previews", preview_id))


def cluster_state(cluster_id: str, *, round: int | None = None) -> Call[ClusterStateOut]:
    """Which job holds which GPU: now, or as a past round left them."""
    path = path_of("clusters", cluster_id, "state")
    return Call("GET", path, given_of(round=round))


def cluster_changes(cluster_id: str, *, round: int | None = None) -> Call[ClusterChangesOut]:
    """Which jobs hold other GPUs now than a past round left them; default: the last but one."""
    path = path_of("clusters", cluster_id, "changes")
    return Call("GET", path, given_of(round=round))


def timeline(
    cluster_id: str, *, start: str | None = None, end: str | None = None, points: int | None = None
) -> Call[TimelineOut]:
    return Call(
        "GET",
        path_of("clusters", cluster_id, "timeline"),
        given_of(**{"from": start, "to": end, "points": points}),
    )


def reservations(
    cluster_id: str, *, over: bool = False, limit: int = 100, cursor: str | None = None
) -> Call[Page[ReservationOut]]:
    """List present and future reservations; with `over`, past ones too."""
    return Call(
        "GET",
        path_of("clusters", cluster_id, "reservations"),
        given_of(over=over or None, limit=limit, cursor=cursor),
    )


def reservation(cluster_id: str, reservation_id: str) -> Call[ReservationOut]:
    return Call("GET", path_of("clusters", cluster_id, "reservations", reservation_id))


def reserve(
    cluster_id: str, body: ReservationBody | Fields, *, idempotency_key: str | None = None
) -> Call[ReservationOut]:
    return Call(
        "POST",
        path_of("clusters", cluster_id, "reservations"),
        body=as_json(body),
        headers=keyed_by(idempotency_key),
    )


def remove_reservation(cluster_id: str, reservation_id: str) -> Call[None]:
    return Call("DELETE", path_of("clusters", cluster_id, "reservations", reservation_id))


def quotas(cluster_id: str, *, limit: int = 500, cursor: str | None = None) -> Call[QuotaPage]:
    """List the quotas that you may see, and all GPU types of the cluster."""
    return Call(
        "GET", path_of("clusters", cluster_id, "quotas"), given_of(limit=limit, cursor=cursor)
    )


def quota(cluster_id: str, tenant: str, gpu_type: str) -> Call[QuotaOut]:
    return Call("GET", path_of("clusters", cluster_id, "quotas", tenant, gpu_type))


def set_quota(
    cluster_id: str,
    tenant: str,
    gpu_type: str,
    body: QuotaBody | Fields,
    *,
    version: int | None = None,
) -> Call[QuotaOut]:
    """Make or change a quota. `version`: the one that is changed; None makes a new quota."""
    return Call(
        "PUT",
        path_of("clusters", cluster_id, "quotas", tenant, gpu_type),
        body=as_json(body),
        headers={} if version is None else version_of(version),
    )


def remove_quota(cluster_id: str, tenant: str, gpu_type: str, *, version: int) -> Call[None]:
    return Call(
        "DELETE",
        path_of("clusters", cluster_id, "quotas", tenant, gpu_type),
        headers=version_of(version),
    )


def rounds(
    cluster_id: str,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    after: str | None = None,
    before: str | None = None,
) -> Call[Page[RoundOut]]:
    return Call(
        "GET",
        path_of("clusters", cluster_id, "rounds"),
        given_of(limit=limit, cursor=cursor, after=after, before=before),
    )


def round_(cluster_id: str, number: int | str = "latest") -> Call[RoundDetailOut]:
    return Call("GET", path_of("clusters", cluster_id, "rounds", number))


def slowdowns(cluster_id: str) -> Call[Page[SlowdownOut]]:
    """What jobs on one GPU were measured to cost each other, by their models."""
    return Call("GET", path_of("clusters", cluster_id, "slowdowns"))


def gpu_scores(cluster_id: str) -> Call[Page[GpuScoreOut]]:
    """How slow GPUs are believed to be, by jobs that ran on several, and who reported it."""
    return Call("GET", path_of("clusters", cluster_id, "gpu-scores"))


def reset_gpu_scores(cluster_id: str, *, node_id: str | None = None) -> Call[None]:
    """Forget what jobs said of the GPUs of a cluster, or of one node, by id or name."""
    path = path_of("clusters", cluster_id, "gpu-scores")
    return Call("DELETE", path, given_of(node_id=node_id))


def reset_slowdowns(cluster_id: str) -> Call[None]:
    """Forget what jobs on one GPU were measured to cost each other."""
    return Call("DELETE", path_of("clusters", cluster_id, "slowdowns"))


def model_evidence(cluster_id: str) -> Call[Page[ModelEvidenceOut]]:
    """Of how many jobs of each model of a cluster there are reports."""
    return Call("GET", path_of("clusters", cluster_id, "evidence"))


def reset_model_evidence(
    cluster_id: str, what: str, *, model: str | None = None, tenant: str | None = None
) -> Call[None]:
    """Forget `beliefs`, `gradients` or `history` of all models, of one, or of a tenant's."""
    path = path_of("clusters", cluster_id, "evidence", what)
    return Call("DELETE", path, given_of(model=model, tenant=tenant))


def shared_models() -> Call[Page[SharedModelOut]]:
    """Models of which all tenants' evidence counts together."""
    return Call("GET", path_of("shared-models"))


def share_model(model: str) -> Call[SharedModelOut]:
    """Say that a name means the same model for all tenants."""
    return Call("PUT", path_of("shared-models", model))


def unshare_model(model: str) -> Call[None]:
    """Say that each tenant's model of this name is its own again."""
    return Call("DELETE", path_of("shared-models", model))
