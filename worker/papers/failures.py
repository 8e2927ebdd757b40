"""Why an item or a run was not made, as its reader is told."""

from __future__ import annotations

import logging

from sqlalchemy.exc import DBAPIError

from backend.database import is_disk_full
from backend.papers.data import PublishedData
from maat.scheduling.errors import MaatError

log = logging.getLogger(__name__)

FAULT = "A fault of Maat; the worker's log has the details."
NO_ROOM = (
    "The disk of Maat's database is full. "
    "Make room there, and ask again: what was computed before is kept."
)


def reason_of(error: Exception, published: PublishedData, *, of: str) -> str:
    """Return a sentence without paths. `of`: what failed, for the log, which has all of a fault."""
    if isinstance(error, MaatError):
        return published.without_path(str(error))
    if isinstance(error, DBAPIError) and is_disk_full(error.orig):
        return NO_ROOM
    log.error("%s failed", of, exc_info=error)
    return FAULT
