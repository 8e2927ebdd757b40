"""A window of jobs: those that the figures of a run are of (PAL section IV-B1: 2000 to 3000)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from maat.scheduling.errors import ParameterError

Element = TypeVar("Element")


@dataclass(frozen=True, slots=True)
class JobWindow:
    """The jobs numbered `first` to `last`, both included, from 0 in order of submission.

    Raises ParameterError if there can be none.
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last:
            raise ParameterError(
                "is no window of jobs",
                field="measured_jobs",
                value=str(self),
                remedy="Give for example 2000-3000, counted from 0 in order of submission.",
            )

    @classmethod
    def read(cls, given: str) -> JobWindow:
        """Read FIRST-LAST. Raises ParameterError."""
        match = re.fullmatch(r"\s*(\d{1,9})\s*-\s*(\d{1,9})\s*", given)
        if match is None:
            raise ParameterError(
                "is no window of jobs",
                field="measured_jobs",
                value=given,
                remedy="Write for example 2000-3000, counted from 0 in order of submission.",
            )
        return cls(int(match[1]), int(match[2]))

    def of(self, jobs: Sequence[Element]) -> Sequence[Element]:
        """Return those of the jobs, which are in order of submission."""
        return jobs[self.first : self.last + 1]

    def check(self, many: int) -> None:
        """Raise ParameterError if a workload of so many jobs has none of them."""
        if self.first >= many:
            raise ParameterError(
                f"lies beyond the {many} jobs of the workload",
                field="measured_jobs",
                value=str(self),
                remedy=f"Begin at most at {max(many - 1, 0)}, or generate more jobs.",
            )

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"
