"""The embedded broker: kombu's file-system transport, made atomic.

Kombu creates a message file first and fills it then, so a consumer that reads it in between gets
nothing and the worker ends. Here a message is written to another file and renamed, and one lock
guards the binding files. The database, not the broker, holds the truth.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils import json

_binding = threading.Lock()


class Channel(filesystem.Channel):
    """A channel whose files are never visible half-written."""

    def _put(self, queue: str, payload: object, **_: object) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        name = f"{time.time_ns():020d}_{uuid.uuid4()}.{queue}.msg"
        aside = folder / f"{name}.part"
        aside.write_text(json.dumps(payload))  # type: ignore[no-untyped-call]
        aside.replace(folder / name)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder = Path(self.data_folder_in)
        wanted = f"{queue}.msg"
        for name in sorted(name for name in os.listdir(folder) if name.partition(".")[2] == wanted):
            taken = folder / f"{name}.taken"
            try:
                (folder / name).rename(taken)
            except FileNotFoundError:  # another worker was faster
                continue
            payload = taken.read_text()
            taken.unlink()
            return json.loads(payload)  # type: ignore[no-untyped-call]
        raise Empty

    def queue_bind(
        self,
        queue: str,
        exchange: str = "",
        routing_key: str = "",
        arguments: object = None,
        **more: Any,
    ) -> None:
        """Bind a queue, and write the binding again.

        Kombu records a binding for the whole process before it writes it, and never writes it
        again: a thread that reads the record earlier, or uses another folder, would find no queue
        and drop its message.
        """
        with _binding:
            super().queue_bind(queue, exchange, routing_key, arguments, **more)  # type: ignore[no-untyped-call]
            named = exchange or "amq.direct"
            kind = self.typeof(named)  # type: ignore[no-untyped-call]
            self._queue_bind(named, *kind.prepare_bind(queue, named, routing_key, arguments))

    def get_table(self, exchange: str) -> Any:
        with self._bindings():
            return super().get_table(exchange)  # type: ignore[no-untyped-call]

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        with self._bindings():
            super()._queue_bind(exchange, routing_key, pattern, queue)  # type: ignore[no-untyped-call]

    @contextmanager
    def _bindings(self) -> Iterator[None]:
        folder = Path(self.control_folder)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "bindings.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Transport(filesystem.Transport):
    Channel = Channel
