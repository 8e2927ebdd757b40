"""The Celery application: broker, beat and queues, from the settings.

    celery -A worker.app worker -Q rounds           the rounds
    celery -A worker.app worker -Q simulations      the policy laboratory
    celery -A worker.app worker -Q forecasts        forecasts: one process, so one core at most
    celery -A worker.app beat                       sends the periodic tasks: run exactly one

The tasks are elsewhere, and only a worker loads them. There is no result backend: the database
holds what a task did. A message may be lost or repeated; tasks allow for both.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.platforms import set_pdeathsig
from celery.signals import after_setup_logger, beat_embedded_init, celeryd_init, worker_init

from backend.logs import formatter
from backend.policies.own import admit_own_policies
from backend.queue import (
    FORECASTS_QUEUE,
    QUEUE_OF,
    ROUNDS_QUEUE,
    SIMULATIONS_QUEUE,
    broker_configuration,
)
from backend.settings import Settings, get_settings
from maat.garbage import leave_out_what_is_loaded
from worker.beat import every
from worker.own_policies import run_own_policies_apart

TICK_SECONDS = 1.0
DISPATCH_SECONDS = 3.0
# Hints that runs wait: the beat repeats them, so that old ones need not hold up other tasks.
HINT_SECONDS, MOST_HINTS = 15.0, 16
NICENESS = {SIMULATIONS_QUEUE: 10, FORECASTS_QUEUE: 5}
"""As of `nice`: forecasts after rounds lower theirs further, questions do not."""
HOUSEKEEPING_SECONDS = 30.0
DEMO_SECONDS = 4.0
# A message expires by the clock of the machine that reads it, which may differ this much from the
# clock of the one that sent it. One that comes late finds nothing to do.
EXPIRES_SECONDS = 60.0


def create_app(settings: Settings) -> Celery:
    embedded = settings.celery_broker_url.startswith("filesystem")
    app = Celery("maat", broker=settings.celery_broker_url)
    app.conf.update(broker_configuration(settings))
    app.conf.update(
        task_default_queue=ROUNDS_QUEUE,
        task_routes={task: {"queue": queue} for task, queue in QUEUE_OF.items()},
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=True,
        worker_redirect_stdouts=False,
        # Health checks use remote control; the embedded worker is watched by its parent.
        worker_enable_remote_control=not embedded,
        worker_soft_shutdown_timeout=2.0,
        broker_connection_retry_on_startup=True,
        timezone="UTC",
        beat_scheduler="worker.beat:BeatScheduler",
        beat_schedule={
            # A message that was not served in time is dropped: later ones ask the same.
            "rounds": {
                "task": "maat.tick",
                "schedule": every(TICK_SECONDS),
                "options": {"expires": EXPIRES_SECONDS},
            },
            "operations": {
                "task": "maat.dispatch",
                "schedule": every(DISPATCH_SECONDS),
                "options": {"expires": EXPIRES_SECONDS},
            },
            "housekeeping": {
                "task": "maat.housekeeping",
                "schedule": every(HOUSEKEEPING_SECONDS),
                "options": {"expires": EXPIRES_SECONDS},
            },
        },
    )
    if settings.demo_jobs:
        app.conf.beat_schedule["demo"] = {
            "task": "maat.demo",
            "schedule": every(DEMO_SECONDS),
            "options": {"expires": EXPIRES_SECONDS},
        }
    return app


@after_setup_logger.connect  # type: ignore[untyped-decorator]
def _write_no_messages(logger: logging.Logger, **_: object) -> None:
    """Log no error messages: errors of simulations quote the traces that users sent."""
    for handler in logger.handlers:
        handler.setFormatter(formatter(get_settings().log_format))


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _load_what_works(**_: object) -> None:
    """Load the tasks and the sign of life: the beat, which names its tasks, needs neither."""
    from worker import tasks  # noqa: F401
    from worker.heartbeats import Heartbeat

    app.steps["worker"].add(Heartbeat)


@worker_init.connect  # type: ignore[untyped-decorator]
def _leave_out_what_is_loaded(**_: object) -> None:
    """The tasks are imported by now, and the pool has not forked yet."""
    leave_out_what_is_loaded()


@worker_init.connect  # type: ignore[untyped-decorator]
def _give_way_to_rounds(sender: Any, **_: object) -> None:
    """Have less of a busy machine than rounds, pages and commands, if it makes no rounds itself."""
    queues = sender.app.amqp.queues.consume_from
    os.nice(min((NICENESS.get(queue, 0) for queue in queues), default=0))


@worker_init.connect  # type: ignore[untyped-decorator]
def _know_own_policies(**_: object) -> None:
    """The pool has not forked yet: its processes inherit what is imported here."""
    run_own_policies_apart(get_settings())
    admit_own_policies(get_settings())


@beat_embedded_init.connect  # type: ignore[untyped-decorator]
def _end_with_worker(**_: object) -> None:
    """End the beat with its worker; otherwise two beats would run after a restart."""
    set_pdeathsig("SIGKILL")


app = create_app(get_settings())
