"""An own policy as rounds know it: a function, or an object with `allocate`, under a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from maat.scheduling.errors import MaatError
from maat.scheduling.own.decision import decision_of
from maat.scheduling.own.failures import failure_of
from maat.scheduling.own.running import Runner
from maat.scheduling.parameters import checked_knobs, knobs_of, rebuilt
from maat.scheduling.rounds import Decision, RoundInput

_METHODS = ("order", "useful_counts")
"""What the protocol lets a policy have besides `allocate`."""


@dataclass(frozen=True, eq=False)
class OwnPolicy:
    """Decides by somebody else's code.

    What the code says of itself (`default_round_seconds`, `weighs_jobs`, `gpu_sharing`, `order`,
    `useful_counts`, `content`) holds for this too. A function, and a class that says nothing of
    itself, names GPU counts: `chooses_gpu_counts` is True.

    Attributes:
        made: A function of a round's input, or an object with `allocate`.
        arguments: The knobs of a function, as it was given them; an object has its own.
        where: `module:Class`, if the code is known by that.
        runner: Calls it instead of this process, which then only reads what it says of itself.
    """

    name: str
    made: Any
    arguments: Mapping[str, object] = field(default_factory=dict)
    where: str = ""
    runner: Runner | None = None
    default_round_seconds: ClassVar[float] = 60.0

    def __post_init__(self) -> None:
        seconds = getattr(self.made, "default_round_seconds", None)
        if seconds is not None:
            object.__setattr__(self, "default_round_seconds", float(seconds))

    def allocate(self, round_input: RoundInput) -> Decision:
        """Return the decision.

        Raises PolicyFailed if the policy raises an error or its decision cannot be read, and
        InputError if a function returned no grants.
        """
        if self.runner is not None:
            decision: Decision = self._remote("allocate")(round_input)
            return decision
        try:
            answer = self._decide(round_input, **self.arguments)
        except MaatError:
            raise
        except (Exception, SystemExit) as error:
            raise failure_of(self.name, error) from error
        return decision_of(answer, round_input, policy=self.name)

    @property
    def chooses_gpu_counts(self) -> bool:
        says_nothing = not hasattr(self.made, "default_round_seconds")
        return bool(getattr(self.made, "chooses_gpu_counts", says_nothing))

    def _remote(self, method: str) -> Callable[[RoundInput], Any]:
        if self.runner is None:
            raise AttributeError(method)
        return partial(self.runner, self.where, self.knob_values(), method, name=self.name)

    def knob_values(self) -> Mapping[str, object]:
        """Return every knob with its value."""
        return self.arguments if self._is_function else knobs_of(self.made)

    def rebuilt(self, values: Mapping[str, object], *, owner: str) -> OwnPolicy:
        """Return the policy with these knobs set. Raises ParameterError."""
        if not self._is_function:
            return replace(self, made=rebuilt(self.made, values, owner=owner))
        checked = checked_knobs(self.made, values, owner=owner)
        return replace(self, arguments={**self.arguments, **checked})

    @property
    def _is_function(self) -> bool:
        return not hasattr(self.made, "allocate")

    @property
    def _decide(self) -> Callable[..., object]:
        decide: Callable[..., object] = self.made if self._is_function else self.made.allocate
        return decide

    def __getattr__(self, name: str) -> Any:
        """Return what the code says of itself; called only for what is not defined above."""
        if name.startswith("_") or name in ("made", "name", "arguments", "where", "runner"):
            raise AttributeError(name)
        known = getattr(self.made, name)
        return known if self.runner is None or name not in _METHODS else self._remote(name)
