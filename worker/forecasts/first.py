"""First forecasts: of jobs that have none yet, and in place of those that have grown old.

The central draw, played quickly, is a first guess; a few more draws follow where all jobs are
forecast next. Jobs that come meanwhile have their first guess between two rounds of a draw.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Set

from backend.clocktime import utc_now
from backend.database import Database
from backend.forecasts.models import REST
from backend.models import Cluster, ClusterForecast
from maat.forecasting.forecast import Forecast, OutOfTime, forecast
from maat.forecasting.present import Present
from maat.scheduling.job import JobId
from worker.executors.simulated_state import fit_once
from worker.forecasts.keeping import jobs_without, keep_first
from worker.forecasts.pacing import quick_pacing_of
from worker.forecasts.reading import Reading, read
from worker.work_queue import Claim, WorkQueue

log = logging.getLogger(__name__)

FIRST_DRAWS = 3
"""A first forecast rests on so many, played as for a question, once its guess is there."""
RUN_SECONDS = 10.0
"""No other draw of a first forecast begins after so many CPU seconds."""
LOOK_SECONDS = 2.0
"""So often a forecast looks for jobs that have come since it began."""
FAULT_SECONDS = 20.0
"""CPU seconds that a fault counts as: it would most often happen again."""

Look = Callable[[], object]


def first_forecast(
    reading: Reading,
    present: Present,
    look: Look,
    *,
    draws: int = FIRST_DRAWS,
    guess: Callable[[Forecast], object] = lambda _: None,
) -> Forecast:
    """Play the central draw and a few others quickly. Raises OutOfTime, and what a policy raises.

    `guess` is given what the central one says.
    """
    begun = time.thread_time()
    return forecast(
        present,
        reading.unknown,
        fitter=fit_once,
        draws=draws,
        least=0,
        enough=0,
        pacing=quick_pacing_of(present),
        look=look,
        guess=guess,
        has_time=lambda: time.thread_time() - begun < RUN_SECONDS,
    )


class FirstForecasts:
    """The first forecasts of one claimed cluster.

    `known`: its jobs that have had their guess, or can have none. `look`: called before every round
    of a draw. `seconds`: CPU time of the guesses made beside the draws of all jobs.
    """

    def __init__(
        self, database: Database, queue: WorkQueue[ClusterForecast], claim: Claim, look: Look
    ) -> None:
        self._database, self._queue, self._claim, self._look = database, queue, claim, look
        self._next_look = time.monotonic() + LOOK_SECONDS
        self.known: set[JobId] = set()
        self.seconds = 0.0

    def make(
        self,
        reading: Reading,
        present: Present,
        wanted: Set[JobId],
        *,
        begun: float,
        draws: int = FIRST_DRAWS,
    ) -> None:
        """Make and keep those of these jobs: a guess, then what a few draws say.

        `begun`: the CPU time at which the work on the claim began. Raises OutOfTime, and what a
        policy raises.
        """
        self.known |= wanted
        if not wanted & set(present.job_ids):
            return

        def publish(found: Forecast) -> None:
            self._keep(reading, found, wanted)

        try:
            found = first_forecast(reading, present, self._look, draws=draws, guess=publish)
            if len(found.draws) > 1:
                publish(found)
        except OutOfTime:
            raise
        except Exception:
            begun -= FAULT_SECONDS
            raise
        finally:
            rest = {"first_at": utc_now(), "first_seconds": time.thread_time() - begun}
            with self._database.session_scope() as session:
                self._queue.beat(session, self._claim, **rest)

    def attend_to_new_jobs(self) -> None:
        """Guess for jobs that have come since the draws began, now and then. Raises nothing.

        After a guess no other one begins for three times its CPU time.
        """
        if time.monotonic() < self._next_look:
            return
        begun = time.thread_time()
        try:
            self._guess()
        except OutOfTime:
            log.info("new jobs of cluster %s have no first guess in time", self._claim.key)
        except Exception:
            log.exception("new jobs of cluster %s have no first guess", self._claim.key)
        spent = time.thread_time() - begun
        self.seconds += spent
        self._next_look = time.monotonic() + max(LOOK_SECONDS, REST * spent)

    def _guess(self) -> None:
        with self._database.session_scope(writes=False) as session:
            came = jobs_without(session, self._claim.key) - self.known
            if not came:
                return
            reading = read(session, session.get_one(Cluster, self._claim.key))
        self.known |= came
        if reading is None:
            return
        present = reading.present()
        if came & set(present.job_ids):
            self._keep(reading, first_forecast(reading, present, self._look, draws=0), came)

    def _keep(self, reading: Reading, found: Forecast, jobs: Set[JobId]) -> None:
        """Keep the forecast of these jobs, if their cluster is still this worker's."""
        with self._database.session_scope() as session:
            if self._queue.beat(session, self._claim):
                number = reading.round_number
                keep_first(session, self._claim.key, found, jobs, round_number=number)
