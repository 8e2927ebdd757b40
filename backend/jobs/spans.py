"""The timeline of a job as the API shows it: its spans, and what the moves between were worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlmodel import Session, col, select

from backend.answers import answer_of
from backend.clocktime import shown_at
from backend.clusters.models import Cluster
from backend.jobs.models import BatchChange, Job, JobAllocation
from backend.jobs.remaining import remaining_seconds
from backend.rounds.models import Round
from maat.api.job_answers import AllocationSpanOut, MoveWorthOut
from maat.scheduling.choice import Measured, Place
from maat.scheduling.move_worth import BatchPace, MoveWorth, move_worth
from maat.vocabulary import ExecutorKind

MOST_COMPARED = 200  # newest spans of a job that say what was measured where


@dataclass(frozen=True)
class JobTimeline:
    """What the spans of a job are read with: how it stands, and the batch sizes that ended.

    `counted_at`: until when its counters count, in cluster seconds: its last round.
    """

    job: Job
    cluster: Cluster
    counted_at: float
    changes: Sequence[BatchChange]

    def show(
        self, spans: Sequence[JobAllocation], *, before: JobAllocation | None
    ) -> list[AllocationSpanOut]:
        """Show spans in order. `before`: the one before the first of them, unless it was the first.

        What a profile measured is no training: a move is compared with what was trained on last.
        """
        shown, last = [], before
        for span in spans:
            move = None if span.for_profile or last is None else self._move(last, span)
            shown.append(self._shown(span, move))
            last = last if span.for_profile else span
        return shown

    def measured(self, spans: Iterable[JobAllocation]) -> Mapping[Place, list[BatchPace]]:
        """Return what was counted on each GPU type and count."""
        found: dict[Place, list[BatchPace]] = {}
        for span in spans:
            if not span.for_profile:
                found.setdefault((span.gpu_type, span.gpu_count), []).extend(self.paces(span))
        return found

    def paces(self, span: JobAllocation) -> list[BatchPace]:
        """Return what was counted on a span at each of its batch sizes, in order."""
        if span.running_seconds is None or span.processed_before is None:
            return []
        until = self.counted_at if span.to_seconds is None else span.to_seconds
        lasts = span.to_seconds is None
        processed = self.job.processed_samples if lasts else span.processed_after
        if processed is None:
            return []
        ended = [
            (one.at_seconds, one.processed_samples, one.total_batch_size)
            for one in self.changes
            if span.running_seconds <= one.at_seconds <= until
        ]
        readings = [
            (span.running_seconds, span.processed_before, None),
            *ended,
            (until, processed, span.total_batch_size),
        ]
        is_exact = self.cluster.executor == ExecutorKind.SIMULATED
        return [
            BatchPace(size, max(counted - first, 0.0), max(at - began, 0.0), is_exact)
            for (began, first, _), (at, counted, size) in pairwise(readings)
        ]

    def _move(self, before: JobAllocation, span: JobAllocation) -> MoveWorth | None:
        """Return what the restart that began a span was worth; None if none did."""
        began, ran_from = span.from_seconds, span.running_seconds
        if ran_from is not None and ran_from <= began:
            return None  # another batch size needs no restart
        end = self.counted_at if span.to_seconds is None else span.to_seconds
        stood_until = end if ran_from is None else min(ran_from, end)
        held_until_then = before.to_seconds is not None and math.isclose(
            before.to_seconds, began, abs_tol=1e-6
        )
        return move_worth(
            self.paces(before) if held_until_then else None,
            self.paces(span),
            noise_scale=span.noise_scale,
            stood_seconds=max(stood_until - began, 0.0),
            ran_seconds=max(end - stood_until, 0.0),
            lasts=span.to_seconds is None,
        )

    def _shown(self, span: JobAllocation, move: MoveWorth | None) -> AllocationSpanOut:
        def at(seconds: float | None) -> str | None:
            return None if seconds is None else shown_at(self.cluster, seconds)

        job, lasts = self.job, span.to_seconds is None
        return answer_of(
            AllocationSpanOut,
            span,
            from_at=shown_at(self.cluster, span.from_seconds),
            to_at=at(span.to_seconds),
            running_at=at(span.running_seconds),
            processed_samples=_within(
                span.processed_before, job.processed_samples if lasts else span.processed_after
            ),
            effective_samples=_within(
                span.gained_before, job.gained_samples if lasts else span.gained_after
            ),
            lost_gpu_seconds=_within(
                span.lost_before, job.lost_gpu_seconds if lasts else span.lost_after
            ),
            move=None if move is None else _move_out(move),
        )


def timeline_of(session: Session, job: Job) -> JobTimeline:
    """Read what the spans of a job are shown with."""
    cluster = session.get_one(Cluster, job.cluster_id)
    mine = select(BatchChange).where(BatchChange.job_id == job.id)
    changes = session.exec(mine.order_by(col(BatchChange.id))).all()
    newest = select(Round.at_seconds).where(
        Round.cluster_id == cluster.id, Round.number == cluster.latest_round
    )
    counted_at = session.exec(newest).first()
    return JobTimeline(job, cluster, counted_at or 0.0, changes)


def span_before(session: Session, span: JobAllocation) -> JobAllocation | None:
    """Return the span of training before this one."""
    mine = select(JobAllocation).where(
        JobAllocation.job_id == span.job_id,
        col(JobAllocation.id) < span.id,
        col(JobAllocation.for_profile).is_(False),
    )
    return session.exec(mine.order_by(col(JobAllocation.id).desc()).limit(1)).first()


def measured_of(session: Session, job: Job) -> Measured:
    """Return what was measured of a job on the GPUs that it had, and what it does now."""
    mine = select(JobAllocation).where(JobAllocation.job_id == job.id)
    newest = session.exec(mine.order_by(col(JobAllocation.id).desc()).limit(MOST_COMPARED)).all()
    timeline = timeline_of(session, job)
    return Measured(
        timeline.measured(newest),
        job.goodput,
        None if job.batch is None else job.batch["total_batch_size"],
        remaining_seconds(job, timeline.cluster),
    )


def _move_out(move: MoveWorth) -> MoveWorthOut:
    rates = move.rates
    return MoveWorthOut(
        outcome=move.outcome.value,
        unknown=None if move.unknown is None else move.unknown.value,
        stood_seconds=move.stood_seconds,
        ran_seconds=move.ran_seconds,
        before_samples_per_second=None if rates is None else rates.before,
        after_samples_per_second=None if rates is None else rates.after,
        net_seconds=move.net_seconds,
        pays_after_seconds=move.pays_after_seconds,
    )


def _within(before: float | None, after: float | None) -> float | None:
    """Return by how much a counter grew; None where it was not read."""
    return None if before is None or after is None else max(after - before, 0.0)
