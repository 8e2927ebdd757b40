"""How a solve went, as data. Not responsible for solving, and not for what follows from a bad end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class SolveStatus(StrEnum):
    """How far the answer is to be believed."""

    OPTIMAL = "optimal"  # proved to the tolerance
    WITHIN_GAP = "within-gap"  # feasible, with a certified gap above the tolerance
    KEPT_PRESENT = "kept-present"  # no usable answer: the present allocation stays
    NOT_NEEDED = "not-needed"  # the policy solves no programme


@dataclass(frozen=True)
class SolveReport:
    """What a solve did. `prices`: of one place under each limit, in the objective's unit. `gap` = (bound - objective) / |bound|.

    `seconds`: CPU time. `repairs`: times that it was solved again because nodes could not hold what it granted. `out_of_time`: a clock ended the search, not a proof or a limit on work: another machine may get another answer.
    """

    status: SolveStatus = SolveStatus.NOT_NEEDED
    method: str = ""
    objective: float = 0.0
    bound: float = 0.0
    gap: float = 0.0
    seconds: float = 0.0
    fallback: bool = False
    out_of_time: bool = False
    repairs: int = 0
    message: str = ""
    prices: Mapping[str, float] = field(default_factory=dict)

    def after(self, *earlier: SolveReport) -> SolveReport:
        """This report for a round that solved other programmes before: their seconds count, and so does a clock that ended one of them."""
        return replace(
            self,
            seconds=self.seconds + sum(report.seconds for report in earlier),
            out_of_time=self.out_of_time or any(report.out_of_time for report in earlier),
        )
