"""What reports say of GPUs against each other. Commits nothing.

The ranks of a job do the same work between two synchronisations. So the time that a rank takes for
its own part, over the median rank's, says how slow its GPU is (PAL section III). A row has what one
attempt said of one of its GPUs: what is believed of a GPU is made of the rows of several tenants
(maat.scheduling.evidence), and only then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.attempts.models import GpuScore
from backend.attempts.reported import Reported
from backend.attempts.shared_models import shared_models
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster, Node
from backend.moments import moment_of
from maat.scheduling.evidence import (
    FORGOTTEN_SECONDS,
    Comparison,
    ModelKey,
    relative_times,
    weight_of,
)

MOST_ATTEMPTS = 5
"""The latest of a tenant and a model whose comparisons of a GPU are kept."""
_MOST_REPORTS = 100  # that a ratio remembers: older ones count less and less

# Made once: making a statement takes longer than the database needs for its answer.
_KNOWN = (
    sa.select(col(Node.name), col(Node.id), col(GpuScore.gpu_index), col(GpuScore.count))
    .outerjoin(
        GpuScore,
        sa.and_(
            col(GpuScore.node_id) == col(Node.id),
            col(GpuScore.attempt_id) == sa.bindparam("attempt"),
        ),
    )
    .where(
        col(Node.cluster_id) == sa.bindparam("cluster"),
        col(Node.name).in_(sa.bindparam("names", expanding=True)),
    )
)
_OF_GPU = (
    col(GpuScore.node_id) == sa.bindparam("its_node"),
    col(GpuScore.gpu_index) == sa.bindparam("its_index"),
)
_ADD = sa.insert(GpuScore)
_CHANGE = (
    sa.update(GpuScore)
    .where(*_OF_GPU, col(GpuScore.attempt_id) == sa.bindparam("its_attempt"))
    .values(
        count=sa.bindparam("new_count"),
        ratio=col(GpuScore.ratio)
        + (sa.bindparam("new_ratio", type_=sa.Float) - col(GpuScore.ratio))
        / sa.bindparam("new_count", type_=sa.Float),
        updated_seconds=sa.bindparam("at_seconds"),
    )
)


def _of_model() -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions for a tenant's rows of a model and GPU."""
    return (
        *_OF_GPU,
        col(GpuScore.tenant_id) == sa.bindparam("its_tenant"),
        col(GpuScore.application) == sa.bindparam("its_application"),
    )


_FORGET = sa.delete(GpuScore).where(
    *_OF_GPU,
    sa.or_(
        col(GpuScore.updated_seconds) < sa.bindparam("forgotten"),
        sa.and_(
            *_of_model()[len(_OF_GPU) :],
            col(GpuScore.attempt_id).not_in(
                sa.select(col(GpuScore.attempt_id))
                .where(*_of_model())
                .order_by(col(GpuScore.updated_seconds).desc(), col(GpuScore.attempt_id).desc())
                .limit(MOST_ATTEMPTS)
            ),
        ),
    ),
)

Gpu = tuple[str, int]
"""A node's id, and an index on it."""


@dataclass(frozen=True, slots=True)
class MeasuredScore:
    """How slow a GPU was by one attempt (`GpuScore`), by its node's name and its index.

    `model`: the key of the job's model (`SharedModels`). `weight`: how much it counts now, 0-1.
    """

    node: str
    index: int
    attempt: str
    tenant: str
    model: ModelKey
    ratio: float
    weight: float
    updated_seconds: float


