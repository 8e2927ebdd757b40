"""Merges reported step times with those before, and settles what models are fitted to.

A measured mean moves with every report, and a model is fitted to what is believed of it. What is
believed follows only once the mean has moved by two per cent since it did so last: a mean that
trembles about any value lets it stand. Commits nothing.
"""

from __future__ import annotations

import math

import sqlalchemy as sa
from sqlmodel import Session, select

from backend.attempts.models import AttemptRow, StepSample
from maat.api.attempts import PassBody
from maat.scheduling.fitting import weight_of_mean

MOST_STEPS = 10_000
"""Steps of one configuration that are remembered: older ones count less and less."""
_MOVED = 0.02  # of a step's time
_WEIGHT_MOVED = 0.1
_CONFIGURATION = (
    "job_id",
    "gpu_type",
    "node_count",
    "replica_count",
    "per_gpu_batch_size",
    "accumulation_steps",
)
# Made once: making it for every report takes longer than the answer.
_SAMPLE = select(StepSample).where(
    *(getattr(StepSample, name) == sa.bindparam(name) for name in _CONFIGURATION)
)


def add_steps(session: Session, row: AttemptRow, found: PassBody, now: float) -> None:
    """Merge count, mean and squares of these steps with those before (Chan et al.)."""
    known = sample_of(session, row, found)
    is_new = known is None
    if known is None:
        known = _unmeasured(row, found, now)
    before = min(known.count, MOST_STEPS)
    kept = before / known.count if known.count else 0.0
    count, mean = before + found.steps, found.step_seconds.mean
    share, apart = found.steps / count, mean - known.step_mean
    known.step_m2 = known.step_m2 * kept + found.step_seconds.m2 + apart**2 * before * share
    known.step_mean += apart * share
    known.sync_mean += (found.sync_seconds - known.sync_mean) * share
    known.count, known.last_seconds = count, now
    settle(known)
    session.add(known)
    if is_new:  # more steps of a report may be of the same configuration
        session.flush()


def sample_of(session: Session, row: AttemptRow, found: PassBody) -> StepSample | None:
    """Return what is known of the configuration of these steps."""
    asked = {
        "job_id": row.job_id,
        "gpu_type": row.gpu_type,
        "node_count": found.node_count,
        "replica_count": found.replica_count,
        "per_gpu_batch_size": found.per_gpu_batch_size,
        "accumulation_steps": found.accumulation_steps,
    }
    return session.exec(_SAMPLE, params=asked).first()


def deviation_of(row: StepSample) -> float:
    """Return the standard deviation of one step, s."""
    return math.sqrt(row.step_m2 / (row.count - 1)) if row.count > 1 else 0.0


def settle(known: StepSample) -> None:
    """Let what is believed follow what was measured, if that has moved."""
    weight = weight_of_mean(known.count, known.step_mean, deviation_of(known))
    least = _MOVED * known.believed_step
    if (
        abs(known.step_mean - known.believed_step) > least
        or abs(known.sync_mean - known.believed_sync) > least
        or abs(weight - known.believed_weight) > _WEIGHT_MOVED
    ):
        known.believed_step, known.believed_sync = known.step_mean, known.sync_mean
        known.believed_weight = weight


def _unmeasured(row: AttemptRow, found: PassBody, now: float) -> StepSample:
    return StepSample(
        job_id=row.job_id,
        gpu_type=row.gpu_type,
        node_count=found.node_count,
        replica_count=found.replica_count,
        per_gpu_batch_size=found.per_gpu_batch_size,
        accumulation_steps=found.accumulation_steps,
        count=0,
        step_mean=0.0,
        step_m2=0.0,
        sync_mean=0.0,
        believed_step=0.0,
        believed_sync=0.0,
        believed_weight=0.0,
        first_seconds=now,
        last_seconds=now,
    )
