"""What jobs that have ended say of those to come. Reads nothing: the worker fills it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from maat.scheduling.belief import GradientStatistics
from maat.scheduling.fitting import Sample
from maat.scheduling.job import JobSpec

LEAST_IN_GROUP = 5
"""Fewer jobs than this say too little of a group: the next wider one counts."""


@dataclass(frozen=True)
class PastLife:
    """What was measured of a training that has ended, or is published of its model.

    `samples`: step times by GPU type. `gradients`: (share of its work done, statistics), ascending.
    """

    samples: Mapping[str, tuple[Sample, ...]]
    gradients: tuple[tuple[float, GradientStatistics], ...] = ()


@dataclass(frozen=True)
class Ended:
    """A job that has ended well.

    `run_seconds`: from its first GPUs to its end. `pace`: how much slower it was than its step
    times, by that and by what was foretold when it was submitted; None if nothing was.
    """

    owner: str
    model: str
    run_seconds: float
    pace: float | None = None


@dataclass(frozen=True)
class PastArrival:
    """A job that was submitted `ago` seconds before now: `spec` as it would be now."""

    spec: JobSpec
    ago: float


@dataclass(frozen=True)
class History:
    """The past of one cluster.

    `lives`: by (owner, model), and by (None, model) for anybody's. `window_seconds`: for how long
    arrivals were looked at.
    """

    lives: Mapping[tuple[str | None, str], PastLife] = field(default_factory=dict)
    ended: Sequence[Ended] = ()
    arrivals: Sequence[PastArrival] = ()
    window_seconds: float = 86_400.0

    def life_of(self, spec: JobSpec) -> PastLife | None:
        """Return the life that says most of this job: its owner's, else anybody's."""
        own = self.lives.get((spec.owner, spec.model))
        return self.lives.get((None, spec.model)) if own is None else own

    def paces_of(self, spec: JobSpec) -> list[float]:
        """Return the paces of the narrowest group with enough jobs; of all if none has."""
        found: list[float] = []
        for group in self._groups(spec):
            found = [one.pace for one in group if one.pace is not None]
            if len(found) >= LEAST_IN_GROUP:
                break
        return found

    def run_seconds_of(self, spec: JobSpec) -> list[float]:
        """Return how long jobs of this owner and model ran; of the model if too few did."""
        groups = list(self._groups(spec))[:2]
        found = [one.run_seconds for one in groups[0]]
        return found if len(found) >= LEAST_IN_GROUP else [one.run_seconds for one in groups[1]]

    def _groups(self, spec: JobSpec) -> Iterator[list[Ended]]:
        of_model = [one for one in self.ended if one.model == spec.model]
        yield [one for one in of_model if one.owner == spec.owner]
        yield of_model
        yield list(self.ended)
