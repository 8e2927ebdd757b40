"""How a solve went, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class SolveStatus(StrEnum):
    """How far the answer is proved."""

    OPTIMAL = "optimal"  # proved to the tolerance
    WITHIN_GAP = "within-gap"  # feasible, with a certified gap above the tolerance
    KEPT_PRESENT = "kept-present"  # no usable answer; the present allocation stays
    POLICY_FAILED = "policy-failed"  # it made no decision; the present allocation stays
    NOT_NEEDED = "not-needed"  # the policy solves no programme


@dataclass(frozen=True)
class SolveReport:
    """What a solve did. `gap` = (bound - objective) / |bound|.

    `prices`: of one place under each limit, in the objective's unit. `seconds`: CPU time.
    `repairs`: times that the round was solved again because nodes could not hold its grants.
    `out_of_time`: a time limit ended the search, so another machine may get another answer.
    `fallback`: the wanted method gave no usable answer; `message` says why.
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
        """Return this report with the seconds of earlier solves of the same round added.

        `out_of_time` is true if it is true of any of them.
        """
        return replace(
            self,
            seconds=self.seconds + sum(report.seconds for report in earlier),
            out_of_time=self.out_of_time or any(report.out_of_time for report in earlier),
        )
