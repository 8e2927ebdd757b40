"""How far a run of an experiment is: what its caller is told between two rounds."""

from __future__ import annotations

from collections.abc import Callable

OnShare = Callable[[float], None]
"""Gets the share of a run that is done, 0 to 1, every round. What it raises ends the run."""

STALLED_ROUNDS = 50_000  # a month of one-minute rounds


class Stalled(Exception):
    """No job has come further for long: those that are left wait for what never comes."""


def ignore_share(share: float) -> None:
    """Do nothing with it."""


def ending_stalled(on_share: OnShare) -> OnShare:
    """Return what also raises Stalled when the share has been the same for STALLED_ROUNDS."""
    last, rounds = -1.0, 0

    def look(share: float) -> None:
        nonlocal last, rounds
        last, rounds = share, rounds + 1 if share == last else 0
        if rounds >= STALLED_ROUNDS:
            raise Stalled
        on_share(share)

    return look
