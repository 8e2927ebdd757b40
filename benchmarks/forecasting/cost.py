"""What a forecast costs, in CPU seconds: its first guess, a few draws, and all of it.

A live cluster in a database, Sia with whole nodes, half an hour after its jobs came; and the demo
after its history, with a day of arrivals that come again in every draw.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlmodel import select

from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.models import Cluster
from backend.settings import Settings
from benchmarks.forecasting.answer_times import LARGE, SHAPE, filled
from benchmarks.rounds.live_round import sqlite_database
from benchmarks.table import Cell, Figures
from maat.forecasting.forecast import Forecast
from worker import demo
from worker.forecasts.first import first_forecast
from worker.forecasts.reading import Reading, read
from worker.forecasts.work import worked_out

STATES: Sequence[tuple[str, str, int]] = (
    ("64", SHAPE, 25),
    ("64", SHAPE, 100),
    ("2,048", *LARGE),
)
COLUMNS = {
    "state": "state",
    "gpus": "GPUs",
    "jobs": "jobs left",
    "process": "process",
    "read": "read",
    "guess": "first guess",
    "few": "three draws",
    "whole": "whole",
    "draws": "its draws",
    "rounds": "rounds a draw",
}
NOTES = [
    "CPU seconds from the beginning: reading the rows is in the first three. whole: without these.",
    "process: new, in which nothing is fitted yet, or warm, after a forecast of the same state.",
    "demo: the shipped one, right after its history.",
]


def measure() -> Iterator[Figures]:
    """Yield the table of the states, and that of the demo, whose history takes a while."""
    rows: list[dict[str, Cell]] = []
    for gpus, shape, jobs in STATES:
        with sqlite_database() as database:
            filled(database, "sia", "whole-node", shape, jobs)
            rows += _rows(database, "jobs of half an hour", gpus)
    yield Figures("forecast_cost", "What a forecast costs", COLUMNS, rows, list(NOTES))
    with _demo() as database:
        rows = _rows(database, "demo", "64")
    yield Figures("forecast_cost", "What a forecast costs", COLUMNS, rows, list(NOTES))


def _rows(database: Database, state: str, gpus: str) -> list[dict[str, Cell]]:
    return [
        {"state": state, "gpus": gpus, "process": process, **_spent(database)}
        for process in ("new", "warm")
    ]


def _spent(database: Database) -> dict[str, Cell]:
    begun = time.thread_time()
    reading = _reading(database)
    present = reading.present()
    spent: dict[str, Cell] = {"jobs": len(present.job_ids), "read": time.thread_time() - begun}

    def guess(_: Forecast) -> None:
        spent["guess"] = time.thread_time() - begun

    first_forecast(reading, present, lambda: None, guess=guess)
    spent["few"] = time.thread_time() - begun
    begun = time.thread_time()
    found = worked_out(reading, present, lambda: None)
    rounds = sum(one.rounds for one in found.draws) / len(found.draws)
    whole = time.thread_time() - begun
    return {**spent, "whole": whole, "draws": len(found.draws), "rounds": round(rounds)}


def _reading(database: Database) -> Reading:
    with database.session_scope(writes=False) as session:
        found = read(session, session.exec(select(Cluster)).one())
    if found is None:
        raise RuntimeError("the cluster has no nodes")
    return found


@contextmanager
def _demo() -> Iterator[Database]:
    with sqlite_database() as database:
        ensure_defaults(database, Settings(_env_file=None, demo=True, demo_jobs=True))
        with database.session_scope(writes=False) as session:
            cluster_id = session.exec(select(Cluster)).one().id
        while demo.wind_forward(database, cluster_id):
            demo.step_cluster(database, cluster_id)
        yield database
