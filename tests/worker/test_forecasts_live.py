"""Forecasts of a live cluster: they come true, are kept, give way, and outlive a killed worker."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from forecast_samples import (
    MORE_NODES,
    answered,
    ask,
    make_fifo,
    one_runs,
    set_read_seconds_ago,
    submit_rigid,
)
from live_samples import job, jobs_of, set_time, step_at
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.forecasts.interest import INTEREST_SECONDS
from backend.models import (
    Cluster,
    ClusterForecast,
    ForecastPromise,
    ForgottenPast,
    Job,
    JobForecastRow,
    OperationState,
)
from backend.settings import Settings
from maat.forecasting.draws import CENTRAL, Drawing
from maat.forecasting.forecast import LEAST_DRAWS, Forecast, OutOfTime
from maat.forecasting.play import play
from maat.forecasting.present import Present
from maat.models.catalog import load_catalog
from maat.scheduling.belief import MemoisingFitter
from maat.vocabulary import JobState, PromiseKind
from worker.forecasts import first as first_forecasts
from worker.forecasts import past, what_if, work
from worker.forecasts.first import FIRST_DRAWS
from worker.forecasts.past import unknown_of
from worker.forecasts.reading import Reading, read
from worker.live import step as live
from worker.retention import forget_jobs
from worker.turns import LOW_PRIORITY, TURNS, Turns


def reading_of(database: Database, cluster_id: str) -> Reading:
    with database.session_scope(writes=False) as session:
        found = read(session, session.get_one(Cluster, cluster_id))
    assert found is not None
    return found


def forecasts_of(database: Database) -> dict[str, JobForecastRow]:
    with database.session_scope(writes=False) as session:
        return {row.job_id: row for row in session.exec(select(JobForecastRow))}


def promises_of(database: Database) -> list[ForecastPromise]:
    with database.session_scope(writes=False) as session:
        return list(session.exec(select(ForecastPromise).order_by(col(ForecastPromise.id))))


def row_of(database: Database, cluster_id: str) -> ClusterForecast:
    with database.session_scope(writes=False) as session:
        return session.get_one(ClusterForecast, cluster_id)


# ---- the present, and what comes of it


def test_the_central_draw_comes_true_but_for_the_pace(database: Database) -> None:
    cluster_id = make_fifo(database)
    first = submit_rigid(database, cluster_id)
    second = submit_rigid(database, cluster_id, submitted_seconds=1.0)
    step_at(database, cluster_id, 10.0, 70.0, 130.0)

    reading = reading_of(database, cluster_id)
    present = reading.present()
    assert {one.job.id for one in present.jobs} == {first, second}
    assert present.next_round_at == 180.0
    drawing = Drawing(present, reading.unknown, MemoisingFitter())
    played = play(present, drawing.draw(CENTRAL))

    at = 130.0
    while any(row.finished_seconds is None for row in jobs_of(database, cluster_id)):
        at += 60.0
        set_time(database, cluster_id, at)
        live.step_cluster(database, cluster_id)
    for job_id in (first, second):
        actual = job(database, job_id)
        assert actual.finished_seconds is not None
        assert played.ends[job_id] == pytest.approx(actual.finished_seconds, rel=0.45)
    waited = job(database, second).started_seconds
    assert waited == pytest.approx(played.starts[second], rel=0.45)


def test_jobs_that_nobody_can_foretell_are_left_out(database: Database) -> None:
    cluster_id = make_fifo(database)
    running, paused = submit_rigid(database, cluster_id), submit_rigid(database, cluster_id)
    cancelled = submit_rigid(database, cluster_id)
    with database.session_scope() as session:
        for job_id, field in ((paused, "pause_requested"), (cancelled, "cancel_requested")):
            row = session.get_one(Job, job_id)
            setattr(row, field, True)
            session.add(row)

    assert reading_of(database, cluster_id).present().job_ids == (running,)


def test_a_cluster_without_nodes_has_no_present(database: Database) -> None:
    with database.session_scope() as session:
        bare = Cluster(name="bare", policy="fifo", placer="packed-sticky", round_seconds=60.0)
        session.add(bare)
        session.flush()
        assert read(session, bare) is None


# ---- after rounds


def test_a_forecast_is_due_after_a_round_and_kept_for_every_job(database: Database) -> None:
    cluster_id = make_fifo(database)
    assert work.due_clusters(database) == []
    first = submit_rigid(database, cluster_id)
    second = submit_rigid(database, cluster_id, submitted_seconds=1.0)
    step_at(database, cluster_id, 30.0)
    assert work.due_clusters(database) == [work.Due(cluster_id, of_all=True)]

    found = work.work_out(database, cluster_id)

    assert found is not None
    assert len(found.draws) >= LEAST_DRAWS
    rows, row = forecasts_of(database), row_of(database, cluster_id)
    assert rows.keys() == {first, second}
    assert rows[first].holds_gpus
    late = rows[second]
    assert late.start_p50 is not None
    assert late.end_p50 is not None
    assert late.end_p90 is not None
    assert late.made_seconds < late.start_p50 < late.end_p50 <= late.end_p90
    assert late.spans[0][1:] == ["a100", 8]
    assert (row.state, row.round_number) == (OperationState.SUCCEEDED, 1)
    assert work.due_clusters(database) == []


def test_a_cluster_of_which_nobody_reads_forecasts_is_not_forecast(database: Database) -> None:
    cluster_id = one_runs(database)
    set_read_seconds_ago(database, cluster_id, INTEREST_SECONDS + 1.0)
    assert work.due_clusters(database) == []
    assert work.work_out_if_due(database, cluster_id) is None
    assert forecasts_of(database) == {}

    set_read_seconds_ago(database, cluster_id, INTEREST_SECONDS - 60.0)
    assert work.due_clusters(database) == [work.Due(cluster_id, of_all=True)]


def test_a_start_is_promised_as_late_as_rounds_come(database: Database) -> None:
    cluster_id = make_fifo(database)
    submit_rigid(database, cluster_id, gpus=2, work_scale=50.0)
    step_at(database, cluster_id, 10.0, 75.0, 140.0, 190.0, 900.0)  # the service was away
    waits = submit_rigid(database, cluster_id, gpus=2, submitted_seconds=900.0)

    delays = sorted(reading_of(database, cluster_id).unknown.round_delays)
    assert delays == pytest.approx([10.0, 15.0, 20.0])
    work.work_out(database, cluster_id)

    (promise,) = (one for one in promises_of(database) if one.job_id == waits)
    assert promise.start_p90 == pytest.approx(960.0 + 20.0)


def test_promises_are_made_at_submission_and_once_an_hour(database: Database) -> None:
    cluster_id = make_fifo(database)
    submit_rigid(database, cluster_id, work_scale=50.0)
    for at in (30.0, 90.0, 3610.0, 3670.0):
        step_at(database, cluster_id, at)
        work.work_out(database, cluster_id)

    found = promises_of(database)

    assert [one.kind for one in found] == [PromiseKind.SUBMISSION, PromiseKind.HOURLY]
    assert [round(one.made_seconds) for one in found] == [30, 3610]


def test_how_jobs_went_becomes_the_pace_of_those_to_come(database: Database) -> None:
    cluster_id = make_fifo(database)
    first = submit_rigid(database, cluster_id)
    at = 30.0
    step_at(database, cluster_id, at)
    while job(database, first).finished_seconds is None:
        at += 60.0
        step_at(database, cluster_id, at)

    with database.session_scope() as session:
        session.get_one(Job, first).restarts = 3
    (ended,) = reading_of(database, cluster_id).unknown.history.ended

    assert ended.restarts == 3
    row, slowdown = job(database, first), load_catalog()["cifar10"].slowdown
    assert ended.pace == pytest.approx(slowdown, rel=0.25)  # its gradients were measured seldom
    life = reading_of(database, cluster_id).unknown.history.lives[row.owner_id, ("", "cifar10")]
    assert set(life.samples) >= {"a100"}
    assert life.curves

    with database.session_scope() as session:
        own = {"cluster_id": cluster_id, "tenant_id": row.tenant_id, "model": row.model}
        session.add(ForgottenPast(**own, until_seconds=row.finished_seconds or 0.0))
    history = reading_of(database, cluster_id).unknown.history
    assert history.ended == []
    assert (row.owner_id, ("", "cifar10")) not in history.lives


def test_a_job_that_runs_has_its_pace_so_far(database: Database) -> None:
    cluster_id = make_fifo(database)
    running = submit_rigid(database, cluster_id, work_scale=50.0)
    for at in (30.0, 630.0, 1230.0):
        step_at(database, cluster_id, at)

    reading = reading_of(database, cluster_id)

    (stretch,) = reading.unknown.history.stretches[running]
    row, spec = job(database, running), reading.present().jobs[0].job.spec
    assert (stretch.gpu_type, stretch.gpu_count, stretch.batch_size) == ("a100", 8, 512)
    assert (stretch.begin, stretch.end) == (0.0, row.gained_samples)
    assert stretch.seconds == pytest.approx(1230.0 - 30.0 - spec.restart_seconds, abs=1.0)


def test_the_arrivals_of_the_last_day_are_read(database: Database) -> None:
    cluster_id = make_fifo(database)
    submit_rigid(database, cluster_id)
    submit_rigid(database, cluster_id, submitted_seconds=90_000.0)
    set_time(database, cluster_id, 100_000.0)
    reading = reading_of(database, cluster_id)

    with database.session_scope(writes=False) as session:
        history = unknown_of(
            session,
            session.get_one(Cluster, cluster_id),
            100_000.0,
            reading.specs,
            (),
            shape=reading.present().cluster,
            last_at=0.0,
        ).history

    assert [round(one.ago) for one in history.arrivals] == [10_000]
    assert history.stand_for == 1.0


def test_of_very_many_arrivals_some_stand_for_all(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that came at once are those of a day, however many they are."""
    monkeypatch.setattr(past, "MOST_ARRIVALS", 3)
    cluster_id = make_fifo(database)
    for _ in range(7):
        submit_rigid(database, cluster_id)
    set_time(database, cluster_id, 600.0)

    history = reading_of(database, cluster_id).unknown.history

    assert len(history.arrivals) == 2
    assert history.stand_for == 3.5


