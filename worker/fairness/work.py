"""Works out rho of the jobs that wait for it, and stores it. Knows no broker.

The rows of JobFairness are the queue: a worker claims some, computes, and stores each once. What a
worker that died had claimed, another one claims after a while, and finds the same. A task ends
after a few seconds, so that simulations on the same queue wait no longer; a job that takes too long
fails by a time limit, and one that an operator skips is left.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.database import Database
from backend.fairness.ended_days import forget_days
from backend.fairness.models import OPEN, settled_state
from backend.models import JobFairness, Operation, WaitReason
from maat.vocabulary import WithoutRho
from worker.fairness.beliefs import keep_gradients
from worker.fairness.rho import Ended, ended_jobs, rho_of
from worker.work_queue import Claim, WorkQueue

log = logging.getLogger(__name__)

RUN_SECONDS = 5.0
"""A task begins no other job after this time."""
JOB_SECONDS = 8.0
"""Most time for one job: together less than after what a worker counts as dead."""
LOOK_SECONDS = 0.5
AT_ONCE = 40
ROWS = WorkQueue(JobFairness, key=col(JobFairness.job_id))


class _Skipped(Exception):
    """An operator said that the job need not be worked out."""


class _TimeLimit(Exception):
    """The job took too long."""


@dataclass
class _Result:
    claim: Claim
    values: dict[str, Any]


def is_waiting(database: Database) -> bool:
    """Return whether a job waits for its rho, and no worker has it."""
    return ROWS.waits(database, OPEN)


def work_out_for(database: Database, *, seconds: float = RUN_SECONDS) -> None:
    """Work out jobs that wait, for so long; a portion that has begun is finished."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and work_out(database, run_seconds=left):
        pass


def work_out(
    database: Database, *, run_seconds: float = RUN_SECONDS, job_seconds: float = JOB_SECONDS
) -> bool:
    """Work out a portion of the jobs that wait; return whether there were any."""
    with database.session_scope() as session:
        claims = ROWS.claim_some(
            session, OPEN, order=col(JobFairness.finished_seconds).desc(), most=AT_ONCE
        )
    if not claims:
        return False
    ended = _read(database, claims)
    until = time.monotonic() + run_seconds
    results: list[_Result] = []
    for claim in claims:
        if time.monotonic() > until and results:
            break
        results.append(_result(database, claim, ended[claim.key], job_seconds))
    _store(database, results, claims[len(results) :])
    return True


def _read(database: Database, claims: Sequence[Claim]) -> dict[str, Ended | Exception]:
    """Read the jobs of these claims, together; one that cannot be read harms no other."""
    keys = [claim.key for claim in claims]
    try:
        with database.session_scope(writes=False) as session:
            return {one.job_id: one for one in ended_jobs(session, _rows(session, keys))}
    except Exception as error:
        if len(keys) == 1:
            return {keys[0]: error}
    found: dict[str, Ended | Exception] = {}
    for claim in claims:
        found |= _read(database, [claim])
    return found


def _rows(session: Session, keys: Sequence[str]) -> Sequence[JobFairness]:
    return session.exec(select(JobFairness).where(col(JobFairness.job_id).in_(keys))).all()


def _result(
    database: Database, claim: Claim, ended: Ended | Exception, job_seconds: float
) -> _Result:
    begun = time.monotonic()
    try:
        if isinstance(ended, Exception):
            raise ended
        values = rho_of(ended, look=_looking(database, claim, begun + job_seconds, job_seconds))
    except _Skipped:
        return _Result(claim, {"reason": WithoutRho.SKIPPED.value})
    except _TimeLimit as limit:
        values = {"reason": WithoutRho.TIME_LIMIT.value, "detail": str(limit)}
    except Exception as error:
        log.exception("rho of job %s could not be worked out", claim.key)
        values = {"reason": WithoutRho.FAULT.value, "detail": type(error).__name__}
    return _Result(claim, values | {"compute_seconds": time.monotonic() - begun})


def _looking(
    database: Database, claim: Claim, until: float, job_seconds: float
) -> Callable[[], None]:
    """Return what a computation calls often: it ends it in time, or when it is skipped."""
    next_look = time.monotonic() + LOOK_SECONDS

    def look() -> None:
        nonlocal next_look
        now = time.monotonic()
        if now > until:
            raise _TimeLimit(f"It took longer than {job_seconds:g} s.")
        if now > next_look:
            next_look = now + LOOK_SECONDS
            if _is_skipped(database, claim):
                raise _Skipped

    return look


def _is_skipped(database: Database, claim: Claim) -> bool:
    with database.session_scope(writes=False) as session:
        statement = (
            select(JobFairness.cancel_requested, Operation.cancel_requested)
            .outerjoin(Operation, col(Operation.id) == col(JobFairness.operation_id))
            .where(JobFairness.job_id == claim.key)
        )
        return any(session.exec(statement).one())


def _store(database: Database, results: Sequence[_Result], left: Sequence[Claim]) -> None:
    """Store all results in one transaction, each if its claim still holds; give back the rest."""
    with database.session_scope() as session:
        changed: dict[str, list[float]] = defaultdict(list)
        for result in results:
            if _store_one(session, result):
                row = session.get_one(JobFairness, result.claim.key)
                changed[row.cluster_id].append(row.finished_seconds)
        for cluster_id, finished_seconds in changed.items():
            forget_days(session, cluster_id, finished_seconds)
        for claim in left:
            ROWS.give_back(session, claim)


def _store_one(session: Session, result: _Result) -> bool:
    """Store a result; return False if its claim was lost."""
    values = result.values
    row = session.get_one(JobFairness, result.claim.key)
    if values["reason"] == WithoutRho.SKIPPED and row.formula_version is not None:
        values = {"reason": row.reason}  # the new version is not needed: what was known stays
    state = settled_state(values["reason"])
    if not ROWS.settle(session, result.claim, state, cancel_requested=False, **values):
        return False
    if "why" in values:  # summed up: what it was summed up from is needed no more
        job_id = result.claim.key
        session.execute(sa.delete(WaitReason).where(col(WaitReason.job_id) == job_id))
        keep_gradients(session, job_id)
    return True
