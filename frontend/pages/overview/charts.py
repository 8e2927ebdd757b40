"""The charts of the overview, drawn once a round for all who see it.

What they draw is the same for every visitor: GPUs and jobs as numbers, without names. So the key of
a drawing is all that it follows from, and nobody's permissions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from frontend.figures.usage import pending_figure, usage_figure
from maat.api.rounds import Steps, TimelineOut, TimelineSeries

MOST_KEPT = 32  # of the clusters, spans and colours that visitors look at


@dataclass(frozen=True, slots=True)
class Charts:
    """Both charts as Plotly's JSON. Not to be changed: others see the same."""

    usage: dict[str, Any]
    pending: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Timeline:
    """What both charts follow from, as a key. `at`: the time of every round."""

    scheme: str
    rounds: tuple[int, ...]
    at: tuple[str, ...]
    used: tuple[tuple[str, tuple[int, ...]], ...]
    capacity: tuple[tuple[str, tuple[int, ...]], ...]
    running: tuple[int, ...]
    pending: tuple[int, ...]

    @classmethod
    def of(cls, timeline: TimelineOut, scheme: str) -> Self:
        series = timeline["series"]
        return cls(
            scheme=scheme,
            rounds=tuple(timeline["round_numbers"]),
            at=tuple(series["running_jobs"]["at"]),
            used=_values(series["gpus_used_by_type"]),
            capacity=_values(series["capacity_by_type"]),
            running=tuple(series["running_jobs"]["value"]),
            pending=tuple(series["pending_jobs"]["value"]),
        )


def charts_of(timeline: TimelineOut, scheme: str) -> Charts:
    return _drawn(_Timeline.of(timeline, scheme))


@lru_cache(MOST_KEPT)
def _drawn(known: _Timeline) -> Charts:
    def steps(values: tuple[int, ...]) -> Steps:
        return Steps(at=list(known.at), value=list(values))

    series = TimelineSeries(
        gpus_used_by_type={name: steps(values) for name, values in known.used},
        capacity_by_type={name: steps(values) for name, values in known.capacity},
        running_jobs=steps(known.running),
        pending_jobs=steps(known.pending),
    )
    usage = usage_figure(
        series["gpus_used_by_type"],
        series["capacity_by_type"],
        known.rounds,
        scheme=known.scheme,
    )
    pending = pending_figure(
        series["pending_jobs"], series["running_jobs"], known.rounds, scheme=known.scheme
    )
    return Charts(usage.to_plotly_json(), pending.to_plotly_json())


def _values(by_type: Mapping[str, Steps]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, tuple(steps["value"])) for name, steps in by_type.items())
