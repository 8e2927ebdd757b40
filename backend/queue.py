"""Sends work to the worker by task name; the service does not import the worker.

The worker defines what a task does; the truth is in the database.
"""

from __future__ import annotations

from typing import Any, Protocol

from celery import Celery

from backend.settings import Settings

RUN_SIMULATION = "maat.run_simulation"
RUN_SWEEP_POINT = "maat.run_sweep_point"
SIMULATIONS_QUEUE = "simulations"

# The embedded broker's transport, by name like the tasks: it belongs to the worker, and only a
# process that sends or receives loads it.
FILE_TRANSPORT = "worker.file_broker:Transport"


class Queue(Protocol):
    """Where tasks are sent. Call it only after the commit (database.after_commit)."""

    def send(self, task: str, *arguments: str) -> None: ...


class CeleryQueue:
    """Sends tasks to the broker of the settings."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, task: str, *arguments: str) -> None:
        self._app.send_task(
            task, args=arguments, queue=SIMULATIONS_QUEUE, ignore_result=True, retry=False
        )


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
    if not settings.celery_broker_url.startswith("filesystem"):
        return common
    messages = settings.broker_path / "messages"
    messages.mkdir(parents=True, exist_ok=True)
    options = {"folder": str(messages), "polling_interval": 0.05}
    return common | {"broker_transport": FILE_TRANSPORT, "broker_transport_options": options}
