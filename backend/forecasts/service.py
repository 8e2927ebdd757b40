"""Accepts questions what would happen, and finds forecasts. Commits nothing.

The worker answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster, Node
from backend.clusters.repository import get_cluster, nodes_of
from backend.clusters.service import check_size, wanted_parts
from backend.database import after_commit
from backend.forecasts.models import WhatIf
from backend.jobs.service import checked_job, first_cluster, row_of
from backend.moments import moment_of
from backend.operations.models import Operation
from backend.operations.service import begin_operation
from backend.problems import FieldError, Invalid, NotFound
from backend.queue import ANSWER_WHAT_IF, Queue
from backend.tenancy import find_owned
from maat.api.clusters import NodeBody
from maat.api.forecasts import ClusterChangesBody, ForecastBody
from maat.api.jobs import JobBody
from maat.api.simulations import MAX_SIMULATED_GPUS
from maat.models.catalog import shipped_catalog
from maat.scheduling import cluster as engine
from maat.scheduling.errors import ClusterError

KIND = "forecast"
PLAYED = 18
"""Futures that an answer plays at most: nine of the cluster as it is, the same nine as asked."""


_LISTED, _SHAPE = "/changes/add_nodes", "/changes/add_shape"


@dataclass(frozen=True)
class _Added:
    """Nodes to add, and where the request has them and their type."""

    body: NodeBody
    pointer: str
    type_pointer: str


@dataclass(frozen=True)
class PreparedQuestion:
    """A checked question, ready to store.

    `request`: the body, the row of the job as it would be stored, and what it waits for; what the
    job runs is not kept, since it may hold secrets.
    """

    cluster_id: str
    request: dict[str, Any]


def prepare_question(
    session: Session, principal: Principal, body: ForecastBody
) -> PreparedQuestion:
    """Check a question. Raises Invalid naming what cannot be used, and NotFound for a cluster."""
    cluster = _cluster(session, body)
    nodes = nodes_of(session, cluster.id)
    if not nodes:
        raise NotFound("The cluster has no nodes yet: nothing can be foretold of it.")
    request: dict[str, Any] = {"changes": None, "job": None, "row": None}
    if body.changes is not None:
        added = _added_nodes(body.changes)
        _check_changes(cluster, nodes, body.changes, added)
        changes = body.changes.model_dump(mode="json", exclude_unset=True, exclude={"add_shape"})
        if added:
            changes["add_nodes"] = [one.body.model_dump(exclude_unset=True) for one in added]
        request["changes"] = changes
    if body.job is not None:
        request |= _with_job(session, principal, cluster, body.job)
    return PreparedQuestion(cluster.id, request)


def store_question(
    session: Session, principal: Principal, prepared: PreparedQuestion, queue: Queue
) -> WhatIf:
    owner: dict[str, Any] = {"owner_id": principal.user_id, "tenant_id": principal.tenant_id}
    operation = Operation(
        kind=KIND, total=float(PLAYED), unit="futures", message="Waiting for a worker.", **owner
    )
    asked = WhatIf(
        cluster_id=prepared.cluster_id, request=prepared.request, operation_id="", **owner
    )
    begin_operation(session, operation, asked, result_url="/api/v1/forecasts")
    after_commit(session, lambda: queue.send(ANSWER_WHAT_IF, asked.id))
    return asked


def get_question(session: Session, principal: Principal, forecast_id: str) -> WhatIf:
    """Find a question. Raises NotFound for another tenant's too."""
    return find_owned(session, principal, WhatIf, forecast_id, noun="forecast")


def _cluster(session: Session, body: ForecastBody) -> Cluster:
    of_job = None if body.job is None else body.job.cluster_id
    named = body.cluster_id or of_job
    cluster = first_cluster(session) if named is None else get_cluster(session, named)
    if of_job is not None and get_cluster(session, of_job).id != cluster.id:
        message = "The job names another cluster than the question."
        error = FieldError(
            "/job/cluster_id", "other_cluster", message, "Name one of them only.", of_job
        )
        raise Invalid(message, errors=[error])
    return cluster


