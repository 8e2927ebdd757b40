"""A planned round: what was decided and placed, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from maat.scheduling.explain import Reasons, placed_without_scores
from maat.scheduling.job import JobId
from maat.scheduling.other_reasons import with_others
from maat.scheduling.rounds import Changes, Decision, PlacementResult, RoundInput, RoundSeconds


@dataclass(frozen=True)
class RoundResult:
    """One planned round: its input, decision, placement, changes and CPU seconds."""

    round_input: RoundInput
    decision: Decision
    placement: PlacementResult
    changes: Changes
    seconds: RoundSeconds

    @cached_property
    def reasons(self) -> Mapping[JobId, Reasons]:
        """Return why every job got what it got.

        The placer's reason counts if it could not place a grant, otherwise the policy's.
        """
        reasons = {**self.decision.reasons, **self.placement.unplaced}
        for job_id in self.placement.without_scores:
            reasons[job_id] = placed_without_scores(reasons[job_id])
        return reasons

    @cached_property
    def explained(self) -> Mapping[JobId, Reasons]:
        """Return the reasons with what holds besides: for the record, as no round needs it."""
        return with_others(self.round_input, self.decision.grants, self.reasons)

    @property
    def round_number(self) -> int:
        return self.round_input.round_number
