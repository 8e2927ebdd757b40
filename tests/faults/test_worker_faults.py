"""Real workers on real brokers, killed where it hurts: nothing is lost, nothing is doubled."""

from __future__ import annotations

import os
import random
import time
from collections.abc import MutableMapping
from datetime import datetime
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from browser.processes import forks
from live_samples import (
    ENDED,
    assert_history_is_whole,
    jobs_of,
    make_cluster,
    round_numbers,
    submit,
    waiting_messages,
)
from reproduction_samples import ask, shown
from simulation_samples import operation_of, request_simulation, runs_of
from sqlmodel import select
from worker_processes import PATIENCE_SECONDS, Worker, wait_until

from backend.database import Database
from backend.models import PaperRun
from backend.settings import Settings
from worker.executors.simulated import live_models
from worker.live import step as live

FAST = 240.0  # cluster seconds in a second: a round every quarter of one


def all_ended(database: Database, cluster_id: str) -> bool:
    return all(row.state in ENDED for row in jobs_of(database, cluster_id))


def test_a_worker_makes_rounds_runs_jobs_to_their_end_and_plays_a_waiting_simulation(
    database: Database, worker: Worker
) -> None:
    cluster_id = make_cluster(database, speed=FAST)
    submit(database, cluster_id, count=6, work_scale=0.2)
    simulation_id = request_simulation(database, policies=("srtf",))
    worker.start()
    wait_until(lambda: all_ended(database, cluster_id), "all jobs end", log=worker.log)
    wait_until(
        lambda: operation_of(database, simulation_id).state == "succeeded",
        "the simulation ends",
        log=worker.log,
    )
    assert {row.state for row in jobs_of(database, cluster_id)} == {"succeeded"}
    assert [run.state for run in runs_of(database, simulation_id)] == ["succeeded"]
    assert_history_is_whole(database, cluster_id)


def test_a_worker_that_is_killed_and_started_again_goes_on_where_it_was(
    database: Database, worker: Worker
) -> None:
    cluster_id = make_cluster(database, speed=FAST)
    ids = submit(database, cluster_id, count=10, work_scale=0.5)
    worker.start()
    wait_until(
        lambda: len(round_numbers(database, cluster_id)) >= 2, "two rounds are made", log=worker.log
    )
    worker.kill()
    before = round_numbers(database, cluster_id)
    worker.start()
    wait_until(
        lambda: len(round_numbers(database, cluster_id)) >= len(before) + 2,
        "rounds go on",
        log=worker.log,
    )
    wait_until(lambda: all_ended(database, cluster_id), "all jobs end", log=worker.log)
    assert sorted(ids) == [row.id for row in jobs_of(database, cluster_id)]
    assert {row.state for row in jobs_of(database, cluster_id)} == {"succeeded"}
    wait_until(lambda: not waiting_messages(database, cluster_id), "the last round is applied")
    assert_history_is_whole(database, cluster_id)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_worker_that_is_killed_again_and_again_loses_nothing(
    database: Database, worker: Worker, seed: int
) -> None:
    chance = random.Random(seed)
    cluster_id = make_cluster(database, speed=FAST)
    submit(database, cluster_id, count=20, work_scale=2.0)
    for _ in range(6):
        worker.start()
        count = len(round_numbers(database, cluster_id))
        wait_until(
            lambda c=count: len(round_numbers(database, cluster_id)) > c,
            "a round is made",
            log=worker.log,
        )
        time.sleep(chance.uniform(0.0, 2.0))
        worker.kill()
        assert_history_is_whole(database, cluster_id)
    worker.start()
    wait_until(lambda: all_ended(database, cluster_id), "all jobs end", log=worker.log)
    assert_history_is_whole(database, cluster_id)


@pytest.mark.long
def test_a_simulation_whose_worker_is_killed_is_played_to_its_end_by_the_next(
    database: Database, worker: Worker
) -> None:
    simulation_id = request_simulation(database, policies=("srtf", "sia", "fifo"))
    worker.start()
    wait_until(
        lambda: runs_of(database, simulation_id)[0].state == "succeeded",
        "the first run ends",
        log=worker.log,
    )
    worker.kill()
    first = runs_of(database, simulation_id)[0].finished_at
    worker.start()
    wait_until(
        lambda: operation_of(database, simulation_id).state == "succeeded",
        "the simulation ends",
        log=worker.log,
    )
    assert runs_of(database, simulation_id)[0].finished_at == first
    assert [run.state for run in runs_of(database, simulation_id)] == ["succeeded"] * 3


