"""Rounds as step series: used and usable GPUs by type, running and waiting jobs.

Pure; the repository selects the rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.clocktime import shown_at
from backend.clusters.models import Cluster
from backend.rounds.models import Round
from backend.rounds.resources import by_type
from maat.api.rounds import Steps, TimelineOut, TimelineSeries


def timeline(rounds: Sequence[Round], cluster: Cluster) -> TimelineOut:
    at = [shown_at(cluster, found.at_seconds) for found in rounds]
    counts = [by_type(found) for found in rounds]
    series = TimelineSeries(
        gpus_used_by_type=_steps_by_type(at, [used for used, _ in counts]),
        capacity_by_type=_steps_by_type(at, [capacity for _, capacity in counts]),
        running_jobs=Steps(at=at, value=[found.running_jobs for found in rounds]),
        pending_jobs=Steps(at=at, value=[found.pending_jobs for found in rounds]),
    )
    every = rounds[-1].number - rounds[-2].number if len(rounds) > 1 else 1
    return TimelineOut(
        series=series,
        round_numbers=[found.number for found in rounds],
        points=len(rounds),
        rounds_per_point=every,
    )


def _steps_by_type(at: list[str], counts: Sequence[dict[str, int]]) -> dict[str, Steps]:
    types = dict.fromkeys(name for count in counts for name in count)
    return {name: Steps(at=at, value=[count.get(name, 0) for count in counts]) for name in types}
