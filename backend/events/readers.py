"""Who reads open streams: asked once for all streams of the same credentials."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from fastapi import Request

from backend.accounts.credentials import digest_of_credentials
from backend.accounts.identity import Principal, identified

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


class Readers:
    """Looks up who reads a stream, at most once in KNOWN_SECONDS for each kind of credentials."""

    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}

    async def now(self, request: Request) -> Principal:
        """Return who asks, as of at most KNOWN_SECONDS ago. Raises what `identified` raises."""
        self._asked = {key: asked for key, asked in self._asked.items() if asked.counts}
        key = digest_of_credentials(request)
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = _Asked(asyncio.create_task(identified(request)))
            asked.answer.add_done_callback(_note_failure)
        return await asyncio.shield(asked.answer)


def _note_failure(answer: asyncio.Task[Principal]) -> None:
    """Look at how it ended: all who asked may have gone, and then nobody else does."""
    if not answer.cancelled():
        answer.exception()
