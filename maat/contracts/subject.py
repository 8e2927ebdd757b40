"""A policy that is examined, and a drawn round with what the policy made of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from maat.contracts.generated import round_inputs
from maat.contracts.generated_quotas import crowded_rounds, quota_rounds
from maat.scheduling.loop import plan_round
from maat.scheduling.placement import PLACERS
from maat.scheduling.protocols import Placer, Policy
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Decision, RoundInput

T = TypeVar("T")


@dataclass(frozen=True)
class Subject:
    """A policy. `make` returns a new one each time, as a worker that is started again has it.

    `answer_seconds`: how long it may take in a round; None: as long as it likes.
    """

    make: Callable[[], Policy]
    placer_name: str
    answer_seconds: float | None = None

    @cached_property
    def policy(self) -> Policy:
        return self.make()

    @property
    def placer(self) -> Placer:
        return PLACERS.build(self.placer_name)


@dataclass(frozen=True)
class Trial:
    """A round, and what else a claim draws.

    Attributes:
        seconds_ahead: Until when a decision may have to stand.
        weights: Of jobs, one after the other, where a claim changes them.
    """

    round_input: RoundInput
    seconds_ahead: float = 1e5
    weights: tuple[float, ...] = ()
    _made: dict[tuple[str, int], Any] = field(default_factory=dict, compare=False, repr=False)

    def decision(self, subject: Subject) -> Decision:
        """Return what the policy decides, which it is asked once."""
        return self._decided(subject)[0]

    def is_changed_by(self, subject: Subject) -> bool:
        """Return whether the round was another one after the policy decided it."""
        return self._decided(subject)[1]

    def planned(self, subject: Subject) -> RoundResult:
        """Return the whole round, which is planned once. Raises ContractViolation."""
        return self._once(
            "planned",
            subject,
            lambda: plan_round(self.round_input, subject.policy, subject.placer),
        )

    def _decided(self, subject: Subject) -> tuple[Decision, bool]:
        def decide() -> tuple[Decision, bool]:
            before = _facts(self.round_input)
            decision = subject.policy.allocate(self.round_input)
            return decision, _facts(self.round_input) != before

        return self._once("decided", subject, decide)

    def _once(self, what: str, subject: Subject, make: Callable[[], T]) -> T:
        key = (what, id(subject))
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made


def _facts(round_input: RoundInput) -> bytes:
    """Return everything that a policy is given, as bytes."""
    given = (
        round_input.jobs,
        round_input.cluster.nodes,
        round_input.limits,
        dict(round_input.pinned),
        round_input.state,
    )
    return pickle.dumps(given)


@st.composite
def trials(draw: DrawFn) -> Trial:
    """Draw a round of any kind."""
    round_input = draw(round_inputs())
    weight = st.sampled_from((0.001, 1.0, 1000.0))
    count = len(round_input.jobs)
    weights = tuple(draw(st.lists(weight, min_size=count, max_size=count)))
    return Trial(round_input, draw(st.floats(1.0, 1e5)), weights)


@st.composite
def quota_trials(draw: DrawFn) -> Trial:
    """Draw a round with quotas or priority classes, or both."""
    return Trial(draw(quota_rounds()))


@st.composite
def class_trials(draw: DrawFn) -> Trial:
    """Draw a round with quotas or priority classes, or one that is crowded."""
    return Trial(draw(quota_rounds() | crowded_rounds()))
