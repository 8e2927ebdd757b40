"""Plays the runs of the laboratory, the next of the tenant whose turn it is. Knows no broker.

The rows are the queue: simulations' runs, points of sweeps, experiments, runs of papers. A worker
that is free claims the next. One that is at a long run takes in a run of a tenant that has none
played anywhere; both go on in turns, by the weights of their tenants.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial

from sqlmodel import Session

from backend.clocktime import utc_now
from backend.database import Database
from backend.experiments.service import EXPERIMENT
from backend.laboratory.budget import most_seconds, without_budget
from backend.laboratory.use import charge
from backend.papers.service import REPRODUCTION
from backend.quotas.repository import tenant_weights
from backend.settings import Settings
from backend.simulations.service import SIMULATION
from backend.sweeps.service import SWEEP
from worker.laboratory.turn import Turn
from worker.laboratory.work import Work, next_of
from worker.papers import runs as paper_runs
from worker.simulations import experiments, runs, sweeps
from worker.turns import Turns

log = logging.getLogger(__name__)

MOST_AT_ONCE = 4
"""Runs that a worker has at a time, each of another tenant: every one takes memory."""
PATIENCE = timedelta(seconds=3)
"""How long a request waits for a free worker before a busy one takes it in."""
TURN_SECONDS = 1.0
"""CPU seconds of a turn of a tenant of weight 1."""
LEAST_TURN_SECONDS, MOST_TURN_SECONDS = 0.1, 10.0

_WORK = (runs.work, sweeps.work, experiments.work, paper_runs.work)
_PLAYED_BY: Mapping[str, Callable[[Database, str, Turn], None]] = {
    SIMULATION: runs.play,
    SWEEP: sweeps.play,
    EXPERIMENT: experiments.play,
}


def waiting_runs(database: Database) -> int:
    """Return how many runs have no worker."""
    with database.session_scope(writes=False) as session:
        return sum(one.waiting for one in _all_work(session))


class Laboratory:
    """The runs that this process plays."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
        self._line, self._lock = Turns(), threading.Lock()
        self._guests: list[threading.Thread] = []
        self._tenants: set[str] = set()

    def play_next(self) -> bool:
        """Play the next run; go on while guests are here. Returns whether there was one to play."""
        has_played = self._play_first()
        while self._has_guests():
            if not self._play_first():
                self._guests[0].join(PATIENCE.total_seconds())
        return has_played

    def _play_first(self) -> bool:
        """Play a run of the tenant whose turn it is, of those that have none here yet."""
        with self._database.session_scope(writes=False) as session:
            absent = self._tenants | without_budget(session, self._settings)
            work = [one for one in _all_work(session) if one.tenant_id not in absent]
            weights, chosen = tenant_weights(session), next_of(session, work)
        return any(self._play(one, weights) for one in chosen)

    def _play(self, work: Work, weights: Mapping[str, float]) -> bool:
        """Play a run of this work; return False if another worker was faster."""
        seconds = TURN_SECONDS * weights.get(work.tenant_id, 1.0)
        turn = Turn(
            self._line,
            charge=partial(_charge, self._database, work),
            invite=self._invite,
            seconds=min(max(seconds, LEAST_TURN_SECONDS), MOST_TURN_SECONDS),
            most_seconds=most_seconds(self._settings.run_cpu_hours),
        )
        self._tenants.add(work.tenant_id)
        try:
            if work.kind == REPRODUCTION:
                paper_runs.play(self._database, self._settings, work.operation_id, turn)
            else:
                _PLAYED_BY[work.kind](self._database, work.operation_id, turn)
        finally:
            self._tenants.discard(work.tenant_id)
        return turn.begun

    def _invite(self) -> None:
        """Take in a run of a tenant that waits and of which nobody plays any."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if len(self._tenants) < MOST_AT_ONCE:
                self._take_in_one()
        finally:
            self._lock.release()

    def _take_in_one(self) -> None:
        now = utc_now()
        with self._database.session_scope(writes=False) as session:
            work = _all_work(session)
            served = {one.tenant_id for one in work if one.played} | self._tenants
            served |= without_budget(session, self._settings)
            alone = (one for one in work if one.tenant_id not in served)
            overdue = [one for one in alone if one.created_at < now - PATIENCE]
            weights, chosen = tenant_weights(session), next_of(session, overdue)
        if chosen:
            guest = threading.Thread(
                target=self._be_guest, args=(chosen[0], weights), name="guest", daemon=True
            )
            self._tenants.add(chosen[0].tenant_id)
            self._guests.append(guest)
            guest.start()

    def _be_guest(self, work: Work, weights: Mapping[str, float]) -> None:
        try:
            self._play(work, weights)
        except Exception:  # its row is claimed again
            log.exception("a run of %s was not played", work.operation_id)

    def _has_guests(self) -> bool:
        with self._lock:
            self._guests = [guest for guest in self._guests if guest.is_alive()]
        return bool(self._guests)


def _all_work(session: Session) -> list[Work]:
    return [one for work in _WORK for one in work(session)]


def _charge(database: Database, work: Work, seconds: float) -> None:
    with database.session_scope() as session:
        charge(session, work.operation_id, seconds, now=utc_now())
