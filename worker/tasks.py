"""The tasks: a few lines each around tested functions.

They take ids, and may be repeated, late or lost.
"""

from __future__ import annotations

from functools import lru_cache

from backend.database import Database
from backend.queue import RUN_SIMULATION, RUN_SWEEP_POINT, CeleryQueue
from backend.settings import get_settings
from worker import demo, housekeeping, live, live_commands, simulations, sweeps
from worker.app import EXPIRES_SECONDS, TICK_SECONDS, app

MORE_LOOKS = 3
LOOK_SECONDS = TICK_SECONDS / (MORE_LOOKS + 1)


@lru_cache(maxsize=1)
def database() -> Database:
    """Return this process's connections, which are opened after the fork."""
    return Database.of(get_settings())


@app.task(name="maat.tick")  # type: ignore[untyped-decorator]
def tick() -> None:
    """Request the round of every cluster that is due, and a look at what runs."""
    allowed = get_settings().allow_commands
    for cluster_id in live.due_clusters(database(), allow_commands=allowed):
        step_cluster.apply_async((cluster_id,), expires=EXPIRES_SECONDS)
    for cluster_id in live_commands.clusters_to_look_at(database()):
        reconcile_cluster.apply_async((cluster_id,), expires=EXPIRES_SECONDS)


@app.task(name="maat.step_cluster")  # type: ignore[untyped-decorator]
def step_cluster(cluster_id: str) -> None:
    live.step_cluster(database(), cluster_id)


@app.task(name="maat.reconcile_cluster")  # type: ignore[untyped-decorator]
def reconcile_cluster(cluster_id: str, more_looks: int = MORE_LOOKS) -> None:
    """Bring the processes of a cluster to what its rounds want of them.

    While some are about to end, look a few times more before the next tick does.
    """
    look_again = live_commands.reconcile_cluster(database(), cluster_id, get_settings())
    if look_again and more_looks > 0:
        reconcile_cluster.apply_async(
            (cluster_id, more_looks - 1), countdown=LOOK_SECONDS, expires=EXPIRES_SECONDS
        )


@app.task(name="maat.dispatch")  # type: ignore[untyped-decorator]
def dispatch() -> None:
    """Send the simulations and the points of sweeps that have no worker."""
    for simulation_id, runs in simulations.waiting_simulations(database()):
        for _ in range(runs):
            run_simulation.delay(simulation_id)
    sweeps.settle(database())
    for key in sweeps.waiting_points(database()):
        run_sweep_point.delay(key)


@app.task(name=RUN_SIMULATION)  # type: ignore[untyped-decorator]
def run_simulation(simulation_id: str) -> None:
    """Run a simulation. One message per run occupies as many workers as there are."""
    simulations.run_simulation(database(), simulation_id)


@app.task(name=RUN_SWEEP_POINT)  # type: ignore[untyped-decorator]
def run_sweep_point(key: str) -> None:
    sweeps.run_point(database(), key)


@app.task(name="maat.demo")  # type: ignore[untyped-decorator]
def live_on() -> None:
    demo.live_on(database(), CeleryQueue(app))


@app.task(name="maat.housekeeping")  # type: ignore[untyped-decorator]
def keep_house() -> None:
    housekeeping.prune_rounds(database())
    housekeeping.prune_outbox(database())
    housekeeping.prune_idempotency_keys(database(), hours=get_settings().idempotency_keep_hours)
    housekeeping.prune_logs(database(), get_settings())
    housekeeping.fold_job_counts(database())