def add_scores(
    session: Session, attempt: Reported, compute_seconds: Sequence[float], now: float
) -> None:
    """Add a report of each rank's own part of a step, in the order of ranks."""
    known = _known_counts(session, attempt)
    if len(known) != len(compute_seconds):
        return
    new, old = list[dict[str, Any]](), list[dict[str, Any]]()
    # In one order for all attempts, or two that add the same GPUs could wait for each other.
    for (gpu, count), ratio in sorted(
        zip(known.items(), relative_times(compute_seconds), strict=True)
    ):
        if count:
            old.append(_changed(attempt, gpu, min(count, _MOST_REPORTS - 1) + 1, ratio, now))
        else:
            new.append(_added(attempt, gpu, ratio, now))
    connection = session.connection()
    if old:
        connection.execute(_CHANGE, old)
    if new:
        connection.execute(_ADD, new)
        connection.execute(_FORGET, [_its(attempt, row, now) for row in new])


def _known_counts(session: Session, attempt: Reported) -> Mapping[Gpu, int]:
    """Return how many reports of the attempt are known of each of its GPUs, in order of ranks.

    Those of nodes that were removed are missing.
    """
    asked = {
        "cluster": attempt.cluster_id,
        "names": list(attempt.gpus_by_node),
        "attempt": attempt.id,
    }
    ids, counts = dict[str, str](), dict[Gpu, int]()
    for name, node_id, gpu_index, count in session.connection().execute(_KNOWN, asked):
        ids[name] = node_id
        if gpu_index is not None:
            counts[node_id, gpu_index] = count
    held = attempt.gpus_by_node.items()
    gpus = [(ids[name], gpu) for name, indices in held if name in ids for gpu in indices]
    return {gpu: counts.get(gpu, 0) for gpu in gpus}


def _added(attempt: Reported, gpu: Gpu, ratio: float, now: float) -> dict[str, Any]:
    return {
        "node_id": gpu[0],
        "gpu_index": gpu[1],
        "attempt_id": attempt.id,
        "tenant_id": attempt.tenant_id,
        "application": attempt.model,
        "count": 1,
        "ratio": ratio,
        "updated_seconds": now,
    }


def _changed(attempt: Reported, gpu: Gpu, count: int, ratio: float, now: float) -> dict[str, Any]:
    return {
        "its_node": gpu[0],
        "its_index": gpu[1],
        "its_attempt": attempt.id,
        "new_count": count,
        "new_ratio": ratio,
        "at_seconds": now,
    }


def _its(attempt: Reported, row: Mapping[str, Any], now: float) -> dict[str, Any]:
    return {
        "its_node": row["node_id"],
        "its_index": row["gpu_index"],
        "its_tenant": attempt.tenant_id,
        "its_application": attempt.model,
        "forgotten": now - FORGOTTEN_SECONDS,
    }


def measured_scores(session: Session, cluster: Cluster) -> list[MeasuredScore]:
    """Return what attempts said of GPUs, the oldest attempts first, and is not forgotten."""
    now = cluster_seconds(cluster, moment_of(session))
    shared = shared_models(session, cluster)
    found = session.exec(
        select(Node.name, GpuScore)
        .join(Node, col(Node.id) == col(GpuScore.node_id))
        .where(
            Node.cluster_id == cluster.id,
            GpuScore.updated_seconds >= now - FORGOTTEN_SECONDS,
        )
        .order_by(col(GpuScore.attempt_id), col(Node.position), col(GpuScore.gpu_index))
    )
    return [
        MeasuredScore(
            name,
            row.gpu_index,
            row.attempt_id,
            row.tenant_id,
            shared.key(row.tenant_id, row.application),
            row.ratio,
            weight_of(row.count, now - row.updated_seconds),
            row.updated_seconds,
        )
        for name, row in found
    ]


def by_attempt(measured: Iterable[MeasuredScore], first: Mapping[str, int]) -> Sequence[Comparison]:
    """Return the comparison of each attempt, in their order; `first`: a node's first GPU."""
    return [
        Comparison(
            of_attempt[0].tenant,
            {first[one.node] + one.index: (one.ratio, one.weight) for one in of_attempt},
        )
        for _, rows in groupby(measured, lambda one: one.attempt)
        if (of_attempt := list(rows))
    ]
