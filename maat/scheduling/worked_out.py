"""What a policy worked out of a round's jobs and cluster, kept while it decides the round again.

Under other limits the same jobs on the same cluster have the same goodput.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from maat.scheduling.rounds import RoundInput

T = TypeVar("T")


class WorkedOut:
    """Results by name, each with the jobs and the cluster that it is of."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[object, object, object]] = {}

    def get(self, name: str, round_input: RoundInput, work_out: Callable[[], T]) -> T:
        """Return the result for these jobs and this cluster, worked out at most once in a row."""
        found = self._found.get(name)
        if found is None or found[0] is not round_input.jobs or found[1] is not round_input.cluster:
            found = (round_input.jobs, round_input.cluster, work_out())
            self._found[name] = found
        return cast(T, found[2])
