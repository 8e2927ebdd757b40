"""Sends work to the worker by task name; the service does not import the worker.

The worker defines what a task does; the truth is in the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from amqp.exceptions import ChannelError
from celery import Celery

from backend.settings import Settings

PLAY_NEXT_RUN = "maat.play_next_run"
REPRODUCE = "maat.reproduce"
WORK_OUT_FAIRNESS = "maat.work_out_fairness"
DELIVER_REPORT = "maat.deliver_report"
PREVIEW_ROUND = "maat.preview_round"
FORECAST_CLUSTER = "maat.forecast_cluster"
ANSWER_WHAT_IF = "maat.answer_what_if"
ROUNDS_QUEUE = "rounds"
SIMULATIONS_QUEUE = "simulations"
FORECASTS_QUEUE = "forecasts"
QUEUES = (ROUNDS_QUEUE, SIMULATIONS_QUEUE, FORECASTS_QUEUE)
QUEUE_OF = {
    PREVIEW_ROUND: ROUNDS_QUEUE,  # somebody waits for it: no simulation goes first
    PLAY_NEXT_RUN: SIMULATIONS_QUEUE,  # whose it is, the worker finds in the rows
    REPRODUCE: SIMULATIONS_QUEUE,
    WORK_OUT_FAIRNESS: SIMULATIONS_QUEUE,
    DELIVER_REPORT: SIMULATIONS_QUEUE,
    FORECAST_CLUSTER: FORECASTS_QUEUE,
    ANSWER_WHAT_IF: FORECASTS_QUEUE,
}
"""The queue of each task that is sent."""
_PATIENCE_SECONDS = 2.0

# The transports, by name like the tasks: they belong to the worker, and only a process that sends
# or receives loads them.
FILE_TRANSPORT = "worker.file_broker:Transport"
_REDIS_TRANSPORT = "worker.redis_broker:Transport"


class Queue(Protocol):
    """Where tasks are sent. Call it only after the commit (database.after_commit)."""

    def send(self, task: str, *arguments: str) -> None: ...

    def waiting(self) -> Mapping[str, int]:
        """Return how many messages wait in each queue.

        Raises kombu's OperationalError or OSError if the broker does not answer.
        """
        ...


class CeleryQueue:
    """Sends tasks to the broker of the settings."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, task: str, *arguments: str) -> None:
        self._app.send_task(
            task, args=arguments, queue=QUEUE_OF[task], ignore_result=True, retry=False
        )

    def waiting(self) -> Mapping[str, int]:
        with self._app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=_PATIENCE_SECONDS)
            channel = connection.default_channel
            return {name: _messages(channel, name) for name in QUEUES}


def _messages(channel: Any, queue: str) -> int:
    try:
        return int(channel.queue_declare(queue, passive=True).message_count)
    except ChannelError:  # Redis forgets a queue that is empty
        return 0


def celery_queue(settings: Settings) -> CeleryQueue:
    app = Celery("maat", broker=settings.celery_broker_url)
    app.conf.update(broker_configuration(settings))
    return CeleryQueue(app)


def broker_configuration(settings: Settings) -> dict[str, Any]:
    """Return what sender and worker must agree on.

    Both use the same folder if the broker is the embedded one.
    """
    common: dict[str, Any] = {
        "task_serializer": "json",
        "accept_content": ["json"],
        "broker_connection_timeout": 5,
    }
    if settings.celery_broker_url.startswith(("redis://", "rediss://")):
        return common | {"broker_transport": _REDIS_TRANSPORT}
    if not settings.celery_broker_url.startswith("filesystem"):
        return common
    messages = settings.broker_path / "messages"
    messages.mkdir(parents=True, exist_ok=True)
    options = {"folder": str(messages), "polling_interval": 0.05}
    return common | {"broker_transport": FILE_TRANSPORT, "broker_transport_options": options}
