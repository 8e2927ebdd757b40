"""What reports say of GPUs against each other, and of jobs that share them. Commits nothing.

The ranks of a job do the same work between two synchronisations. So the time that a rank takes for
its own part, over the median rank's, says how slow its GPU is (PAL section III). And what a job
takes for a step beside another, over its time alone, says how much the other slows it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.attempts.models import GpuScore, SharingSample
from backend.attempts.reported import Reported
from backend.attempts.steps import mean_alone
from backend.clusters.models import Node
from maat.api.attempts import PassBody
from maat.scheduling.interference import SharingJob, nearest

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
    middle = statistics.median(compute_seconds)
    relative = [seconds / middle for seconds in compute_seconds]
    scales = [one.ratio / each for one, each in zip(known.values(), relative, strict=True) if one]
    scale = statistics.median(scales or [1.0])
    new, old = list[dict[str, object]](), list[dict[str, object]]()
    # In one order for all attempts, or two that add the same GPUs could wait for each other.
    for (gpu, score), each in sorted(zip(known.items(), relative, strict=True)):
        later = (score or _Score()).with_report(each * scale)
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


def add_sharing(
    session: Session, attempt: Reported, found: PassBody, partner: str, now: float
) -> None:
    """Add steps that were made beside another job, if the time alone is known.

    They say nothing of the job alone, so they are no step samples of it.
    """
    alone = mean_alone(session, attempt, found)
    if alone is None:
        return
    key = (attempt.cluster_id, attempt.model, partner, attempt.gpu_type, attempt.gpu_count)
    one = session.get(SharingSample, key) or SharingSample(
        cluster_id=attempt.cluster_id,
        victim=attempt.model,
        partner=partner,
        gpu_type=attempt.gpu_type,
        gpu_count=attempt.gpu_count,
        count=0,
        ratio=1.0,
        ratio_m2=0.0,
        updated_seconds=now,
    )
    ratio = found.step_seconds.mean / alone
    before = min(one.count, _MOST_REPORTS - 1)
    kept = before / one.count if one.count else 0.0
    one.count = before + 1
    apart = ratio - one.ratio
    one.ratio += apart / one.count
    one.ratio_m2 = one.ratio_m2 * kept + apart * (ratio - one.ratio)
    one.updated_seconds = now
    session.add(one)
    session.flush()


@dataclass(frozen=True)
class MeasuredSlowdowns:
    """(victim's model, partner's model) -> GPU count of the victim -> mean ratio and its count."""

    pairs: Mapping[tuple[str, str], Mapping[int, tuple[float, int]]]

    def of_jobs(self, victim: SharingJob, partner: SharingJob, gpu_count: int) -> float | None:
        """Return the slowdown measured on the next smaller number of GPUs, else the smallest."""
        by_count = self.pairs.get((victim.model, partner.model))
        if not by_count:
            return None
        ratio, _ = by_count[nearest(gpu_count, list(by_count))]
        return max(ratio, 1.0)


def measured_slowdowns(session: Session, cluster_id: str) -> MeasuredSlowdowns:
    """Return what sharing was measured to cost on a cluster, over all GPU types."""
    found: dict[tuple[str, str], dict[int, tuple[float, int]]] = {}
    for one in session.exec(select(SharingSample).where(SharingSample.cluster_id == cluster_id)):
        by_count = found.setdefault((one.victim, one.partner), {})
        mean, count = by_count.get(one.gpu_count, (0.0, 0))
        total = mean * count + one.ratio * one.count
        by_count[one.gpu_count] = (total / (count + one.count), count + one.count)
    return MeasuredSlowdowns(found)
