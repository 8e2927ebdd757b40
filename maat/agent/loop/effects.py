"""What changes the training, in a reading of the script's loop: if a carried name reaches it, why.

It stops the reading where it is not silent.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType

from maat.agent.loop.scope import Scope
from maat.agent.loop.values import (
    DATA,
    GRADIENTS,
    MODEL,
    OPTIMISER,
    SCHEDULE,
    UNKNOWN,
    WEIGHTS,
    Value,
)

_TRAINED = {WEIGHTS, GRADIENTS, MODEL, OPTIMISER, DATA}
_CHANGES = {"clear", "pop", "update", "setdefault", "load_state_dict", "add_param_group", "apply"}
_CHANGES |= {"update_parameters", "zero_grad"}
_KEEPS = {"append", "extend", "appendleft"}
_COPIES = {"copy_", "set_"}
_BY_STEPS = "Count steps by job.steps"
_IN_HOOKS = (
    f"{_BY_STEPS}, or register it, before the loop, to be called before or after real steps only: "
    "optimiser.register_step_pre_hook(...), register_step_post_hook(...)."
)


class Reached(Exception):
    """A name that is carried from batch to batch reaches the training.

    Attributes:
        line: Of `file`: the one to change.
    """

    def __init__(self, file: str, line: int, words: str) -> None:
        super().__init__(words)
        self.file, self.line, self.words = file, line, words


@dataclass(frozen=True)
class Decision:
    """A carried name decides whether something is done."""

    carried: str
    file: str
    line: int


class Effects:
    """Checks each call and assignment of the loop."""

    def __init__(self) -> None:
        self.is_silent = True
        self.mode: tuple[str, ast.AST] | None = None  # the last train() or eval(), if one decides
        self.always_trains = False
        self._decisions: list[Decision] = []

    @contextmanager
    def decides(self, test: Value, node: ast.expr, scope: Scope) -> Iterator[None]:
        """Note that what is read now is done or not by this test."""
        if test.carried is None:
            yield
            return
        self._decisions.append(Decision(test.carried, scope.file, node.lineno))
        self.mode = None
        yield
        if self.mode is not None and self.mode[0] == "eval" and not self.always_trains:
            self._reach(scope, self.mode[1], test.carried, "the model's mode depends on", _BY_STEPS)
        self._decisions.pop()
        self.mode = None

    def decision(self, scope: Scope) -> Decision | None:
        """Return what decides whether this place is come to."""
        if self._decisions:
            return self._decisions[-1]
        place: Scope | None = scope
        while place is not None:
            if place.left is not None:
                return Decision(place.left[0], place.file, place.left[1])
            place = place.caller or place.parent
        return None

    def decided(self, value: Value, scope: Scope) -> Value:
        """Return a value that is set here, or not."""
        decision = self.decision(scope)
        if decision is None or value.carried is not None:
            return value
        return replace(value, carried=decision.carried)

    def calls(
        self, name: str, receiver: Value, arguments: Sequence[Value], node: ast.Call, scope: Scope
    ) -> None:
        """Check a call of a function, or of a method."""
        carried = next((each.carried for each in arguments if each.carried), None)
        if name == "backward":
            self._check_loss(carried or receiver.carried, node, scope)
        elif name in ("step", "zero_grad") and receiver.stands_for in (OPTIMISER, SCHEDULE, MODEL):
            if not arguments or receiver.stands_for != SCHEDULE:
                self._check_decided(node, scope)
        elif name in ("train", "eval") and receiver.stands_for == MODEL:
            if self.decision(scope) is not None:
                self.mode = (name, node)
            elif name == "train":
                self.always_trains = True
        else:
            self._check_change(name, receiver, arguments, node, scope)

    def sets(self, base: Value, value: Value, node: ast.AST, scope: Scope) -> None:
        """Check an assignment to an attribute, or to a part, of `base`."""
        carried = base.carried or value.carried
        is_followed = base.stands_for == MODEL and base.target is not UNKNOWN
        if base.stands_for in _TRAINED and not is_followed:
            self._check_part(carried, node, scope)
        elif base.is_outside and value.is_like_weights and value.carried is not None:
            self._average(value.carried, node, scope)

    def keeps(self, value: Value, name: str, node: ast.AST, scope: Scope) -> None:
        """Check an assignment to a name that outlives a batch."""
        if value.is_like_weights and value.carried is not None:
            self._average(name, node, scope)

    def changes_in_place(self, before: Value, added: Value, node: ast.AST, scope: Scope) -> None:
        """Check an assignment like `a += b`."""
        if before.stands_for in (WEIGHTS, GRADIENTS):
            self._check_part(added.carried, node, scope)
        elif before.is_outside and added.is_like_weights:
            self._average(before.carried or "weights", node, scope)

    def _check_loss(self, carried: str | None, node: ast.Call, scope: Scope) -> None:
        if carried is not None:
            self._reach(
                scope,
                node,
                carried,
                "the loss, or what is done with it, depends on",
                f"{_BY_STEPS}, which are the same in all passes of a step, and keep no value of "
                "earlier batches in a loss",
            )
        self._check_decided(node, scope)

    def _check_decided(self, node: ast.AST, scope: Scope) -> None:
        decision = self.decision(scope)
        if decision is not None:
            self._reach_decision(
                decision,
                "All passes of a step must do the same. Leave no batch out; to accumulate, give "
                "the DataLoader the batch size of a whole step; count steps by job.steps.",
            )

    def _check_part(self, carried: str | None, node: ast.AST, scope: Scope) -> None:
        """Check a change of weights, gradients, the model, or of what the optimiser keeps."""
        if carried is not None:
            self._reach(
                scope, node, carried, "what is trained, or with what, depends on", _IN_HOOKS
            )
        decision = self.decision(scope)
        if decision is not None:
            self._reach_decision(decision, _IN_HOOKS)

    def _check_change(
        self, name: str, receiver: Value, arguments: Sequence[Value], node: ast.Call, scope: Scope
    ) -> None:
        is_in_place = name.endswith("_") and not name.endswith("__")
        carried = next((each.carried for each in arguments if each.carried), None)
        is_of_module = isinstance(receiver.target, ModuleType) or receiver.target is None
        if is_of_module:  # a function, as torch.nn.utils.clip_grad_norm_
            if is_in_place and any(each.stands_for in _TRAINED for each in arguments):
                self._check_part(carried, node, scope)
            return
        if receiver.stands_for in _TRAINED:
            if is_in_place or name in _CHANGES or (name.startswith("set") and carried is not None):
                self._check_part(carried, node, scope)
            return
        is_kept = name in _KEEPS or (is_in_place and name not in _COPIES)
        if receiver.is_outside and is_kept and any(each.is_like_weights for each in arguments):
            self._average(receiver.carried or "weights", node, scope)

    def _average(self, name: str, node: ast.AST, scope: Scope) -> None:
        if self.is_silent:
            return
        raise Reached(
            scope.file,
            node.lineno,  # type: ignore[attr-defined]
            f"weights are averaged, or kept, once a batch ({name}), and a step has several batches "
            "here, its passes, between which weights do not move. Register it, before the loop, "
            "to be called after real steps only: "
            "optimiser.register_step_post_hook(lambda *_: ...).",
        )

    def _reach(self, scope: Scope, node: ast.AST, carried: str, what: str, remedy: str) -> None:
        if self.is_silent:
            return
        raise Reached(
            scope.file,
            node.lineno,  # type: ignore[attr-defined]
            f"{what} `{carried}`, which goes from batch to batch, and a step has several batches "
            f"here, its passes. {remedy.rstrip('.')}.",
        )

    def _reach_decision(self, decision: Decision, remedy: str) -> None:
        if self.is_silent:
            return
        raise Reached(
            decision.file,
            decision.line,
            f"`{decision.carried}`, which goes from batch to batch, decides what is trained, and a "
            f"step has several batches here, its passes. {remedy}",
        )
