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
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from backend.attempts.models import AttemptRow, GpuHold, GpuScore, SharingSample
from backend.attempts.steps import sample_of
from backend.clusters.models import Node
from backend.jobs.models import Job
from maat.api.attempts import PassBody

_MOST_REPORTS = 100  # that a ratio remembers: older ones count less and less

# Every report asks these: making a statement takes longer than the database needs for its answer.
_MINE, _THEIRS = aliased(GpuHold), aliased(GpuHold)
_PARTNER = (
    select(Job.model)
    .join(AttemptRow, col(AttemptRow.job_id) == col(Job.id))
    .join(_THEIRS, col(_THEIRS.attempt_id) == col(AttemptRow.id))
    .join(
        _MINE,
        sa.and_(
            col(_THEIRS.node_id) == col(_MINE.node_id),
            col(_THEIRS.gpu_index) == col(_MINE.gpu_index),
            col(_THEIRS.attempt_id) != col(_MINE.attempt_id),
        ),
    )
    .where(col(_MINE.attempt_id) == sa.bindparam("attempt"))
    .order_by(col(_THEIRS.attempt_id))
    .limit(1)
)
_SCORES = (
    sa.select(col(Node.name), col(Node.id), GpuScore)
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


@dataclass(frozen=True)
class Shared:
    """The job that an attempt shares its GPUs with."""

    victim: str
    partner: str


def add_scores(
    session: Session,
    row: AttemptRow,
    application: str,
    compute_seconds: Sequence[float],
    now: float,
) -> None:
    """Add a report of each rank's own part of a step, in the order of ranks.

    The median of these GPUs may itself be slower than others: what is known of some of them scales
    the ratios of all, so that GPUs are compared through those that jobs have in common.
    """
    found = _scores_of(session, row, application)
    gpus = list(found)
    if len(gpus) != len(compute_seconds):
        return
    known = list(found.values())
    middle = statistics.median(compute_seconds)
    relative = [seconds / middle for seconds in compute_seconds]
    scales = [one.ratio / each for one, each in zip(known, relative, strict=True) if one]
    scale = statistics.median(scales or [1.0])
    for (node_id, index), score, each in zip(gpus, known, relative, strict=True):
        one = score or GpuScore(
            node_id=node_id,
            gpu_index=index,
            application=application,
            count=0,
            ratio=1.0,
            updated_seconds=now,
        )
        one.count = min(one.count, _MOST_REPORTS - 1) + 1
        one.ratio += (each * scale - one.ratio) / one.count
        one.updated_seconds = now
        session.add(one)


def _scores_of(
    session: Session, row: AttemptRow, application: str
) -> Mapping[tuple[str, int], GpuScore | None]:
    """Return what is known of the GPUs of an attempt, by the node's id, in the order of ranks.

    Those of nodes that were removed are missing.
    """
    asked = {
        "cluster": row.cluster_id,
        "names": list(row.gpus_by_node),
        "application": application,
    }
    ids, scores = dict[str, str](), dict[tuple[str, int], GpuScore]()
    for name, node_id, score in session.execute(_SCORES, asked):
        ids[name] = node_id
        if score is not None:
            scores[node_id, score.gpu_index] = score
    held = row.gpus_by_node.items()
    gpus = [(ids[name], gpu) for name, indices in held if name in ids for gpu in indices]
    return {gpu: scores.get(gpu) for gpu in gpus}


def partner_of(session: Session, row: AttemptRow, model: str) -> Shared | None:
    """Return the job on the same GPUs as this attempt of a model, if there is one."""
    partner = session.exec(_PARTNER, params={"attempt": row.id}).first()
    return None if partner is None else Shared(model, partner)


def add_sharing(
    session: Session, row: AttemptRow, found: PassBody, shared: Shared, now: float
) -> None:
    """Add steps that were made beside another job, if the time alone is known.

    They say nothing of the job alone, so they are no step samples of it.
    """
    alone = sample_of(session, row, found)
    if alone is None:
        return
    key = (row.cluster_id, shared.victim, shared.partner, row.gpu_type, row.gpu_count)
    one = session.get(SharingSample, key) or SharingSample(
        cluster_id=row.cluster_id,
        victim=shared.victim,
        partner=shared.partner,
        gpu_type=row.gpu_type,
        gpu_count=row.gpu_count,
        count=0,
        ratio=1.0,
        ratio_m2=0.0,
        updated_seconds=now,
    )
    ratio = found.step_seconds.mean / alone.step_mean
    before = min(one.count, _MOST_REPORTS - 1)
    kept = before / one.count if one.count else 0.0
    one.count = before + 1
    apart = ratio - one.ratio
    one.ratio += apart / one.count
    one.ratio_m2 = one.ratio_m2 * kept + apart * (ratio - one.ratio)
    one.updated_seconds = now
    session.add(one)
    session.flush()


def measured_interference(
    session: Session, cluster_id: str
) -> Mapping[tuple[str, str, int], float]:
    """Return what sharing was measured to cost, as `RoundInput.interference` has it.

    (victim, partner, GPU count of the victim) -> slowdown of at least 1, over all GPU types.
    """
    found: dict[tuple[str, str, int], tuple[float, int]] = {}
    for one in session.exec(select(SharingSample).where(SharingSample.cluster_id == cluster_id)):
        key = (one.victim, one.partner, one.gpu_count)
        total, count = found.get(key, (0.0, 0))
        found[key] = (total + one.ratio * one.count, count + one.count)
    return {key: max(total / count, 1.0) for key, (total, count) in found.items()}
