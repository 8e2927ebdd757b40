"""What the child prints: a moment's name, then the seconds since the epoch."""

from __future__ import annotations

BEGUN, FIRST_STEP, SAVE, SAVED = "process begun at", "first step at", "save at", "saved at"
LEFT = "agent ended at"
MOMENTS = frozenset({BEGUN, FIRST_STEP, SAVE, SAVED, LEFT})
