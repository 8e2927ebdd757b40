"""Rounds as the API answers them."""

from __future__ import annotations

from typing import Any

from backend.answers import answer_of
from backend.clocktime import shown_at
from backend.clusters.models import Cluster
from backend.rounds.models import Round
from backend.rounds.record_view import record_seen
from backend.sight import Sight
from maat.api.rounds import RoundDetailOut, RoundOut


def show_round(found: Round, cluster: Cluster, sight: Sight) -> RoundOut:
    return answer_of(RoundOut, found, **_computed(found, cluster, sight))


def show_round_with_record(found: Round, cluster: Cluster, sight: Sight) -> RoundDetailOut:
    record = None if found.record is None else record_seen(found.record, sight)
    return answer_of(RoundDetailOut, found, **_computed(found, cluster, sight), record=record)


def by_type(found: Round) -> tuple[dict[str, int], dict[str, int]]:
    """Return the GPUs that were used, and those that could be used, by type."""
    stored = found.gpus_by_type
    used = {kind: counts["used"] for kind, counts in stored.items()}
    return used, {kind: counts["capacity"] for kind, counts in stored.items()}


def _computed(found: Round, cluster: Cluster, sight: Sight) -> dict[str, Any]:
    used, capacity = by_type(found)
    return {
        "at": shown_at(cluster, found.at_seconds),
        "gpus_by_type": used,
        "capacity_by_type": capacity,
        "message": sight.text(found.message),
        "prices": sight.limits(found.prices),
    }
