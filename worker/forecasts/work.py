"""Works out the forecast of a cluster after its rounds, and stores it. Knows no broker.

A row of ClusterForecast is the queue: one worker has it at a time, and what a worker that died had
claimed another one claims after a while. Then it rests three times as long as it worked, so that
forecasts take a quarter of a core at most, and never more than one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, ClusterForecast, OperationState
from backend.models import Job as JobRow
from maat.forecasting.forecast import LEAST_DRAWS, Forecast, OutOfTime, forecast
from worker.executors.simulated_state import fit_once
from worker.forecasts.keeping import keep
from worker.forecasts.pacing import pacing_of
from worker.forecasts.reading import Reading, read
from worker.work_queue import Claim, WorkQueue

log = logging.getLogger(__name__)

DRAWS = 29
"""The 27th of 29 values is a P90: another one exceeds it with probability 1 / 10."""
RUN_SECONDS = 10.0
"""No other draw begins after so many CPU seconds, once there are LEAST_DRAWS."""
MOST_SECONDS = 60.0
"""CPU seconds after which a forecast ends without a result: a busy machine ends none."""
REST = 3.0
FAULT_SECONDS = 20.0
LOOK_SECONDS = 0.5
ROWS = WorkQueue(ClusterForecast, key=col(ClusterForecast.cluster_id))


def due_clusters(database: Database) -> list[str]:
    """Return the clusters with a round after their last forecast, and a job that has not ended."""
    now = utc_now()
    latest = col(Cluster.next_round_number) - 1
    made = sa.func.coalesce(col(ClusterForecast.round_number), 0)
    active = sa.exists().where(
        col(JobRow.cluster_id) == col(Cluster.id), col(JobRow.finished_seconds).is_(None)
    )
    columns = (col(ClusterForecast.finished_at), col(ClusterForecast.compute_seconds))
    statement = (
        sa.select(col(Cluster.id), *columns)
        .outerjoin(ClusterForecast, col(ClusterForecast.cluster_id) == col(Cluster.id))
        .where(~col(Cluster.paused), latest > made, active)
        .order_by(col(Cluster.id))
    )
    with database.session_scope(writes=False) as session:
        rows = session.execute(statement).all()
    return [
        cluster_id
        for cluster_id, finished_at, seconds in rows
        if finished_at is None or _has_rested(now - finished_at, seconds)
    ]


def _has_rested(since: timedelta, seconds: float) -> bool:
    """Whether enough time has passed; an end of the future is from before a clock was set back."""
    passed = since.total_seconds()
    return passed < 0 or passed >= REST * seconds


def work_out_if_due(
    database: Database, cluster_id: str, *, must_stop: Callable[[], bool]
) -> Forecast | None:
    """Work it out unless another message did since this one was sent."""
    if cluster_id not in due_clusters(database):
        return None
    return work_out(database, cluster_id, must_stop=must_stop)


def work_out(
    database: Database, cluster_id: str, *, must_stop: Callable[[], bool] = lambda: False
) -> Forecast | None:
    """Work out the forecast of a cluster once; return None if there is nothing to do.

    `must_stop`: asked twice a second; the draws played until then count.
    """
    claim = _claim(database, cluster_id)
    if claim is None:
        return None
    begun = time.process_time()
    values: dict[str, object] = {"detail": None}
    found, reading = None, None
    try:
        with ROWS.working_on(database, claim):
            with database.session_scope(writes=False) as session:
                reading = read(session, session.get_one(Cluster, cluster_id))
            if reading is not None:
                values["round_number"] = reading.round_number
                found = worked_out(reading, look=_looking(begun, must_stop))
    except OutOfTime:
        values["detail"] = f"It took longer than {MOST_SECONDS:g} CPU s, or was put off."
    except Exception as error:
        log.exception("the forecast of cluster %s could not be worked out", cluster_id)
        values["detail"] = type(error).__name__
        begun -= FAULT_SECONDS  # it would most often fail again
    _store(
        database, claim, found, reading, values | {"compute_seconds": time.process_time() - begun}
    )
    return found


def worked_out(reading: Reading, *, look: Callable[[], object]) -> Forecast:
    """Play the draws of a reading. Raises OutOfTime, and what a policy raises."""
    begun, present = time.process_time(), reading.present()
    return forecast(
        present,
        reading.unknown,
        fitter=fit_once,
        draws=DRAWS,
        least=LEAST_DRAWS,
        pacing=pacing_of(present),
        look=look,
        has_time=lambda: time.process_time() - begun < RUN_SECONDS,
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


def _looking(begun: float, must_stop: Callable[[], bool]) -> Callable[[], None]:
    next_look = time.monotonic() + LOOK_SECONDS

    def look() -> None:
        nonlocal next_look
        now = time.monotonic()
        if time.process_time() - begun > MOST_SECONDS:
            raise OutOfTime
        if now > next_look:
            next_look = now + LOOK_SECONDS
            if must_stop():
                raise OutOfTime

    return look


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