def _with_job(
    session: Session, principal: Principal, cluster: Cluster, body: JobBody
) -> dict[str, Any]:
    job = body.model_copy(update={"cluster_id": cluster.id, "external_id": None})
    try:
        (candidate,) = checked_job(session, principal, job)
    except Invalid as problem:
        raise Invalid(problem.detail, errors=[_below("/job", e) for e in problem.errors]) from None
    now = cluster_seconds(cluster, moment_of(session))
    row = row_of(job, principal, cluster, submitted_seconds=now)
    return {
        "job": job.model_dump(mode="json", exclude_unset=True, exclude={"run"}),
        "row": row.model_dump(mode="json", exclude={"created_at"}),
        "tenant": principal.tenant_name,
        "work": None if job.run is None else job.run.total_samples,
        "after": [need for need in candidate.needs if isinstance(need, str)],
    }


def _added_nodes(changes: ClusterChangesBody) -> list[_Added]:
    """Return the nodes to add: those that are listed, then those of the shape. Raises Invalid."""
    listed = [
        _Added(body, _LISTED, f"{_LISTED}/{index}/gpu_type")
        for index, body in enumerate(changes.add_nodes)
    ]
    if changes.add_shape is None:
        return listed
    try:
        shape = engine.Cluster.parse(changes.add_shape, max_gpus=MAX_SIMULATED_GPUS)
    except ClusterError as wrong:
        message = f"“{wrong.value}” {wrong.problem}."
        error = FieldError(_SHAPE, "cluster", message, wrong.remedy, wrong.value)
        raise Invalid(message, errors=[error]) from None
    check_size(len(shape.nodes), shape.gpu_count, _SHAPE)
    sizes = Counter((node.gpu_type, node.gpu_count) for node in shape.nodes)
    return listed + [
        _Added(NodeBody(gpu_type=kind, gpu_count=gpus, count=count), _SHAPE, _SHAPE)
        for (kind, gpus), count in sizes.items()
    ]


def _check_changes(
    cluster: Cluster,
    nodes: Sequence[Node],
    changes: ClusterChangesBody,
    added: Sequence[_Added],
) -> None:
    errors = [
        *_unknown_nodes(nodes, changes),
        *_unknown_types(cluster, nodes, added),
        *_too_many_gpus(nodes, added),
    ]
    if errors:
        raise Invalid(errors[0].message, errors=errors)
    try:
        wanted_parts(cluster, changes.parts)
    except Invalid as problem:
        errors = [_below("/changes", error) for error in problem.errors]
        raise Invalid(problem.detail, errors=errors) from None


def _unknown_nodes(nodes: Sequence[Node], changes: ClusterChangesBody) -> Iterator[FieldError]:
    known = {node.name for node in nodes}
    for index, name in enumerate(changes.drain_nodes):
        if name not in known:
            yield FieldError(
                f"/changes/drain_nodes/{index}",
                "no_such_node",
                "The cluster has no node of this name.",
                f"Use some of: {', '.join(sorted(known)[:20])}.",
                name,
            )


def _unknown_types(
    cluster: Cluster, nodes: Sequence[Node], added: Sequence[_Added]
) -> Iterator[FieldError]:
    """Find added GPU types on which no job could run. A command may run on any."""
    known = {*shipped_catalog().gpu_types, *(node.gpu_type for node in nodes)}
    for one in added:
        if not cluster.runs_commands and one.body.gpu_type not in known:
            yield FieldError(
                one.type_pointer,
                "no_such_gpu_type",
                "No model runs on this GPU type, and the cluster has none of it.",
                f"Use some of: {', '.join(sorted(known))}.",
                one.body.gpu_type,
            )


def _too_many_gpus(nodes: Sequence[Node], added: Sequence[_Added]) -> Iterator[FieldError]:
    there = sum(node.gpu_count for node in nodes)
    more = sum(one.body.gpu_count * one.body.count for one in added)
    if added and there + more > MAX_SIMULATED_GPUS:
        message = "The cluster would have more GPUs than Maat simulates."
        remedy = f"Add at most {max(MAX_SIMULATED_GPUS - there, 0)} GPUs."
        yield FieldError(added[-1].pointer, "too_many_gpus", message, remedy, more)


def _below(pointer: str, error: FieldError) -> FieldError:
    return FieldError(
        f"{pointer}{error.pointer}", error.code, error.message, error.remedy, error.value
    )
