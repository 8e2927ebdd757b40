"""Works out the forecast of a cluster after its rounds, and stores it. Knows no broker.

A row of ClusterForecast is the queue: one worker has it at a time, and what a worker that died had
claimed another one claims after a while. Then it rests three times as long as it worked; jobs that
come meanwhile get first guesses, which rest three times as long too. So those of a cluster take
half a core at most, and all of them never more than one. The clusters of a process take turns of
some CPU seconds, so that a large one keeps none waiting for long; all stand still while the process
answers a question.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from backend.clocktime import utc_now
from backend.database import Database
from backend.forecasts.interest import is_of_interest
from backend.forecasts.models import REST
from backend.models import Cluster, ClusterForecast, JobForecastRow, OperationState
from backend.models import Job as JobRow
from maat.forecasting.forecast import Forecast, OutOfTime, forecast
from maat.forecasting.present import Present
from maat.scheduling.errors import ContractViolation, PolicyFailed
from maat.scheduling.job import JobId
from maat.scheduling.own.failures import sentence_of
from worker.executors.simulated_state import fit_once
from worker.forecasts.first import FAULT_SECONDS, FIRST_DRAWS, FirstForecasts, first_forecast
from worker.forecasts.keeping import (
    jobs_of_few_draws,
    jobs_without,
    jobs_without_recent,
    keep,
    keep_first,
)
from worker.forecasts.pacing import pacing_of
from worker.forecasts.reading import Reading, read
from worker.turns import TURNS, Turns, lower_priority
from worker.work_queue import Claim, WorkQueue

log = logging.getLogger(__name__)

DRAWS = 29
"""The 27th of 29 values is a P90: another one exceeds it with probability 1 / 10."""
RUN_SECONDS = 10.0
"""No other draw begins after so many CPU seconds, once there are enough for a P90."""
MOST_SECONDS = 60.0
"""CPU seconds after which a forecast ends without a result: a busy machine ends none."""
MOST_UNDER_WAY = 8
"""Of so many clusters a process keeps the state at a time."""
_UNDER_WAY: set[str] = set()
_LOCK = threading.Lock()  # of _UNDER_WAY
ROWS = WorkQueue(ClusterForecast, key=col(ClusterForecast.cluster_id))


@dataclass(frozen=True)
class Due:
    """A cluster whose forecast is due: of all its jobs, or a first one of those that have come."""

    cluster_id: str
    of_all: bool


def due_clusters(database: Database) -> list[Due]:
    """Return the clusters with a job that has not ended, and a round after their last forecast.

    While they rest after it: those with a job that came since then. The one that has waited longest
    comes first.
    """
    now = utc_now()
    latest = col(Cluster.next_round_number) - 1
    made = sa.func.coalesce(col(ClusterForecast.round_number), 0)
    active = sa.exists().where(
        col(JobRow.cluster_id) == col(Cluster.id), col(JobRow.finished_seconds).is_(None)
    )
    came = active.where(
        col(JobRow.created_at) >= col(ClusterForecast.started_at),
        ~sa.exists().where(col(JobForecastRow.job_id) == col(JobRow.id)),
    )
    rests = (
        (col(ClusterForecast.finished_at), col(ClusterForecast.compute_seconds)),
        (col(ClusterForecast.first_at), col(ClusterForecast.first_seconds)),
    )
    statement = (
        sa.select(col(Cluster.id), latest > made, came, *rests[0], *rests[1])
        .outerjoin(ClusterForecast, col(ClusterForecast.cluster_id) == col(Cluster.id))
        .where(~col(Cluster.paused), active, sa.or_(latest > made, came))
        .where(is_of_interest(col(Cluster.id), now))
        .order_by(col(ClusterForecast.finished_at).nulls_first(), col(Cluster.id))
    )
    with database.session_scope(writes=False) as session:
        rows = session.execute(statement).all()
    found = []
    for cluster_id, has_round, has_new, *rested in rows:
        of_all = bool(has_round) and _has_rested(now, *rested[:2])
        if of_all or (has_new and _has_rested(now, *rested[2:])):
            found.append(Due(cluster_id, of_all))
    return found


def _has_rested(now: datetime, since: datetime | None, seconds: float) -> bool:
    """Whether enough time has passed; an end of the future is from before a clock was set back."""
    if since is None:
        return True
    passed = (now - since).total_seconds()
    return passed < 0 or passed >= REST * seconds


def begin(database: Database, cluster_id: str) -> threading.Thread:
    """Work it out beside the questions of this process, at a low priority.

    Does nothing if this process works on it already, or on too many, or if none is due any more.
    The beat sends a new message for each forecast that is still due.
    """

    def run() -> None:
        with _LOCK:
            if cluster_id in _UNDER_WAY or len(_UNDER_WAY) >= MOST_UNDER_WAY:
                return
            _UNDER_WAY.add(cluster_id)
        try:
            lower_priority()
            work_out_if_due(database, cluster_id)
        except Exception:  # the row is claimed again
            log.exception("the forecast of cluster %s was not worked out", cluster_id)
        finally:
            with _LOCK:
                _UNDER_WAY.remove(cluster_id)

    thread = threading.Thread(target=run, name=f"forecast-{cluster_id}", daemon=True)
    thread.start()
    return thread


def work_out_if_due(database: Database, cluster_id: str) -> Forecast | None:
    """Work it out unless another message did since this one was sent."""
    due = next((one for one in due_clusters(database) if one.cluster_id == cluster_id), None)
    if due is None:
        return None
    if due.of_all:
        return work_out(database, cluster_id)
    _of_new_jobs(database, due)
    return None


def work_out(database: Database, cluster_id: str, *, turns: Turns = TURNS) -> Forecast | None:
    """Work out the forecast of a cluster once; return None if there is nothing to do.

    Jobs that have none, or none of the last hour, get a first one before; those that come meanwhile
    get theirs between two rounds of a draw. `turns`: whom it waits for before every round.
    """
    claim = _claim(database, cluster_id)
    if claim is None:
        return None
    begun = time.thread_time()
    values: dict[str, object] = {"detail": None}
    found, reading, present = None, None, None
    first = FirstForecasts(database, ROWS, claim, _looking(begun, turns))
    try:
        with ROWS.working_on(database, claim), turns.line():
            reading, wanted = _read(database, cluster_id)
            if reading is not None:
                values["round_number"] = reading.round_number
                present = reading.present()
                first.make(reading, present, wanted, begun=begun)
                look = _looking(begun, turns, first)
                found = _worked_out_or_renewed(database, claim, reading, present, look, turns)
    except OutOfTime:
        values["detail"] = _too_long(present)
    except Exception as error:
        log.exception("the forecast of cluster %s could not be worked out", cluster_id)
        values["detail"] = _words_of(error)
        begun -= FAULT_SECONDS  # it would most often fail again
    _store(
        database, claim, found, reading, values | {"compute_seconds": time.thread_time() - begun}
    )
    return found


def _words_of(error: Exception) -> str:
    """Return why a forecast failed, as far as everybody may read it."""
    if isinstance(error, PolicyFailed | ContractViolation):
        return sentence_of(error)
    return type(error).__name__


def _worked_out_or_renewed(
    database: Database,
    claim: Claim,
    reading: Reading,
    present: Present,
    look: Callable[[], object],
    turns: Turns,
) -> Forecast:
    """Play the draws; where they take too long, play a few quickly, so that none grows old.

    Raises OutOfTime, and what a policy raises.
    """
    try:
        return worked_out(reading, present, look)
    except OutOfTime:
        found = first_forecast(reading, present, _looking(time.thread_time(), turns))
        with database.session_scope() as session:
            if ROWS.beat(session, claim):
                old = jobs_without_recent(session, claim.key, found.now)
                jobs = old | jobs_of_few_draws(session, claim.key)
                keep_first(session, claim.key, found, jobs, round_number=reading.round_number)
        raise


def _of_new_jobs(database: Database, due: Due, *, turns: Turns = TURNS) -> None:
    """Make first guesses of the jobs that have none; the others keep theirs."""
    claim = _claim(database, due.cluster_id)
    if claim is None:
        return
    begun = time.thread_time()
    try:
        with ROWS.working_on(database, claim), turns.line():
            reading, wanted = _read(database, due.cluster_id, renews=False)
            if reading is not None:
                first = FirstForecasts(database, ROWS, claim, _looking(begun, turns))
                first.make(reading, reading.present(), wanted, begun=begun, draws=0)
    except OutOfTime:
        log.info("the new jobs of cluster %s have no first forecast in time", due.cluster_id)
    except Exception:
        log.exception("the new jobs of cluster %s have no first forecast", due.cluster_id)
    finally:
        with database.session_scope() as session:
            ROWS.give_back(session, claim)


def _read(
    database: Database, cluster_id: str, *, renews: bool = True
) -> tuple[Reading | None, set[JobId]]:
    """Return the cluster as it is, and its jobs that have no forecast.

    `renews`: or none of the last hour.
    """
    with database.session_scope(writes=False) as session:
        reading = read(session, session.get_one(Cluster, cluster_id))
        if reading is None or not renews:
            return reading, jobs_without(session, cluster_id)
        return reading, jobs_without_recent(session, cluster_id, reading.snapshot.now)


def worked_out(reading: Reading, present: Present, look: Callable[[], object]) -> Forecast:
    """Play the draws of a reading. Raises OutOfTime, and what a policy raises."""
    begun = time.thread_time()
    return forecast(
        present,
        reading.unknown,
        fitter=fit_once,
        draws=DRAWS,
        least=FIRST_DRAWS,
        pacing=pacing_of(present),
        look=look,
        has_time=lambda: time.thread_time() - begun < RUN_SECONDS,
    )


def _claim(database: Database, cluster_id: str) -> Claim | None:
    insert = sqlite.insert if database.is_sqlite else postgresql.insert
    mine = col(ClusterForecast.cluster_id) == cluster_id
    with database.session_scope() as session:
        if session.get(Cluster, cluster_id) is None:
            return None
        session.execute(
            insert(ClusterForecast)
            .values(cluster_id=cluster_id, state=OperationState.QUEUED.value, round_number=0)
            .values(draws=0, compute_seconds=0.0)
            .on_conflict_do_nothing()
        )
        _queue_again(session, cluster_id)
        return ROWS.claim_next(session, mine)


def _queue_again(session: Session, cluster_id: str) -> None:
    """Queue a row whose last forecast has ended."""
    ended = (OperationState.SUCCEEDED.value, OperationState.FAILED.value)
    session.execute(
        sa.update(ClusterForecast)
        .where(col(ClusterForecast.cluster_id) == cluster_id)
        .where(col(ClusterForecast.state).in_(ended))
        .values(state=OperationState.QUEUED.value, heartbeat_at=None)
    )


def _looking(begun: float, turns: Turns, first: FirstForecasts | None = None) -> Callable[[], None]:
    """Return what a draw calls before every round. `first`: attends to jobs that come meanwhile."""

    def look() -> None:
        turns.wait()
        beside = 0.0 if first is None else first.seconds
        if time.thread_time() - begun - beside > MOST_SECONDS:
            raise OutOfTime
        if first is not None:
            first.attend_to_new_jobs()

    return look


def _too_long(present: Present | None) -> str:
    jobs = "its jobs" if present is None else f"its {len(present.job_ids)} jobs"
    return f"To play {jobs} took longer than {MOST_SECONDS:g} CPU s."


def _store(
    database: Database,
    claim: Claim,
    found: Forecast | None,
    reading: Reading | None,
    values: dict[str, object],
) -> None:
    """Store forecast and promises in one transaction, if the row is still this worker's."""
    state = OperationState.SUCCEEDED if values["detail"] is None else OperationState.FAILED
    if found is not None:
        values |= {"made_seconds": found.now, "draws": len(found.draws)}
    with database.session_scope() as session:
        if ROWS.settle(session, claim, state, **values) and found is not None and reading:
            keep(session, claim.key, found, round_number=reading.round_number)
