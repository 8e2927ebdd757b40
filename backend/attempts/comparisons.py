"""What reports say of GPUs against each other, and of jobs that share them. Commits nothing.

The ranks of a job do the same work between two synchronisations. So the time that a rank takes for
its own part, over the median rank's, says how slow its GPU is (PAL section III). And what a job
takes for a step beside another, over its time alone, says how much the other slows it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from backend.attempts.models import AttemptRow, GpuHold, GpuScore, SharingSample
from backend.attempts.steps import sample_of
from backend.clusters.repository import nodes_of
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
    ids = {node.name: node.id for node in nodes_of(session, row.cluster_id)}
    gpus = [(ids[n], gpu) for n, held in row.gpus_by_node.items() if n in ids for gpu in held]
    if len(gpus) != len(compute_seconds):
        return
    known = [session.get(GpuScore, (*gpu, application)) for gpu in gpus]
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


def partner_of(session: Session, row: AttemptRow) -> Shared | None:
    """Return the job on the same GPUs, if there is one."""
    mine = select(GpuHold.node_id, GpuHold.gpu_index).where(GpuHold.attempt_id == row.id)
    held = {(node_id, index) for node_id, index in session.exec(mine)}
    if not held:
        return None
    nodes = {node_id for node_id, _ in held}
    others = session.exec(
        select(GpuHold.node_id, GpuHold.gpu_index, Job.model)
        .join(AttemptRow, col(AttemptRow.id) == col(GpuHold.attempt_id))
        .join(Job, col(Job.id) == col(AttemptRow.job_id))
        .where(col(GpuHold.node_id).in_(nodes), GpuHold.attempt_id != row.id)
        .order_by(col(GpuHold.attempt_id))
    )
    partner = next((model for node, index, model in others if (node, index) in held), None)
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
