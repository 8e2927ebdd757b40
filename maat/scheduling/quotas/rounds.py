"""Decides a round under quotas, weights and priority classes, whatever the policy.

They become limits before the policy decides. If it then leaves GPUs idle that only these limits
keep from a job, they are dealt again and the policy decides again. docs/quotas.md explains it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from maat.scheduling.limits import Limit
from maat.scheduling.owed import Owed
from maat.scheduling.protocols import Policy
from maat.scheduling.quotas.outcome import Outcome
from maat.scheduling.quotas.reasons import QuotaReasons
from maat.scheduling.quotas.rows import Rows, first_rows, limits_of
from maat.scheduling.quotas.teams import Teams, teams_of
from maat.scheduling.rounds import Decision, PlacementResult, RoundInput
from maat.scheduling.worked_out import WorkedOut

MOST_DEALS = 3
"""Times that a policy decides one round, while idle GPUs are dealt again."""


def quota_limits(round_input: RoundInput, *, chooses_counts: bool = True) -> tuple[Limit, ...]:
    """Return the limits that quotas and priority classes set before the policy decides.

    Pure. Quotas, cluster, jobs and what they hold and are owed are those of the round.
    `chooses_counts`: whether the policy chooses GPU counts, or gives every job what it requests.
    """
    teams = teams_of(round_input, chooses_counts=chooses_counts)
    return () if teams is None else limits_of(teams, first_rows(teams))


@dataclass(frozen=True)
class Decided:
    """A decision under the limits of quotas and classes.

    `round_input` has these limits. `outcome` is None if there are none.
    """

    round_input: RoundInput
    decision: Decision
    outcome: Outcome | None = None

    def settled(self, placed: PlacementResult) -> Decision:
        """Return the decision with what tenants are owed after it.

        What could not be placed counts as not held.
        """
        owed = Owed()
        if self.outcome is not None and self.round_input.quotas:
            owed = self.outcome.owed_after(self.round_input.now, placed.placement.by_job)
        shares = owed.as_json()
        if self.decision.state.shares == shares:
            return self.decision
        return replace(self.decision, state=replace(self.decision.state, shares=shares))


def decide(round_input: RoundInput, policy: Policy) -> Decided:
    """Return the policy's decision under quotas and classes."""
    chooses_counts = bool(getattr(policy, "chooses_gpu_counts", False))
    teams = teams_of(round_input, chooses_counts=chooses_counts)
    if teams is None:
        return Decided(round_input, policy.allocate(round_input))
    kept = replace(round_input, worked_out=WorkedOut())
    limited, decision, outcome = _best_deal(kept, policy, teams)
    limited = replace(limited, worked_out=None)
    reasons = QuotaReasons(decision.reasons, outcome, limited.limits)
    return Decided(limited, replace(decision, reasons=reasons), outcome)


def _best_deal(
    round_input: RoundInput, policy: Policy, teams: Teams
) -> tuple[RoundInput, Decision, Outcome]:
    limited, decision, outcome = _decided(round_input, policy, teams, first_rows(teams))
    for _ in range(MOST_DEALS - 1):
        rows = outcome.rows_for_idle()
        if rows is None:
            break
        again = _decided(round_input, policy, teams, rows, before=outcome)
        if again[2].used.sum() <= outcome.used.sum():
            break
        limited, decision, outcome = again
    return limited, decision, outcome


def _decided(
    round_input: RoundInput,
    policy: Policy,
    teams: Teams,
    rows: Rows,
    *,
    before: Outcome | None = None,
) -> tuple[RoundInput, Decision, Outcome]:
    limits = round_input.limits + limits_of(teams, rows)
    limited = replace(round_input, limits=limits)
    decision = policy.allocate(limited)
    return limited, decision, Outcome(teams, rows, teams.granted(decision.grants), before)
