"""What decides and what places: the names of a policy and a placer, with their parameters.

The one place that says which placer goes with a policy where none is named: for a new cluster, a
change of one, a question about a change, and a run of a simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, parameters_beside, suiting_placer
from maat.scheduling.protocols import Placer, Policy


@dataclass(frozen=True)
class Parts:
    """A policy and a placer by name, with the parameters that were set."""

    policy: str
    placer: str
    policy_parameters: Mapping[str, object] = field(default_factory=dict)
    placer_parameters: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def chosen(
        cls,
        policy: str,
        placer: str | None = None,
        *,
        policy_parameters: Mapping[str, object] | None = None,
        placer_parameters: Mapping[str, object] | None = None,
    ) -> Parts:
        """Return the parts as chosen; without a placer, the policy's own.

        Raises UnknownNameError if the placer depends on a policy that there is not.
        """
        return cls(
            policy,
            suiting_placer(policy) if placer is None else placer,
            policy_parameters or {},
            placer_parameters or {},
        )

    def changed(
        self,
        policy: str | None = None,
        placer: str | None = None,
        *,
        policy_parameters: Mapping[str, object] | None = None,
        placer_parameters: Mapping[str, object] | None = None,
    ) -> Parts:
        """Return the parts after a change; None: not named.

        Another policy brings its own placer unless one is named. A policy or placer that was not
        there before begins with its default parameters. Raises UnknownNameError.
        """
        is_same_policy = policy in (None, self.policy)
        named = self.policy if policy is None else policy
        placed_by = placer or (self.placer if is_same_policy else suiting_placer(named))
        kept = self.placer_parameters if placed_by == self.placer else {}
        before = self.policy_parameters if is_same_policy else {}
        return Parts(
            named,
            placed_by,
            before if policy_parameters is None else policy_parameters,
            kept if placer_parameters is None else placer_parameters,
        )

    def built(self) -> tuple[Policy, Placer]:
        """Build both; parameters of the policy win over those that the placer asks of it.

        Raises UnknownNameError or ParameterError.
        """
        beside = parameters_beside(PLACERS.entry(self.placer), self.policy)
        policy = POLICIES.build(self.policy, {**beside, **self.policy_parameters})
        return policy, PLACERS.build(self.placer, self.placer_parameters)
