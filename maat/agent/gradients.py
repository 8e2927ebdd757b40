"""The gradient of a step of several passes: `grad` holds it after the last backward pass.

Gradients are caught on their way to `grad`, and summed apart. So it does not matter how, where and
how often the script clears or clips them: until the last pass it does so to a pass's own gradient,
which is not used again. There, `grad` becomes what one pass would have left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from maat.agent.passes import GRADIENT, Passes


@dataclass
class _Sum:
    """Of one weight: its gradients in the passes so far.

    Attributes:
        before: What `grad` was ahead of the first backward pass, if the script did not clear it.
        pass_index: The last pass that had a gradient.
        left: `grad` as the last backward pass has left it, and its version.
    """

    before: Any
    total: Any = None
    pass_index: int = -1
    left: tuple[Any, int] | None = None

    def add(self, gradient: Any, weight: float) -> None:
        gradient = gradient.detach()
        if self.total is None:
            self.total = gradient * weight
        elif self.total.layout == gradient.layout:
            self.total.add_(gradient, alpha=weight)
        else:
            self.total = _sum(self.total, gradient * weight)

    def is_changed(self, grad: Any) -> bool:
        """Return whether the script has changed `grad` since the last backward pass."""
        return self.left is not None and (grad is not self.left[0] or grad._version != self.left[1])


class GradientWatch:
    """Calls a function with the gradients of each backward pass: None for a weight without one.

    It is not called by torch.autograd.grad, at which torch's own hook for many tensors fails.
    """

    def __init__(self, parameters: Sequence[Any], call: Callable[[Sequence[Any]], object]) -> None:
        self._call = call
        self._found: list[Any] = [None] * len(parameters)
        self._is_in_backward = False
        self._nodes, self._hooks = [], []
        for index, parameter in enumerate(parameters):
            node = _node_of(parameter)
            self._nodes.append(node)
            self._hooks.append(node.register_prehook(partial(self._take, index)))

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._nodes = [], []

    def _take(self, index: int, gradients: Sequence[Any]) -> None:
        self._found[index] = gradients[0]
        if not self._is_in_backward:
            self._is_in_backward = True
            torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)

    def _end_backward(self) -> None:
        found, self._found = self._found, [None] * len(self._found)
        self._is_in_backward = False
        self._call(found)


class StepGradients:
    """Sums the gradients of a step's passes.

    Attributes:
        when_whole: Called once `grad` holds the gradient of all passes, not yet clipped.
    """

    def __init__(self, passes: Passes, parameters: Sequence[Any], *, are_averaged: bool) -> None:
        """`are_averaged`: over replicas, behind the last backward pass, which changes `grad`."""
        self.when_whole: Callable[[], None] = lambda: None
        self._passes, self._parameters, self._are_averaged = passes, parameters, are_averaged
        self._is_averaged = False  # in this step
        self._sums: dict[int, _Sum] = {}
        self._watched: list[tuple[int, bool]] = []
        self._arrived: dict[int, tuple[Any, int]] = {}  # gradients as no hook has changed them
        self._nodes: list[Any] = []
        self._hooks: list[Any] = []
        self._is_in_backward = self._has_any = False

    def begin_step(self) -> None:
        """Make ready for a step; of one pass, nothing is watched."""
        self._sums, self._is_averaged = {}, False
        # Frozen ones too: the script may unfreeze them in the first pass of a step.
        wanted = [each for each in self._parameters if _can_be_trained(each)]
        if not self._passes.are_several:
            self._watch([])
        elif [_key(each) for each in wanted] != self._watched:
            self._watch(wanted)

    def begin_pass(self) -> None:
        self._is_in_backward = self._has_any = False
        for each in self._sums.values():
            each.left = None

    def drop(self) -> None:
        """Forget a step that is begun again."""
        self._sums = {}

    def check_made(self) -> None:
        """Raise ScriptError if there are gradients that no backward pass of the model has made."""
        passes = self._passes
        is_averaged = not self._are_averaged or self._is_averaged or not passes.is_last
        is_made = self._has_any or not passes.is_split
        if not passes.is_under_way or (is_averaged and is_made):
            return
        if all(each.grad is None for each in self._parameters):
            return
        if not is_averaged:
            raise passes.error(
                "the gradients are those of one replica, and would make the copies of the model "
                "differ: call the model that adapt() returns, for each batch."
            )
        if not is_made:
            raise passes.error(
                "the gradients were not made by backward(), so they cannot be summed over passes: "
                "call loss.backward(), and not torch.autograd.grad(), for what the optimiser uses."
            )

    def complete(self, bucket: Any) -> None:
        """Add to a bucket what only earlier passes have: of weights that the last did not use."""
        self._is_averaged = True
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True):
            found = self._sums.get(id(parameter))
            if found is not None and found.total is not None and self._passes.is_last:
                gradient.add_(found.total)
                found.total = None

    def _watch(self, parameters: Sequence[Any]) -> None:
        for hook in self._hooks:
            hook.remove()
        # Nodes that add to `grad`: unlike a tensor's hooks, theirs are not called by autograd.grad.
        self._nodes = [_node_of(each) for each in parameters]
        self._hooks = []
        for parameter, node in zip(parameters, self._nodes, strict=True):
            self._hooks.append(node.register_prehook(partial(self._take, parameter)))
            if parameter._backward_hooks and parameter.requires_grad:  # the script's own
                self._hooks.append(_first_hook(parameter, partial(self._note_arrival, parameter)))
        self._watched = [_key(each) for each in parameters]

    def _take(self, parameter: Any, gradients: Sequence[Any]) -> Any:
        """Take a gradient on its way to `grad`; return what is to go there instead."""
        passes, (gradient,) = self._passes, gradients
        if not passes.is_split or gradient is None:
            return None
        self._begin_backward()
        self._check_hooks(parameter, gradient)
        found = self._sums.setdefault(id(parameter), _Sum(before=parameter.grad))
        if found.pass_index != passes.index:
            found.pass_index = passes.index
            parameter.grad = found.before if passes.is_last else None
        elif not self._is_averaged and found.is_changed(parameter.grad):
            raise passes.error(
                "the gradient was cleared or changed between two backward() of one batch, which "
                "cannot be repeated for the sum of several passes: add up the losses, and call "
                "backward() once."
            )
        weight = passes.weights[passes.index]
        if not passes.is_last:
            found.add(gradient, weight)
            return None
        total, found.total = found.total, None
        share = gradient * weight
        return (share if total is None else _sum(share, total),)

    def _note_arrival(self, parameter: Any, gradient: Any) -> None:
        self._arrived[id(parameter)] = (gradient, gradient._version)

    def _check_hooks(self, parameter: Any, gradient: Any) -> None:
        """Raise ScriptError if a hook of the script has changed a gradient."""
        arrived = self._arrived.pop(id(parameter), None)
        if arrived is not None and (arrived[0] is not gradient or gradient._version != arrived[1]):
            raise self._passes.error(
                "a hook that the script has registered on a weight changes the gradient of each "
                "pass: change it before real steps only, in optimiser.register_step_pre_hook(...)."
            )

    def _begin_backward(self) -> None:
        if not self._is_in_backward:
            self._passes.note(GRADIENT)
            self._is_in_backward = self._has_any = True
            torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)

    def _end_backward(self) -> None:
        """Complete `grad` in the last pass, and note how it is left.

        More may come: activation checkpoints end a backward pass inside another.
        """
        self._is_in_backward = False
        is_last, index = self._passes.is_last, self._passes.index
        for parameter in self._parameters:
            found = self._sums.get(id(parameter))
            if found is None:
                continue
            if is_last and found.total is not None:  # the last pass did not use this weight
                before = found.before
                parameter.grad = found.total if before is None else _sum(before, found.total)
                found.total, found.pass_index = None, index
            if found.pass_index == index and parameter.grad is not None:
                found.left = (parameter.grad, parameter.grad._version)
        if is_last:
            self.when_whole()


def _can_be_trained(parameter: Any) -> bool:
    return bool(parameter.is_floating_point() or parameter.is_complex())


def _key(parameter: Any) -> tuple[int, bool]:
    """Return what a weight is watched by: which it is, and whether the script has hooks on it."""
    return id(parameter), bool(parameter._backward_hooks) and parameter.requires_grad


def _node_of(parameter: Any) -> Any:
    """Return the node that adds to a weight's `grad`, which outlives that the weight is frozen."""
    is_trained = parameter.requires_grad
    parameter.requires_grad_(True)
    try:
        return get_gradient_edge(parameter).node
    finally:
        parameter.requires_grad_(is_trained)


def _first_hook(parameter: Any, hook: Callable[[Any], None]) -> Any:
    """Register a hook ahead of those that a weight has; return what removes it."""
    hooks = parameter._backward_hooks
    before = dict(hooks)
    handle = parameter.register_hook(hook)
    for each in before:  # torch calls them in the order in which they were added
        hooks[each] = hooks.pop(each)
    return handle


def _sum(one: Any, other: Any) -> Any:
    """Return a sum of gradients, of which some may be sparse."""
    if one.layout == torch.strided:
        return one + other
    return other + one
