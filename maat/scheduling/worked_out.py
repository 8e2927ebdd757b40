"""What a policy worked out of a round's jobs and cluster, kept while it decides the round again.

Under other limits the same jobs on the same cluster have the same goodput.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job

T = TypeVar("T")


class WorkedOut:
    """Results by name, each with the jobs and the cluster that it is of."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[tuple[Job, ...], Cluster, object]] = {}

    def get(self, name: str, of: tuple[tuple[Job, ...], Cluster], work_out: Callable[[], T]) -> T:
        """Return the result for these jobs and this cluster, worked out at most once in a row."""
        (jobs, cluster), found = of, self._found.get(name)
        if found is None or found[0] is not jobs or found[1] is not cluster:
            found = (jobs, cluster, work_out())
            self._found[name] = found
        return cast(T, found[2])
