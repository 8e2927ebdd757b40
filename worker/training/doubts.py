"""Compares what is believed of a job that trains with what was seen of it, and flags the job once.

What is told of a flag: a row of the job, an event, of which webhooks hear, and a line of the audit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import sqlalchemy as sa

from backend.audit.changes import Change, program, record_row
from backend.models import AttemptRow, AuditRecord, Job, JobCommand, JobFlag, StepSample
from maat.scheduling.events import Event, EventKind
from maat.scheduling.evidence import OfKind
from maat.scheduling.fitting import Sample
from maat.scheduling.plausibility import Account, Doubt, Life, Timed, doubts_of
from maat.vocabulary import Doubted
from worker.training.tables import trained
from worker.writes import Write

UNKNOWN_WORK = frozenset({Doubted.PACE, Doubted.WORK})
"""While such a flag stands, what is left of a job's work counts as not known."""

_FLAGS: sa.Table = JobFlag.__table__  # type: ignore[attr-defined]
_AUDIT: sa.Table = AuditRecord.__table__  # type: ignore[attr-defined]


def standing(flags: Mapping[Doubted, JobFlag]) -> Collection[Doubted]:
    """Return the kinds of flags that nobody has dismissed."""
    return {kind for kind, flag in flags.items() if flag.dismissed_at is None}


def lives_of(attempts: Sequence[AttemptRow], now: float) -> list[Life]:
    """Return what was seen of the attempts that trained."""
    return [
        Life(
            row.gpu_type,
            max(
                (now if row.ended_seconds is None else row.ended_seconds) - row.queued_seconds, 0.0
            ),
            _ran_seconds(row),
            Timed(row.timed_steps, row.timed_seconds),
        )
        for row in trained(attempts)
        if row.queued_seconds is not None
    ]


def account_of(
    attempts: Sequence[AttemptRow],
    rows: Sequence[StepSample],
    command: JobCommand,
    *,
    samples: Mapping[str, Sequence[Sample]],
    of_kind: Mapping[str, OfKind],
    now: float,
) -> Account:
    """Return what is known of a job; `rows`: its measured steps, `samples`: made of them."""
    mine = trained(attempts)
    named = [one.least_total_samples for one in mine if one.least_total_samples is not None]
    fastest: dict[str, float] = {}
    for row in rows:
        batch = row.per_gpu_batch_size * row.replica_count * (row.accumulation_steps + 1)
        rate = batch / row.step_mean
        fastest[row.gpu_type] = max(fastest.get(row.gpu_type, 0.0), rate)
    return Account(
        lives_of(attempts, now),
        progress=max((one.progress or 0.0 for one in mine), default=0.0),
        fastest=fastest,
        named_work=min(named, default=None),
        declared_work=command.total_samples,
        finished=any(one.finished for one in mine),
        samples=samples,
        of_kind=of_kind,
    )


def flag(
    row: Job, attempt: int, doubts: Sequence[Doubt], known: Collection[Doubted], now: float
) -> Iterator[tuple[Event, Sequence[Write]]]:
    """Yield the event and the writes of each doubt that the job is not flagged for yet."""
    for doubt in doubts:
        if doubt.kind in known:
            continue
        values = {
            "job_id": row.id,
            "kind": doubt.kind.value,
            "attempt": attempt,
            "at_seconds": now,
            "said": doubt.said,
            "seen": doubt.seen,
            "unit": doubt.unit,
        }
        told = {"flag": doubt.kind.value, "attempt": attempt, "reason": doubt.sentence}
        change = Change(program("rounds"), "flag job", row.id, {}, told, tenant_id=row.tenant_id)
        yield (
            Event(now, row.id, EventKind.FLAG, None, told),
            (
                Write(sa.insert(_FLAGS), [values]),
                Write(sa.insert(_AUDIT), [record_row(change)]),
            ),
        )


def judge(account: Account) -> Sequence[Doubt]:
    return list(doubts_of(account))


def _ran_seconds(row: AttemptRow) -> float:
    if row.timed_since is None or row.reported_seconds is None:
        return 0.0
    return max(row.reported_seconds - row.timed_since, 0.0)
