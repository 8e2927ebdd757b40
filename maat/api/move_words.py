"""What moves were worth and what bounds them, in words; the same on pages and in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from maat.api.job_answers import AllocationSpanOut, MoveWorthOut
from maat.api.shown_numbers import duration

_UNKNOWN: Mapping[str, str] = {
    "held-none": "had no GPUs before",
    "not-counted": "not counted yet",
    "no-noise-scale": "not known: another batch size, and no noise scale was kept",
}


def move_words(worth: MoveWorthOut) -> str:
    """Say whether a restart has paid, and by how much; or why nobody knows."""
    net, needed = worth["net_seconds"], worth["pays_after_seconds"]
    if net is None:
        return _UNKNOWN[worth["unknown"] or "not-counted"]
    if worth["outcome"] == "paid":
        return f"✓ paid: {duration(net)} ahead"
    if needed is None:
        return f"✕ no faster than before: {duration(-net)} behind"
    if worth["outcome"] == "pending":
        return f"◌ not yet: pays in {duration(needed - worth['ran_seconds'])}"
    return f"✕ ended too early: {duration(-net)} behind"


def bound_words(least_stay_seconds: float | None, most_moves_per_hour: int | None) -> str:
    """Return `least stay 10 min, 4 moves an hour at most`, or `no bound`."""
    words = [] if least_stay_seconds is None else [f"least stay {duration(least_stay_seconds)}"]
    if most_moves_per_hour is not None:
        moves = "1 move" if most_moves_per_hour == 1 else f"{most_moves_per_hour} moves"
        words.append(f"{moves} an hour at most")
    return ", ".join(words) or "no bound"


def moves_verdict(spans: Sequence[AllocationSpanOut]) -> str:
    """Say what the restarts that began these spans cost, and how many have paid; or nothing."""
    moved = [(span["move"], span["gpu_count"]) for span in spans if span["move"] is not None]
    if not moved:
        return ""
    stood = sum(worth["stood_seconds"] for worth, _ in moved)
    hours = sum(worth["stood_seconds"] * gpus for worth, gpus in moved) / 3600
    known = [worth["net_seconds"] for worth, _ in moved if worth["net_seconds"] is not None]
    held = f"{hours:,.1f}".replace(",", " ")
    words = (
        f"{len(moved)} restart{'s' * (len(moved) > 1)}: it stood still for {duration(stood)} "
        f"({held} GPU-hours)."
    )
    if not known:
        return f"{words} Whether they paid is not known yet."
    paid = sum(1 for net in known if net >= 0)
    if paid == len(known):
        return f"{words} {'It has' if paid == 1 else 'All have'} paid."
    lost = -sum(net for net in known if net < 0)
    have = f"{paid} of {len(known)} have paid" if len(known) > 1 else "It has not paid"
    return f"{words} {have}; those that have not cost {duration(lost)} of progress."
