"""The embedded broker: a kombu transport that keeps each message in a file.

It fills in the methods that kombu leaves to every transport (`AbstractChannel` in
`kombu.transport.virtual`). A message appears whole or not at all, and one
consumer gets it. The database, not the broker, holds the truth.
"""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import virtual
from kombu.utils import json

from worker.foreign_messages import ChecksMessages, dropped


class Channel(virtual.Channel):
    """A channel whose messages lie in `folder`, an option of the transport."""

    from_transport_options = (*virtual.Channel.from_transport_options, "folder")  # type: ignore[assignment]
    folder: str

    def _put(self, queue: str, message: object, **_: object) -> None:
        """Write a message to another file and rename it, so that no consumer sees half of it."""
        name = f"{time.time_ns():020d}_{uuid.uuid4()}.{queue}.msg"
        aside = Path(self.folder, f"{name}.part")
        try:
            aside.write_text(json.dumps(message))  # type: ignore[no-untyped-call]
            aside.replace(Path(self.folder, name))
        finally:
            aside.unlink(missing_ok=True)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """Return the oldest message, and delete it; raise Empty if there is none.

        Of several consumers that read a file, the one that deletes it has the message.
        """
        for name in self._names(queue):
            file = Path(self.folder, name)
            try:
                content = file.read_bytes()
                file.unlink()
            except FileNotFoundError:
                continue
            try:
                return json.loads(content)  # type: ignore[no-untyped-call]
            except ValueError:  # after a power failure a file may be empty
                dropped(queue)
        raise Empty

    def _size(self, queue: str) -> int:
        return len(self._names(queue))

    def _purge(self, queue: str) -> int:
        names = self._names(queue)
        for name in names:
            Path(self.folder, name).unlink(missing_ok=True)
        return len(names)

    def _names(self, queue: str) -> list[str]:
        """Return the files of a queue's messages, oldest first."""
        return sorted(
            name for name in os.listdir(self.folder) if name.partition(".")[2] == f"{queue}.msg"
        )


class Transport(ChecksMessages):
    """The transport of these channels; bindings of queues are not shared between processes."""

    Channel = Channel
    driver_type = driver_name = "filesystem"
