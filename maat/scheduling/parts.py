"""What decides and what places: the names of a policy and a placer, with their parameters.

The one place that says which placer goes with a policy where none is named: for a new cluster, a
change of one, a question about a change, and a run of a simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from maat.scheduling.errors import InputError, PolicyFailed, UnknownNameError
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, parameters_beside, suiting_placer
from maat.scheduling.protocols import Placer, Policy
from maat.scheduling.rounds import Decision, RoundInput


@dataclass(frozen=True)
class MissingPolicy:
    """Stands for a policy that cannot be built. `clause`: why, as what the policy does."""

    name: str
    clause: str
    default_round_seconds: ClassVar[float] = 60.0

    def allocate(self, round_input: RoundInput) -> Decision:
        """Raise PolicyFailed."""
        raise PolicyFailed(self.name, self.clause)

    @property
    def sentence(self) -> str:
        return (
            f"The policy {self.name} {self.clause}. What runs goes on and nothing new starts: "
            "install again what it came from, or choose another policy."
        )


def _clause(why: InputError) -> str:
    """Return why a policy cannot be built, without the list of others."""
    if isinstance(why, UnknownNameError):
        return f"is not there: {why.problem}" if "cannot be used" in why.problem else "is missing"
    return f"cannot be built: its parameter {why.field} {why.problem}"


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

    def built_or_missing(self) -> tuple[Policy, Placer]:
        """Build both; a policy that is not there any more stands for itself and decides nothing.

        Its distribution was uninstalled, say, or its parameters are others now. Raises
        UnknownNameError or ParameterError for the placer.
        """
        try:
            return self.built()
        except InputError as why:
            placer = PLACERS.build(self.placer, self.placer_parameters)
            return MissingPolicy(self.policy, _clause(why)), placer

    @property
    def lack(self) -> str | None:
        """Say what is wrong if the policy cannot be built, and the remedy; None if it can."""
        policy, _ = self.built_or_missing()
        return policy.sentence if isinstance(policy, MissingPolicy) else None

    def built(self) -> tuple[Policy, Placer]:
        """Build both; parameters of the policy win over those that the placer asks of it.

        Raises UnknownNameError or ParameterError.
        """
        beside = parameters_beside(PLACERS.entry(self.placer), self.policy)
        policy = POLICIES.build(self.policy, {**beside, **self.policy_parameters})
        return policy, PLACERS.build(self.placer, self.placer_parameters)
