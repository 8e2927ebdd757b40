"""Rows of rounds: one that nothing happened in, but for the columns that a test names."""

from __future__ import annotations

from typing import Any

from backend.models import Round

COUNTS = ("active_jobs", "running_jobs", "pending_jobs", "gpus_used", "gpus_total", "changes")


def round_row(cluster_id: str, number: int, **columns: Any) -> Round:
    """Return a round of Sia's, a minute after the one before it, with these columns."""
    nothing: dict[str, Any] = dict.fromkeys(COUNTS, 0) | {
        "at_seconds": 60.0 * number,
        "policy": "sia",
        "placer": "whole-node",
        "status": "optimal",
        "method": "dual",
        "policy_seconds": 0.0,
        "place_seconds": 0.0,
        "record": {},
    }
    return Round(cluster_id=cluster_id, number=number, **(nothing | columns))
