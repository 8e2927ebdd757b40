"""Keeps the passes of a step from the script: all that watches its loop, in one order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from maat.agent.gradients import StepGradients
from maat.agent.loop.check import LoopCheck
from maat.agent.losses import LossCheck
from maat.agent.optimiser import AdaptiveOptimiser, torch_optimiser
from maat.agent.passes import STEP, Passes
from maat.agent.schedules import Schedules
from maat.agent.weights import WeightWatch
from maat.agent.words import say


class Split:
    """What a split of steps into passes needs, around the script's loop.

    `rate` returns the factor of the learning rate for a step.
    """

    def __init__(
        self,
        model: Any,
        optimiser: Any,
        rate: Callable[[], float],
        *,
        replicas: int,
        dataset: Any = None,
    ) -> None:
        self._model = model
        parameters = _parameters(model, optimiser, replicas=replicas)
        self.passes = Passes()
        self.optimiser = AdaptiveOptimiser(
            optimiser, self.passes, before=rate, noted=self._note_step
        )
        self.schedules = Schedules(self.passes, torch_optimiser(optimiser), self.optimiser)
        self.gradients = StepGradients(self.passes, parameters, are_averaged=replicas > 1)
        self._weights = WeightWatch(self.passes, parameters)
        self._loop = LoopCheck(parameters, dataset)
        self._losses = LossCheck(self.passes)
        self._others: Any = None
        self._is_searched = self._has_warned = False

    def begin_loop(self) -> None:
        """Begin a loop over the loader."""
        self.passes.begin_loop()
        self._is_searched = False

    def begin_step(self, sizes: Sequence[int], *, due: int) -> None:
        """Begin a step of so many samples in each pass; schedules move by `due` steps."""
        self.passes.begin_step(sizes)
        self.schedules.due = due
        self.gradients.begin_step()
        if not self.passes.are_several:
            return
        if not self._is_searched:
            self._is_searched = True
            self.schedules.look_for_others()
            self._loop.check()
        self._warn()
        self._weights.begin_step()
        self._losses.start(sizes)
        self._others = register_optimizer_step_pre_hook(self.optimiser.check_other)

    def begin_pass(self, index: int) -> None:
        """Give the script a batch."""
        self.passes.begin(index)
        self.gradients.begin_pass()
        self.schedules.begin_pass()
        self._weights.begin_pass()

    def end_pass(self) -> None:
        """Check what the script did with a batch. Raises ScriptError."""
        self._weights.end()
        self._weights.check_unchanged()
        self.schedules.check_unmoved()
        self.passes.end()

    def drop_step(self) -> None:
        """Forget the passes of a step that is begun again."""
        self.gradients.drop()
        self.optimiser.zero_grad()

    def leave(self) -> None:
        """Watch nothing until the next step."""
        self._weights.end()
        self._losses.end()
        self.passes.leave()
        if self._others is not None:
            self._others.remove()
            self._others = None

    def _note_step(self) -> None:
        """Check what the script did before it called optimiser.step(). Raises ScriptError."""
        self.gradients.check_made()
        self.schedules.check_unmoved()
        self._weights.check_unchanged()
        self.passes.note(STEP)
        self._weights.start()

    def _warn(self) -> None:
        """Say once what passes cannot make equal to one."""
        norms = torch.nn.modules.batchnorm._BatchNorm
        if self._has_warned or not any(isinstance(each, norms) for each in self._model.modules()):
            return
        self._has_warned = True
        say(
            "the model has batch normalisation, which sees the samples of one pass: a step of "
            "several passes gives it other means and variances than one pass would"
        )


def _parameters(model: Any, optimiser: Any, *, replicas: int) -> list[Any]:
    """Return the weights that are trained. Raises ValueError for those no replica would share."""
    of_model = {id(each): each for each in model.parameters()}
    groups = torch_optimiser(optimiser).param_groups
    of_optimiser = {id(each): each for group in groups for each in group["params"]}
    others = [each for name, each in of_optimiser.items() if name not in of_model]
    if others and replicas > 1:
        raise ValueError(
            f"The optimiser has {len(others)} weights that are not the model's, and they would not "
            "be averaged over the replicas: make them a part of the model."
        )
    return [*of_model.values(), *others]