# ---- one worker at a time, and none that blocks


def test_two_workers_do_not_work_at_one_cluster(database: Database) -> None:
    cluster_id = one_runs(database)
    claim = work._claim(database, cluster_id)

    assert claim is not None
    assert work.work_out(database, cluster_id) is None


def test_what_a_killed_worker_had_begun_another_one_finishes(database: Database) -> None:
    cluster_id = one_runs(database)
    assert work._claim(database, cluster_id) is not None
    with database.session_scope() as session:
        row = session.get_one(ClusterForecast, cluster_id)
        row.heartbeat_at = utc_now() - timedelta(seconds=60)
        session.add(row)

    assert work.work_out(database, cluster_id) is not None
    assert row_of(database, cluster_id).state == OperationState.SUCCEEDED


class ToldTurns(Turns):
    """Turns that tell when somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.somebody_waits = threading.Event()

    def wait(self) -> None:
        self.somebody_waits.set()
        super().wait()


def test_a_forecast_stands_still_during_a_question_and_goes_on_from_there(
    database: Database,
) -> None:
    cluster_id = one_runs(database)
    turns = ToldTurns()
    worker = threading.Thread(
        target=work.work_out, args=(database, cluster_id), kwargs={"turns": turns}
    )

    with turns.question():
        worker.start()
        assert turns.somebody_waits.wait(60)
        what_if.answer(database, forecast_id := ask(database, cluster_id, changes=MORE_NODES))
        assert answered(database, forecast_id)[1] is not None
        assert row_of(database, cluster_id).state == OperationState.RUNNING
        assert forecasts_of(database) == {}
    worker.join(60)

    assert row_of(database, cluster_id).state == OperationState.SUCCEEDED
    assert row_of(database, cluster_id).draws >= LEAST_DRAWS
    assert len(promises_of(database)) == 1


def test_forecasts_take_turns_in_the_order_in_which_they_came() -> None:
    turns, order, came = Turns(turn_seconds=0.0), list[str](), threading.Barrier(2)

    def work_on(name: str) -> None:
        with turns.line():
            if name == "first":
                came.wait(60)
            for _ in range(3):
                order.append(name)
                turns.wait()

    threads = [threading.Thread(target=work_on, args=(name,)) for name in ("first", "second")]
    threads[0].start()
    threads[1].start()
    end = time.monotonic() + 60
    while len(turns._line) < 2:
        assert time.monotonic() < end, "the second forecast never joined the line"
        time.sleep(0.01)
    came.wait(60)
    for thread in threads:
        thread.join(60)

    assert order == ["first", "second"] * 3


def test_a_long_forecast_of_one_cluster_does_not_keep_another_one_waiting(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = one_runs(database), one_runs(database, name="small")
    worked = work.worked_out

    def long(reading: Reading, present: Present, look: Callable[[], object]) -> Forecast:
        if reading.snapshot.cluster.id == large:
            while row_of(database, small).state != OperationState.SUCCEEDED:
                look()  # out of time in the end
        return worked(reading, present, look)

    monkeypatch.setattr(work, "worked_out", long)
    monkeypatch.setattr(work, "lower_priority", lambda: None)
    monkeypatch.setattr(TURNS, "_turn_seconds", 0.05)
    with database.session_scope() as session:
        session.add(ClusterForecast(cluster_id=small))

    first = work.begin(database, large)
    work.begin(database, small).join(300)
    assert row_of(database, small).state == OperationState.SUCCEEDED
    first.join(300)
    assert row_of(database, large).state == OperationState.SUCCEEDED


def test_a_forecast_after_a_round_is_below_the_priority_of_its_process(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = one_runs(database)
    found: list[int] = []
    worked = work.worked_out

    def noted(*arguments: Any) -> Forecast:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return worked(*arguments)

    monkeypatch.setattr(work, "worked_out", noted)
    mine = os.getpriority(os.PRIO_PROCESS, 0)

    work.begin(database, cluster_id).join(60)

    assert found == [max(LOW_PRIORITY, mine)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == mine
    assert forecasts_of(database)


def test_jobs_without_a_forecast_have_a_first_one_of_few_draws_that_promises_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = make_fifo(database)
    first = submit_rigid(database, cluster_id, work_scale=50.0)
    step_at(database, cluster_id, 30.0)

    def out_of_time(*_: object) -> Forecast:
        raise OutOfTime

    with monkeypatch.context() as patch:
        patch.setattr(work, "worked_out", out_of_time)
        assert work.work_out(database, cluster_id) is None
    assert {job_id: row.draws for job_id, row in forecasts_of(database).items()} == {
        first: FIRST_DRAWS
    }
    assert promises_of(database) == []

    step_at(database, cluster_id, 90.0)
    assert work.work_out(database, cluster_id) is not None
    assert forecasts_of(database)[first].draws >= LEAST_DRAWS
    second = submit_rigid(database, cluster_id, submitted_seconds=100.0)
    step_at(database, cluster_id, 150.0)
    with monkeypatch.context() as patch:
        patch.setattr(work, "worked_out", out_of_time)
        work.work_out(database, cluster_id)
    rows = forecasts_of(database)
    assert rows[first].draws >= LEAST_DRAWS
    assert rows[second].draws == FIRST_DRAWS

    for at in (210.0, 4000.0):  # one of few draws is renewed each time, a whole one once it is old
        step_at(database, cluster_id, at)
        with monkeypatch.context() as patch:
            patch.setattr(work, "worked_out", out_of_time)
            work.work_out(database, cluster_id)
        rows = forecasts_of(database)
        assert rows[second].made_seconds == pytest.approx(at)
        assert (rows[first].draws >= LEAST_DRAWS) == (at < 3600.0)
    assert rows[first].made_seconds == pytest.approx(4000.0)


def test_a_job_that_comes_while_forecasts_rest_has_a_first_one_soon(database: Database) -> None:
    cluster_id = make_fifo(database)
    first = submit_rigid(database, cluster_id, work_scale=50.0)
    step_at(database, cluster_id, 30.0)
    work.work_out(database, cluster_id)
    with database.session_scope() as session:
        session.get_one(ClusterForecast, cluster_id).compute_seconds = 100.0
    step_at(database, cluster_id, 90.0)
    assert work.due_clusters(database) == []
    made = forecasts_of(database)[first]

    second = submit_rigid(database, cluster_id, submitted_seconds=80.0)
    with database.session_scope() as session:
        session.get_one(ClusterForecast, cluster_id).first_seconds = 100.0
    assert work.due_clusters(database) == []
    with database.session_scope() as session:
        session.get_one(ClusterForecast, cluster_id).first_seconds = 0.0
    assert work.due_clusters(database) == [work.Due(cluster_id, of_all=False)]
    assert work.work_out_if_due(database, cluster_id) is None

    rows, row = forecasts_of(database), row_of(database, cluster_id)
    assert rows[second].draws == 1
    assert rows[first].made_seconds == made.made_seconds
    assert {one.job_id for one in promises_of(database)} == {first}
    assert (row.round_number, row.compute_seconds) == (1, 100.0)
    assert row.first_seconds > 0
    assert work.due_clusters(database) == []


def test_a_first_guess_of_one_draw_is_kept_before_the_other_draws_are_played(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = make_fifo(database)
    job_id = submit_rigid(database, cluster_id, work_scale=50.0)
    step_at(database, cluster_id, 30.0)
    kept: list[int] = []
    keep_first = first_forecasts.keep_first

    def noted(session: Session, *arguments: Any, **more: Any) -> None:
        keep_first(session, *arguments, **more)
        kept.append(session.get_one(JobForecastRow, job_id, populate_existing=True).draws)

    monkeypatch.setattr(first_forecasts, "keep_first", noted)
    work.work_out(database, cluster_id)

    assert kept == [1, FIRST_DRAWS]
    assert forecasts_of(database)[job_id].draws >= LEAST_DRAWS


def test_a_job_that_comes_during_a_forecast_has_a_guess_between_two_rounds_of_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = make_fifo(database)
    first = submit_rigid(database, cluster_id, work_scale=50.0)
    step_at(database, cluster_id, 30.0)
    monkeypatch.setattr(first_forecasts, "LOOK_SECONDS", 0.0)
    meanwhile: list[JobForecastRow | None] = []
    worked = work.worked_out

    def with_a_newcomer(reading: Reading, present: Present, look: Callable[[], object]) -> Forecast:
        set_time(database, cluster_id, 40.0)
        second = submit_rigid(database, cluster_id, submitted_seconds=40.0)
        look()
        meanwhile.append(forecasts_of(database).get(second))
        return worked(reading, present, look)

    monkeypatch.setattr(work, "worked_out", with_a_newcomer)
    found = work.work_out(database, cluster_id)

    (guess,) = meanwhile
    assert guess is not None
    assert (guess.draws, guess.start_p50 is not None) == (1, True)
    assert found is not None
    assert found.jobs.keys() == {first}
    rows = forecasts_of(database)
    assert rows[guess.job_id].draws == 1  # the forecast of the others leaves it
    assert rows[first].draws >= LEAST_DRAWS
    assert work.due_clusters(database) == []


def test_who_comes_back_after_hours_has_new_guesses_first(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = make_fifo(database)
    job_id = submit_rigid(database, cluster_id, work_scale=50.0)
    step_at(database, cluster_id, 30.0)
    work.work_out(database, cluster_id)
    step_at(database, cluster_id, 7230.0)

    def out_of_time(*_: object) -> Forecast:
        row = forecasts_of(database)[job_id]
        assert (row.draws, row.made_seconds) == (FIRST_DRAWS, pytest.approx(7230.0))
        raise OutOfTime

    monkeypatch.setattr(work, "worked_out", out_of_time)
    work.work_out(database, cluster_id)

    assert forecasts_of(database)[job_id].made_seconds == pytest.approx(7230.0)


def test_a_large_cluster_has_a_first_forecast_of_as_many_draws_as_there_is_time_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = one_runs(database)
    monkeypatch.setattr(first_forecasts, "RUN_SECONDS", 0.0)

    reading = reading_of(database, cluster_id)
    found = first_forecasts.first_forecast(reading, reading.present(), lambda: None)

    assert len(found.draws) == 1
    assert found.jobs.keys() == set(reading.present().job_ids)


def test_a_forecast_that_takes_too_long_says_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = one_runs(database)
    monkeypatch.setattr(work, "MOST_SECONDS", 0.0)

    assert work.work_out(database, cluster_id) is None
    row = row_of(database, cluster_id)
    assert row.state == OperationState.FAILED
    assert row.detail == "To play its 1 jobs took longer than 0 CPU s."


def test_a_second_message_of_the_same_round_finds_nothing_to_do(database: Database) -> None:
    cluster_id = one_runs(database)

    assert work.work_out_if_due(database, cluster_id) is not None
    first = row_of(database, cluster_id).finished_at
    assert work.work_out_if_due(database, cluster_id) is None
    assert row_of(database, cluster_id).finished_at == first


def test_promises_go_with_the_events_of_a_job(database: Database) -> None:
    cluster_id = make_fifo(database)
    ended = submit_rigid(database, cluster_id)
    step_at(database, cluster_id, 30.0)
    work.work_out(database, cluster_id)
    with database.session_scope() as session:
        row = session.get_one(Job, ended)
        row.state, row.finished_seconds = JobState.SUCCEEDED.value, 100.0
        session.add(row)
    settings = Settings(_env_file=None, keep_events_days=2)

    set_time(database, cluster_id, 86_400.0)
    forget_jobs(database, settings)
    assert len(promises_of(database)) == 1
    set_time(database, cluster_id, 3 * 86_400.0)
    forget_jobs(database, settings)
    assert promises_of(database) == []


def test_it_rests_three_times_as_long_as_it_worked(database: Database) -> None:
    cluster_id = make_fifo(database)
    submit_rigid(database, cluster_id, work_scale=50.0)
    step_at(database, cluster_id, 30.0)
    work.work_out(database, cluster_id)
    step_at(database, cluster_id, 90.0)
    with database.session_scope() as session:
        row = session.get_one(ClusterForecast, cluster_id)
        row.compute_seconds = 100.0
        session.add(row)
    assert work.due_clusters(database) == []

    with database.session_scope() as session:
        row = session.get_one(ClusterForecast, cluster_id)
        row.finished_at = utc_now() - timedelta(seconds=301)
        session.add(row)
    assert work.due_clusters(database) == [work.Due(cluster_id, of_all=True)]


def test_a_policy_that_fails_costs_the_forecast_and_no_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id = one_runs(database)

    def broken(*_: object, **__: object) -> None:
        raise ValueError("the policy is broken")

    monkeypatch.setattr(work, "forecast", broken)

    assert work.work_out(database, cluster_id) is None
    row = row_of(database, cluster_id)
    assert (row.state, row.detail) == (OperationState.FAILED, "ValueError")
    assert work.due_clusters(database) == []  # until the next round
