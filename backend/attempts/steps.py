"""Merges reported step times with those before, and settles what models are fitted to.

A measured mean moves with every report, and a model is fitted to what is believed of it. What is
believed follows only once the mean has moved by two per cent since it did so last: a mean that
trembles about any value lets it stand. Commits nothing.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Protocol

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.attempts.models import StepSample
from backend.attempts.reported import Reported
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


class Measured(Protocol):
    """Step times of one configuration, as StepSample has them."""

    count: int
    step_mean: float
    step_m2: float
    sync_mean: float
    believed_step: float
    believed_sync: float
    believed_weight: float


@dataclass
class _Steps:
    """What is known of a configuration, None for `id` if that is nothing yet."""

    id: int | None = None
    count: int = 0
    step_mean: float = 0.0
    step_m2: float = 0.0
    sync_mean: float = 0.0
    believed_step: float = 0.0
    believed_sync: float = 0.0
    believed_weight: float = 0.0


# Made once: making them for every report takes longer than the answer.
_KNOWN = sa.select(
    col(StepSample.id),
    col(StepSample.count),
    col(StepSample.step_mean),
    col(StepSample.step_m2),
    col(StepSample.sync_mean),
    col(StepSample.believed_step),
    col(StepSample.believed_sync),
    col(StepSample.believed_weight),
).where(*(getattr(StepSample, name) == sa.bindparam(name) for name in _CONFIGURATION))
_ADD = sa.insert(StepSample)
_CHANGE = sa.update(StepSample).where(col(StepSample.id) == sa.bindparam("known"))


def add_steps(session: Session, attempt: Reported, found: PassBody, now: float) -> None:
    """Merge count, mean and squares of these steps with those before (Chan et al.)."""
    configuration = _configuration(attempt, found)
    known = _stored_or_new(session, configuration)
    _merge(known, found)
    settle(known)
    values = asdict(known)
    del values["id"]
    values["last_seconds"] = now
    connection = session.connection()
    if known.id is None:
        connection.execute(_ADD, {**configuration, **values, "first_seconds": now})
    else:
        connection.execute(_CHANGE, {"known": known.id, **values})


def mean_alone(session: Session, attempt: Reported, found: PassBody) -> float | None:
    """Return the mean time of these steps as it is known, s."""
    known = _stored_or_new(session, _configuration(attempt, found))
    return None if known.id is None else known.step_mean


def deviation_of(row: Measured) -> float:
    """Return the standard deviation of one step, s."""
    return math.sqrt(row.step_m2 / (row.count - 1)) if row.count > 1 else 0.0


def settle(known: Measured) -> None:
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


def _configuration(attempt: Reported, found: PassBody) -> dict[str, str | int]:
    return {
        "job_id": attempt.job_id,
        "gpu_type": attempt.gpu_type,
        "node_count": found.node_count,
        "replica_count": found.replica_count,
        "per_gpu_batch_size": found.per_gpu_batch_size,
        "accumulation_steps": found.accumulation_steps,
    }


def _stored_or_new(session: Session, configuration: dict[str, str | int]) -> _Steps:
    row = session.connection().execute(_KNOWN, configuration).first()
    return _Steps() if row is None else _Steps(*row)


def _merge(known: _Steps, found: PassBody) -> None:
    before = min(known.count, MOST_STEPS)
    kept = before / known.count if known.count else 0.0
    count, mean = before + found.steps, found.step_seconds.mean
    share, apart = found.steps / count, mean - known.step_mean
    known.step_m2 = known.step_m2 * kept + found.step_seconds.m2 + apart**2 * before * share
    known.step_mean += apart * share
    known.sync_mean += (found.sync_seconds - known.sync_mean) * share
    known.count = count
