"""How a job that is a command stands, by its attempts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from backend.models import AttemptRow, GradientSample
from maat.scheduling.efficiency import noise_scale
from maat.scheduling.job import UNKNOWN_WORK, JobId
from maat.vocabulary import AttemptKind, AttemptState, JobState, StopReason
from worker.executors.protocol import JobStatus
from worker.training.attempt_writes import plan_from_json
from worker.training.places import Places
from worker.training.tables import did_all_work, live_attempt, trained

_TAKEN_AWAY = frozenset(
    {StopReason.PREEMPTED.value, StopReason.PAUSED.value, StopReason.CANCELLED.value}
)

_MOVES = frozenset({StopReason.MOVED.value, StopReason.PREEMPTED.value})


def keeps_gpus(live: AttemptRow | None) -> bool:
    """Return whether the rounds still mean this attempt to have its GPUs."""
    return live is not None and live.stop_reason not in _TAKEN_AWAY


def moved_at(attempts: Sequence[AttemptRow], *, since: float) -> tuple[float, ...]:
    """Return when rounds took or changed the GPUs of a job, from `since` on; oldest first."""
    return tuple(
        one.stop_seconds
        for one in trained(attempts)
        if one.stop_seconds is not None and one.stop_seconds >= since and one.stop_reason in _MOVES
    )


def status_of(
    job_id: JobId,
    attempts: Sequence[AttemptRow],
    *,
    ended: JobState | None,
    total: float | None,
    place: Places,
    waits_for_profile: bool,
    gradient: GradientSample | None = None,
    now: float,
) -> JobStatus:
    """Return how a job stands.

    `attempts`: of the job, oldest first. `total`: its work, effective samples; None if unknown.
    `gradient`: as last reported.
    """
    live = live_attempt(attempts)
    reported = [attempt.progress for attempt in attempts if attempt.progress is not None]
    done = reported[-1] if reported else 0.0
    trains = trained(attempts) or [one for one in attempts if did_all_work(one)]
    began = [a.queued_seconds for a in trains if a.queued_seconds is not None]
    holds = live is not None and live.state != AttemptState.ORDERED
    shown = live if holds and keeps_gpus(live) else None
    finished = ended is JobState.SUCCEEDED
    return JobStatus(
        job_id,
        progress=1.0 if finished else min(done / total, 1.0) if total else 0.0,
        remaining_work=0.0 if finished else max((total or UNKNOWN_WORK) - done, 0.0),
        gpu_seconds=sum(attempt.gpu_seconds(now) for attempt in attempts),
        restarts=max(len(began) - 1, 0),
        started_at=min(began, default=None),
        allocation=None if shown is None else place.allocation(shown),
        goodput=None if shown is None else shown.goodput,
        plan=None if shown is None else plan_from_json(shown.running_plan),
        ended=ended,
        starting=keeps_gpus(live) and not holds,
        ending=live is not None and live.stop_reason == StopReason.CANCELLED,
        profiling=waits_for_profile or (live is not None and live.kind == AttemptKind.PROFILE),
        processed_samples=sum(each.processed_samples or 0.0 for each in attempts),
        gained_samples=sum(each.gained_samples or 0.0 for each in attempts),
        lost_gpu_seconds=sum(each.lost_gpu_seconds for each in attempts),
        noise_scale=None if gradient is None else _noise_scale(gradient),
    )


def _noise_scale(gradient: GradientSample) -> float:
    return float(noise_scale(gradient.square, gradient.variance, float(gradient.batch_size)))
