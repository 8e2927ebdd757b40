"""Redis as a broker: kombu's transport, which a message that is no JSON does not end."""

from __future__ import annotations

from queue import Empty
from typing import Any

from kombu.transport import redis

from worker.foreign_messages import ChecksMessages, dropped


class Channel(redis.Channel):
    """A channel of Redis. Redis has given a message up before kombu reads it."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except ValueError as unreadable:
            dropped("redis")
            raise Empty from unreadable

    def _get(self, queue: str) -> Any:  # type: ignore[override]
        while True:
            try:
                return super()._get(queue)  # type: ignore[no-untyped-call]
            except ValueError:
                dropped(queue)


class Transport(ChecksMessages, redis.Transport):
    """The transport of these channels."""

    Channel = Channel