@pytest.mark.long
def test_a_reproduction_whose_worker_is_killed_goes_on_and_plays_no_run_twice(
    database: Database, worker: Worker, tmp_path: Path
) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, data=None)
    found = ask(database, settings, "bsbf", "fig-1")

    def ended() -> dict[str, datetime | None]:
        with database.session_scope(writes=False) as session:
            runs = session.exec(select(PaperRun).where(PaperRun.state == "succeeded")).all()
            return {run.key: run.finished_at for run in runs}

    worker.start()
    wait_until(lambda: len(ended()) > 0, "the first run ends", log=worker.log)
    worker.kill()
    before = ended()
    worker.start()
    wait_until(
        lambda: shown(database, found)["state"] == "succeeded", "the item is made", log=worker.log
    )
    after = ended()
    assert (len(after), {key: after[key] for key in before}) == (5, before)


@pytest.mark.long
def test_a_run_whose_worker_is_killed_is_taken_again_while_another_worker_plays_on(
    database: Database, worker: Worker
) -> None:
    trace = {"kind": "generated", "family": "philly", "jobs": 3000, "hours": 150.0, "seed": 0}
    simulation_id = request_simulation(database, policies=("sia", "sia"), trace=trace)
    rounds, killed, other = (
        worker.only("rounds", "rounds"),
        worker.only("simulations", "killed"),
        worker.only("simulations", "other"),
    )
    try:
        for one in (rounds, killed, other):
            one.start()
        wait_until(
            lambda: [run.state for run in runs_of(database, simulation_id)] == ["running"] * 2,
            "both play",
            log=killed.log,
        )
        before = [run.started_at for run in runs_of(database, simulation_id)]
        killed.kill()
        killed.start()
        wait_until(
            lambda: [run.started_at for run in runs_of(database, simulation_id)] != before,
            "the killed worker's run is taken again",
            log=rounds.log,
        )
        again = runs_of(database, simulation_id)
        assert [run.state for run in again] == ["running"] * 2
        assert (
            sum(run.started_at == began for run, began in zip(again, before, strict=True)) == 1
        ), "the other plays its own on"
    finally:
        for one in (killed, other, rounds):
            one.kill()


def test_of_four_processes_that_race_exactly_one_makes_each_round(
    database: Database, database_url: str
) -> None:
    cluster_id = make_cluster(database, speed=100.0, round_seconds=1.0)
    submit(database, cluster_id, count=2, work_scale=20.0)
    context = forks()
    with (
        context.Manager() as manager,
        context.Pool(4, initializer=meet, initargs=(context.Barrier(4),)) as pool,
    ):
        racers = manager.dict()
        made = pool.starmap(step_until, [(database_url, cluster_id, 15, racers)] * 4, chunksize=1)
    everything = sorted(number for numbers in made for number in numbers)
    assert everything == round_numbers(database, cluster_id)
    assert len(everything) >= 15
    assert sum(bool(numbers) for numbers in made) > 1, "the processes did not race"
    wait_until(lambda: not waiting_messages(database, cluster_id), "the last round is applied")
    assert_history_is_whole(database, cluster_id)


def meet(barrier: Barrier) -> None:
    """All begin together: importing takes longer than a round."""
    live_models()
    barrier.wait(PATIENCE_SECONDS)


def step_until(
    database_url: str, cluster_id: str, number: int, racers: MutableMapping[int, bool]
) -> list[int]:
    """Make rounds until round `number` is there and two processes have made some.

    Returns the numbers of the rounds that this process committed.
    """
    database = Database(database_url)
    made: list[int] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (
        len(round_numbers(database, cluster_id)) < number or len(racers) < 2
    ) and time.monotonic() < deadline:
        committed = live.step_cluster(database, cluster_id)
        if committed is not None:
            made.append(committed)
            racers[os.getpid()] = True
    database.dispose()
    return made
