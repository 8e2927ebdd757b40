"""Who sent some credentials, asked once for all that bear the same: open streams and refreshes.

Whoever revokes a token or ends a session is believed after KNOWN_SECONDS at the latest.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from fastapi import Request

from backend.accounts.credentials import digest_of_credentials
from backend.accounts.identity import Principal, check_change, sender_of

KNOWN_SECONDS = 1.0


@dataclass(frozen=True)
class _Asked:
    """A question who sent some credentials, under way or answered."""

    answer: asyncio.Task[Principal]
    at: float = field(default_factory=time.monotonic)

    @property
    def counts(self) -> bool:
        """Whether its answer is still one of now."""
        return not self.answer.done() or time.monotonic() - self.at < KNOWN_SECONDS


class Senders:
    """Looks up who asks, at most once in KNOWN_SECONDS for the same credentials."""

    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}

    async def now(self, request: Request) -> Principal:
        """Return who asks, as of at most KNOWN_SECONDS ago. Raises Unauthenticated, CsrfFailed."""
        self._asked = {key: asked for key, asked in self._asked.items() if asked.counts}
        key = digest_of_credentials(request)
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = _Asked(asyncio.create_task(sender_of(request)))
            asked.answer.add_done_callback(_note_failure)
        found = await asyncio.shield(asked.answer)
        check_change(request, found)
        return found


def _note_failure(answer: asyncio.Task[Principal]) -> None:
    """Look at how it ended: all who asked may have gone, and then nobody else does."""
    if not answer.cancelled():
        answer.exception()
