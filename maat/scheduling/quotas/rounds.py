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


def quota_limits(round_input: RoundInput, policy: Policy | None = None) -> tuple[Limit, ...]:
    """Return the limits that quotas and priority classes set before the policy decides.

    Pure. Quotas, cluster, jobs and what they hold and are owed are those of the round.
    `policy`: the one that decides; None for one that chooses GPU counts.
    """
    teams = teams_of(round_input, policy)
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
    kept = replace(round_input, worked_out=WorkedOut())
    teams = teams_of(kept, policy)
    if teams is None:
        return Decided(round_input, policy.allocate(round_input))
    limited, decision, outcome = _best_deal(kept, policy, teams)
    return Decided(replace(limited, worked_out=None), decision, outcome)


def _best_deal(
    round_input: RoundInput, policy: Policy, teams: Teams
) -> tuple[RoundInput, Decision, Outcome]:
    best = _decided(round_input, policy, teams, first_rows(teams))
    usable = teams.room.most
    for _ in range(MOST_DEALS - 1):
        _, decision, outcome = best
        rows = outcome.rows_for_idle(usable)
        if rows is None:
            break
        again = _decided(round_input, policy, teams, rows, before=(decision, outcome))
        if again[2].takes_back:
            # More was dealt than the policy can use: nodes cannot hold it, or a limit is for
            # several types. What it used now is all that it can.
            usable = again[2].used.sum(axis=0)
        elif again[2].used.sum() <= outcome.used.sum():
            break
        else:
            best = again
    return best


def _decided(
    round_input: RoundInput,
    policy: Policy,
    teams: Teams,
    rows: Rows,
    *,
    before: tuple[Decision, Outcome] | None = None,
) -> tuple[RoundInput, Decision, Outcome]:
    """Return a decision under these rows. `before`: the one before in the same round."""
    limits = round_input.limits + limits_of(teams, rows)
    limited = replace(round_input, limits=limits)
    decision = policy.allocate(limited)
    earlier, last = (None, None) if before is None else (before[0].reasons, before[1])
    outcome = Outcome(teams, rows, teams.granted(decision.grants), last)
    reasons = QuotaReasons(decision.reasons, outcome, limits, earlier)
    return limited, replace(decision, reasons=reasons), outcome
