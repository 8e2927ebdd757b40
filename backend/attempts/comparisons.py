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


@dataclass(frozen=True)
class Shared:
    """The job that an attempt shares its GPUs with."""

    victim: str
    partner: str


def add_scores(
    session: Session, row: AttemptRow, compute_seconds: Sequence[float], now: float
) -> None:
    """Add a report of each rank's own part of a step, in the order of ranks.

    The median of these GPUs may itself be slower than others: what is known of some of them scales
    the ratios of all, so that GPUs are compared through those that jobs have in common.
    """
    application = session.get_one(Job, row.job_id).model
    gpus = _gpus_of(session, row)
    if len(gpus) != len(compute_seconds):
        return
    known = _scores_of(session, gpus, application)
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
    session.flush()


def _gpus_of(session: Session, row: AttemptRow) -> list[tuple[str, int]]:
    """Return the GPUs of an attempt by the node's id, in the order of ranks.

    Those of nodes that were removed are missing.
    """
    here = (Node.cluster_id == row.cluster_id, col(Node.name).in_(row.gpus_by_node))
    ids = dict(session.exec(select(Node.name, Node.id).where(*here)).all())
    return [(ids[n], gpu) for n, held in row.gpus_by_node.items() if n in ids for gpu in held]


def _scores_of(
    session: Session, gpus: Sequence[tuple[str, int]], application: str
) -> list[GpuScore | None]:
    """Return what is known of each of these GPUs."""
    of_these = sa.tuple_(col(GpuScore.node_id), col(GpuScore.gpu_index)).in_(gpus)
    found = session.exec(select(GpuScore).where(of_these, GpuScore.application == application))
    scores = {(one.node_id, one.gpu_index): one for one in found}
    return [scores.get(gpu) for gpu in gpus]


def partner_of(session: Session, row: AttemptRow) -> Shared | None:
    """Return the job on the same GPUs, if there is one."""
    mine, theirs = aliased(GpuHold), aliased(GpuHold)
    same_gpu = sa.and_(
        col(theirs.node_id) == col(mine.node_id),
        col(theirs.gpu_index) == col(mine.gpu_index),
        col(theirs.attempt_id) != col(mine.attempt_id),
    )
    partner = session.exec(
        select(Job.model)
        .join(AttemptRow, col(AttemptRow.job_id) == col(Job.id))
        .join(theirs, col(theirs.attempt_id) == col(AttemptRow.id))
        .join(mine, same_gpu)
        .where(col(mine.attempt_id) == row.id)
        .order_by(col(theirs.attempt_id))
        .limit(1)
    ).first()
    if partner is None:
        return None
    return Shared(session.get_one(Job, row.job_id).model, partner)


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
