"""Counts of GPUs that are idle, or held by one job alone, by type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from maat.scheduling.job import JobId


@dataclass(frozen=True, slots=True)
class Holder:
    """A job and its GPUs of one type; it holds `alone` of them without a partner."""

    job_id: JobId
    gpu_type: int
    gpu_count: int
    alone: int


class GpuCounts:
    """Counts of idle GPUs, and of GPUs held by one job alone, by type.

    `changes` grows whenever a job starts. With `shareable` False no GPU may be joined.
    """

    def __init__(self, idle: Sequence[int], *, shareable: bool) -> None:
        self._idle = [max(count, 0) for count in idle]
        self._shareable = shareable
        self._holders: dict[JobId, Holder] = {}
        self._joinable = [0] * len(idle)
        self.changes = 0

    def idle(self, t: int) -> int:
        return self._idle[t]

    def joinable(self, t: int) -> int:
        """Return how many GPUs of a type one job holds alone."""
        return self._joinable[t]

    def holders(self, t: int) -> Iterator[Holder]:
        """Yield the jobs that hold GPUs of a type alone, in the order in which they came."""
        return (
            holder for holder in self._holders.values() if holder.gpu_type == t and holder.alone
        )

    def keep(self, holder: Holder) -> None:
        """Note a job that runs already; its GPUs are not counted as idle."""
        if self._shareable:
            self._holders[holder.job_id] = holder
            self._joinable[holder.gpu_type] += holder.alone
        self.changes += 1

    def start(self, holder: Holder, shared: Mapping[JobId, int]) -> None:
        """Start a job on idle GPUs and on `shared` GPUs of partners."""
        for partner, count in shared.items():
            known = self._holders[partner]
            self._holders[partner] = replace(known, alone=known.alone - count)
            self._joinable[holder.gpu_type] -= count
        self._idle[holder.gpu_type] -= holder.alone
        self.keep(holder)
