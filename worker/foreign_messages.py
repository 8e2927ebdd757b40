"""Drops messages that nobody of Maat has sent: each costs itself alone, and no worker ends.

What a worker must do stands in the database; who can write to the broker can only waste its time.
"""

from __future__ import annotations

import logging
from typing import Any

from kombu.transport import virtual

log = logging.getLogger(__name__)


class ChecksMessages(virtual.Transport):
    """A transport that hands on what can be read as a message of kombu."""

    def _deliver(self, message: Any, queue: str) -> None:
        if is_readable(message, self.channels[0] if self.channels else None):
            super()._deliver(message, queue)  # type: ignore[no-untyped-call]
        else:
            dropped(queue)


def is_readable(message: Any, channel: Any) -> bool:
    """Return whether kombu can read a message: its envelope, and the encoding of its body."""
    if not isinstance(message, dict) or not isinstance(message.get("headers"), dict):
        return False
    try:
        properties = virtual.Message(message, channel=channel).properties  # type: ignore[no-untyped-call]
    except Exception:  # whatever a stranger's message makes it raise
        return False
    return isinstance(properties.get("delivery_tag"), str) and isinstance(
        properties.get("delivery_info"), dict
    )


def dropped(queue: str) -> None:
    log.warning("A message of queue %s that cannot be read was dropped.", queue)
