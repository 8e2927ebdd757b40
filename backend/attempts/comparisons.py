"""What reports say of GPUs against each other. Commits nothing.

The ranks of a job do the same work between two synchronisations. So the time that a rank takes for
its own part, over the median rank's, says how slow its GPU is (PAL section III).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.attempts.models import GpuScore
from backend.attempts.reported import Reported
from backend.clusters.models import Node
from maat.scheduling.evidence import bounded_ratio, relative_times

_MOST_REPORTS = 100  # that a ratio remembers: older ones count less and less

# Made once: making a statement takes longer than the database needs for its answer.
_SCORES = (
    sa.select(
        col(Node.name),
        col(Node.id),
        col(GpuScore.gpu_index),
        col(GpuScore.count),
        col(GpuScore.ratio),
    )
    .outerjoin(
        GpuScore,
        sa.and_(
            col(GpuScore.node_id) == col(Node.id),
            col(GpuScore.application) == sa.bindparam("application"),
        ),
    )
    .where(
        col(Node.cluster_id) == sa.bindparam("cluster"),
        col(Node.name).in_(sa.bindparam("names", expanding=True)),
    )
)
_ADD_SCORE = sa.insert(GpuScore)
_CHANGE_SCORE = sa.update(GpuScore).where(
    col(GpuScore.node_id) == sa.bindparam("its_node"),
    col(GpuScore.gpu_index) == sa.bindparam("its_index"),
    col(GpuScore.application) == sa.bindparam("its_application"),
)

Gpu = tuple[str, int]
"""A node's id, and an index on it."""


@dataclass(frozen=True)
class _Score:
    count: int = 0
    ratio: float = 1.0

    def with_report(self, ratio: float) -> _Score:
        count = min(self.count, _MOST_REPORTS - 1) + 1
        return _Score(count, self.ratio + (ratio - self.ratio) / count)


def add_scores(
    session: Session, attempt: Reported, compute_seconds: Sequence[float], now: float
) -> None:
    """Add a report of each rank's own part of a step, in the order of ranks.

    The median of these GPUs may itself be slower than others: what is known of some of them scales
    the ratios of all, so that GPUs are compared through those that jobs have in common.
    """
    known = _scores_of(session, attempt)
    if len(known) != len(compute_seconds):
        return
    relative = relative_times(compute_seconds)
    scales = [one.ratio / each for one, each in zip(known.values(), relative, strict=True) if one]
    scale = statistics.median(scales or [1.0])
    new, old = list[dict[str, object]](), list[dict[str, object]]()
    # In one order for all attempts, or two that add the same GPUs could wait for each other.
    for (gpu, score), each in sorted(zip(known.items(), relative, strict=True)):
        later = (score or _Score()).with_report(bounded_ratio(each * scale))
        values = {"count": later.count, "ratio": later.ratio, "updated_seconds": now}
        key = {"node_id": gpu[0], "gpu_index": gpu[1], "application": attempt.model}
        its = {"its_node": gpu[0], "its_index": gpu[1], "its_application": attempt.model}
        (new if score is None else old).append((key if score is None else its) | values)
    connection = session.connection()
    for statement, rows in ((_ADD_SCORE, new), (_CHANGE_SCORE, old)):
        if rows:
            connection.execute(statement, rows)


def _scores_of(session: Session, attempt: Reported) -> Mapping[Gpu, _Score | None]:
    """Return what is known of the GPUs of an attempt, in the order of ranks.

    Those of nodes that were removed are missing.
    """
    asked = {
        "cluster": attempt.cluster_id,
        "names": list(attempt.gpus_by_node),
        "application": attempt.model,
    }
    ids, scores = dict[str, str](), dict[Gpu, _Score]()
    for name, node_id, gpu_index, count, ratio in session.connection().execute(_SCORES, asked):
        ids[name] = node_id
        if gpu_index is not None:
            scores[node_id, gpu_index] = _Score(count, ratio)
    held = attempt.gpus_by_node.items()
    gpus = [(ids[name], gpu) for name, indices in held if name in ids for gpu in indices]
    return {gpu: scores.get(gpu) for gpu in gpus}
