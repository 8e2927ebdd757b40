"""Whether SQLite's file is whole: checked at the start, then again and again.

PostgreSQL checks what it reads by itself, where its checksums are on.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path

import sqlalchemy as sa

from backend.damage import DamageNote, sqlite_faults, sqlite_file
from backend.settings import Settings

_SHARE_OF_TIME = 0.001
_LEAST_SECONDS, _MOST_SECONDS = 60.0, 86_400.0
log = logging.getLogger(__name__)

REMEDY = (
    "`maat db check` lists the faults. Stop all processes of Maat, then restore the last good "
    "backup: maat db restore FILE --force. It keeps the damaged database beside the restored one."
)


class Integrity:
    """What is known of damage to the database; a check of all of it begins when one is due.

    A check takes at most a thousandth of the time, is never sooner than after a minute, and never
    later than after a day.
    """

    def __init__(self, settings: Settings) -> None:
        self._file = sqlite_file(sa.make_url(settings.sqlalchemy_url))
        self._lock = threading.Lock()
        self._due = 0.0

    def fault(self) -> str | None:
        """Return what is damaged, None if nothing is known to be. Waits for no check."""
        if self._file is None:
            return None
        self._check_if_due(self._file)
        return DamageNote(self._file).read()

    def _check_if_due(self, file: Path) -> None:
        with self._lock:
            if time.monotonic() < self._due:
                return
            self._due = time.monotonic() + _MOST_SECONDS  # until the check says when the next is
        threading.Thread(target=self._check, args=(file,), name="integrity", daemon=True).start()

    def _check(self, file: Path) -> None:
        began = time.monotonic()
        note = DamageNote(file)
        try:
            # A damage that a reader met may be in what a quick check leaves out: an index.
            is_noted = note.read() is not None
            faults = sqlite_faults(file, is_quick=not is_noted)
        except sqlite3.OperationalError as error:
            log.warning("the database could not be checked: %s", error)
        else:
            if faults:
                log.error("the database is damaged: %s", "; ".join(faults))
                note.write("; ".join(faults))
            elif is_noted:
                note.clear()
        ended = time.monotonic()
        wait = min(max((ended - began) / _SHARE_OF_TIME, _LEAST_SECONDS), _MOST_SECONDS)
        with self._lock:
            self._due = ended + wait
