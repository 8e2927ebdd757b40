"""Attempts, samples and gradients as the API shows them."""

from __future__ import annotations

from backend.answers import answer_of
from backend.attempts.models import AttemptRow, GradientSample, StepSample
from backend.attempts.steps import deviation_of
from backend.clocktime import shown_at
from backend.clusters.models import Cluster
from maat.api.attempts import AttemptOut, GradientSampleOut, StepSampleOut
from maat.api.fields import rfc3339
from maat.scheduling.efficiency import noise_scale


def show_attempt(row: AttemptRow, cluster: Cluster) -> AttemptOut:
    def at(seconds: float | None) -> str | None:
        return None if seconds is None else shown_at(cluster, seconds)

    return answer_of(
        AttemptOut,
        row,
        ordered_at=shown_at(cluster, row.ordered_seconds),
        queued_at=at(row.queued_seconds),
        alive_at=at(row.alive_seconds),
        running_at=at(row.running_seconds),
        stop_asked_at=at(row.stop_seconds),
        ended_at=at(row.ended_seconds),
        exit_codes=row.exits,
        last_report_at=None if row.reported_at is None else rfc3339(row.reported_at),
    )


def show_sample(row: StepSample, cluster: Cluster) -> StepSampleOut:
    return answer_of(
        StepSampleOut,
        row,
        step_seconds=row.step_mean,
        step_deviation=deviation_of(row),
        sync_seconds=row.sync_mean,
        last_at=shown_at(cluster, row.last_seconds),
    )


def show_gradient(row: GradientSample, cluster: Cluster) -> GradientSampleOut:
    phi = noise_scale(row.square, row.variance, float(row.batch_size))
    return answer_of(
        GradientSampleOut, row, at=shown_at(cluster, row.at_seconds), noise_scale=float(phi)
    )
