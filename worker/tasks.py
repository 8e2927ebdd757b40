"""The tasks: a few lines each around tested functions.

They take ids, and may be repeated, late or lost.
"""

from __future__ import annotations

from functools import lru_cache, partial

from backend.database import Database
from backend.queue import (
    ANSWER_WHAT_IF,
    DELIVER_REPORT,
    FORECAST_CLUSTER,
    PLAY_NEXT_RUN,
    PREVIEW_ROUND,
    REPRODUCE,
    WORK_OUT_FAIRNESS,
    CeleryQueue,
)
from backend.settings import get_settings
from worker import demo, housekeeping, retention
from worker.app import (
    DISPATCH_SECONDS,
    EXPIRES_SECONDS,
    HINT_SECONDS,
    MOST_HINTS,
    TICK_SECONDS,
    app,
)
from worker.fairness import days
from worker.fairness import requests as fairness_requests
from worker.fairness import work as fairness
from worker.forecasts import what_if
from worker.forecasts import work as forecasts
from worker.laboratory.playing import Laboratory, waiting_runs
from worker.live import commands as live_commands
from worker.live import step as live
from worker.papers import pruning, reproductions
from worker.papers import runs as paper_runs
from worker.rehearsals import previews
from worker.reports import due as reports
from worker.rounds import marginal_values
from worker.simulations import runs as simulations
from worker.simulations import sweeps
from worker.training.awaited import watch
from worker.webhooks import keeping as webhook_keeping
from worker.webhooks.courier import Courier


@lru_cache(maxsize=1)
def database() -> Database:
    """Return this process's connections, which are opened after the fork."""
    return Database.of(get_settings())


@lru_cache(maxsize=1)
def courier() -> Courier:
    return Courier(database(), get_settings())


@lru_cache(maxsize=1)
def laboratory() -> Laboratory:
    return Laboratory(database(), get_settings())


@app.task(name="maat.tick")  # type: ignore[untyped-decorator]
def tick() -> None:
    """Request the round of every cluster that is due, a look at what runs, and messages."""
    allowed = get_settings().allow_commands
    for cluster_id in live.due_clusters(database(), allow_commands=allowed):
        step_cluster.apply_async((cluster_id,), expires=EXPIRES_SECONDS)
    for cluster_id in live_commands.clusters_to_look_at(database()):
        _look_at(cluster_id)
    for delivery_id in reports.due_deliveries(database()):
        deliver_report.delay(delivery_id)
    courier().call()


@app.task(name="maat.step_cluster")  # type: ignore[untyped-decorator]
def step_cluster(cluster_id: str) -> None:
    """Make a round; have what it wants carried out at once."""
    number = live.step_cluster(database(), cluster_id)
    if number is not None and live_commands.runs_commands(database(), cluster_id):
        _look_at(cluster_id)


@app.task(name="maat.reconcile_cluster")  # type: ignore[untyped-decorator]
def reconcile_cluster(cluster_id: str) -> None:
    """Bring the processes of a cluster to what its rounds want of them.

    If some of them end before the next tick, look again then; if there was no time for all, go on
    behind what else waits.
    """
    looked = live_commands.reconcile_cluster(database(), cluster_id, get_settings())
    if looked.has_more:
        _look_at(cluster_id)
    elif looked.awaited is not None:
        watch(looked.awaited, seconds=TICK_SECONDS, then=partial(_look_at, cluster_id))


def _look_at(cluster_id: str) -> None:
    reconcile_cluster.apply_async((cluster_id,), expires=EXPIRES_SECONDS)


