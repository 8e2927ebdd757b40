"""The places that the limits of a round still leave, while a policy grants GPUs."""

from __future__ import annotations

from maat.scheduling.free_capacity import free_places
from maat.scheduling.limits import Limit
from maat.scheduling.rounds import RoundInput


class LimitPlaces:
    """The places left under each limit, after pinned grants and started jobs.

    Rows are jobs of the round. Every job takes the GPUs that it requests.
    """

    def __init__(self, round_input: RoundInput) -> None:
        self._input = round_input
        self._left: list[int] = free_places(round_input).tolist()

    def take(self, row: int, t: int) -> None:
        """Take the places of a job on a type."""
        for r in self._limits(row, t):
            self._left[r] -= self._requested(row)

    def fit(self, row: int, t: int) -> bool:
        """Return whether every limit leaves places for the job on a type."""
        return not self.lacking(row, t)

    def lacking(self, row: int, t: int) -> list[Limit]:
        """Return the limits that leave too few places for the job on a type."""
        limits, needed = self._input.limits, self._requested(row)
        return [limits[r] for r in self._limits(row, t) if self._left[r] < needed]

    def too_small(self, row: int, t: int) -> list[Limit]:
        """Return the limits that would be too small even if the job were alone."""
        limits, needed = self._input.limits, self._requested(row)
        return [limits[r] for r in self._limits(row, t) if limits[r].places < needed]

    def _limits(self, row: int, t: int) -> list[int]:
        spec, name = self._input.jobs[row].spec, self._input.cluster.type_names[t]
        return self._input.limit_index.of(spec, name, spec.requested_gpus)

    def _requested(self, row: int) -> int:
        return self._input.jobs[row].spec.requested_gpus
