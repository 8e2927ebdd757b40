"""How far a run of an experiment is: what its caller is told between two rounds."""

from __future__ import annotations

from collections.abc import Callable

OnShare = Callable[[float], None]
"""Gets the share of a run that is done, 0 to 1. What it raises ends the run."""

MAX_ROUNDS = 1_000_000  # of a run whose jobs never end


def ignore_share(share: float) -> None:
    """Do nothing with it."""