@app.task(name="maat.dispatch")  # type: ignore[untyped-decorator]
def dispatch() -> None:
    """Send what has no worker: runs of the laboratory, reports, previews, questions, forecasts."""
    simulations.end_cancelled(database())
    fairness_requests.settle(database())
    if fairness.is_waiting(database()) or days.are_due(database()):
        work_out_fairness.apply_async(expires=DISPATCH_SECONDS)
    sweeps.settle(database())
    sweeps.queue_wanted_again(database())
    reproductions.end_cancelled(database())
    for reproduction_id in reproductions.waiting_reproductions(database()):
        reproduce.delay(reproduction_id)
    paper_runs.queue_wanted_again(database())
    for _ in range(min(waiting_runs(database()), MOST_HINTS)):
        play_next_run.apply_async(expires=HINT_SECONDS)
    for delivery_id in reports.waiting_deliveries(database()):
        deliver_report.delay(delivery_id)
    for preview_id in previews.waiting_previews(database()):
        preview_round.delay(preview_id)
    for forecast_id in what_if.waiting_questions(database()):
        answer_what_if.delay(forecast_id)
    for due in forecasts.due_clusters(database()):
        if not demo.is_in_its_history(database(), due.cluster_id):
            forecast_cluster.apply_async((due.cluster_id,), expires=DISPATCH_SECONDS)


@app.task(name=PREVIEW_ROUND)  # type: ignore[untyped-decorator]
def preview_round(preview_id: str) -> None:
    """Play the next round twice, for somebody who waits: beside the rounds, in another process."""
    previews.begin(database(), preview_id)


@app.task(name=PLAY_NEXT_RUN)  # type: ignore[untyped-decorator]
def play_next_run() -> None:
    """Play a run of the tenant whose turn it is; then there may be another, behind other tasks."""
    if laboratory().play_next():
        play_next_run.apply_async(expires=HINT_SECONDS)


@app.task(name=REPRODUCE)  # type: ignore[untyped-decorator]
def reproduce(reproduction_id: str) -> None:
    """Open the items of a paper that are made again."""
    reproductions.reproduce(database(), get_settings(), reproduction_id)


@app.task(name=WORK_OUT_FAIRNESS)  # type: ignore[untyped-decorator]
def work_out_fairness() -> None:
    """Work out rho of some ended jobs. What is left, `dispatch` asks for again."""
    days.keep_days(database())
    fairness.work_out_for(database())


@app.task(name=DELIVER_REPORT)  # type: ignore[untyped-decorator]
def deliver_report(delivery_id: str) -> None:
    """Make and send a report by schedule: once, however often this is asked."""
    reports.deliver(database(), get_settings(), delivery_id)


@app.task(name=FORECAST_CLUSTER)  # type: ignore[untyped-decorator]
def forecast_cluster(cluster_id: str) -> None:
    """Forecast the jobs of a cluster after a round, beside questions, which go first."""
    forecasts.begin(database(), cluster_id)


@app.task(name=ANSWER_WHAT_IF)  # type: ignore[untyped-decorator]
def answer_what_if(_: str) -> None:
    """Answer a question: each message one, that of the tenant whose turn it is."""
    what_if.answer_next(database())


@app.task(name="maat.demo")  # type: ignore[untyped-decorator]
def live_on() -> None:
    demo.live_on(database(), CeleryQueue(app))


@app.task(name="maat.housekeeping")  # type: ignore[untyped-decorator]
def keep_house() -> None:
    marginal_values.sum_prices(database())  # of rounds that may be deleted next
    housekeeping.sum_days(database())
    housekeeping.sum_months(database())
    days.sum_ended(database())
    housekeeping.prune_rounds(database())
    retention.forget_jobs(database(), get_settings())
    housekeeping.prune_outbox(database())
    housekeeping.prune_idempotency_keys(database(), hours=get_settings().idempotency_keep_hours)
    housekeeping.prune_reports(database(), days=get_settings().keep_reports_days)
    pruning.prune_reproductions(database(), days=get_settings().keep_reproductions_days)
    housekeeping.prune_audit(database(), days=get_settings().keep_audit_days)
    webhook_keeping.give_up(database())
    webhook_keeping.prune(database(), days=get_settings().keep_deliveries_days)
    housekeeping.prune_previews(database())
    housekeeping.prune_laboratory_use(database())
    housekeeping.prune_sign_ins(database(), get_settings())
    housekeeping.prune_logs(database(), get_settings())
    housekeeping.fold_job_counts(database())
