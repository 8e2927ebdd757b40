"""The script's optimiser, which steps at the last pass of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from maat.agent.passes import Passes
from maat.agent.script import ScriptTypeError

ADAPTIVE = (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam)


def torch_optimiser(optimiser: Any) -> Any:
    """Return the optimiser that Accelerate or Lightning has wrapped."""
    while isinstance(inner := getattr(optimiser, "optimizer", None), torch.optim.Optimizer):
        optimiser = inner
    return optimiser


def scale_of(optimiser: Any) -> Callable[[], float] | None:
    """Return what reads the scale of losses, if Accelerate has put a scaler into an optimiser."""
    scaler = getattr(optimiser, "scaler", None)
    return None if scaler is None else scaler.get_scale


class AdaptiveOptimiser(torch.optim.Optimizer):
    """Stands for an optimiser: steps where a step of the batch plan ends.

    `before` is called ahead of each real step and returns the factor of the learning rate for it.
    The optimiser's own rate is left to the script's scheduler. `noted` is called for each step()
    of the script.

    Attributes:
        has_stepped: The weights may have changed in this step.
        is_unscaled: The job's gradient scaler has made gradients what they are without it.
    """

    def __init__(
        self,
        inner: Any,
        passes: Passes,
        *,
        before: Callable[[], float],
        noted: Callable[[], object] = lambda: None,
    ) -> None:
        # Not the parent's: all state is the inner one's.
        self.inner, self.passes = inner, passes
        self._before, self.note_step = before, noted
        self.has_stepped = self.is_unscaled = self._is_stepping = False
        torch_optimiser(inner).register_step_pre_hook(self._check_caller)

    @property
    def param_groups(self) -> Any:
        return self.inner.param_groups

    @property
    def state(self) -> Any:
        return self.inner.state

    @property
    def defaults(self) -> Any:
        return self.inner.defaults

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Have a GradScaler say itself (`grad_scale`), unless it is the job's own."""
        return not self.is_unscaled

    def step(self, closure: Any = None) -> Any:
        if closure is not None:
            raise ScriptTypeError(
                "step() takes no closure here: one that computes the loss again, as L-BFGS needs, "
                "cannot run in passes."
            )
        if hasattr(self, "grad_scale"):
            raise ScriptTypeError(
                "This GradScaler knows nothing of steps in several passes: take the one that "
                "job.scaler(scaler) returns."
            )
        if not self.is_unscaled:
            self.note_step()
        if not self.passes.is_last:
            return None
        factor = self._before()
        rates = [group["lr"] for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] = group["lr"] * factor
        self.has_stepped = self._is_stepping = True
        try:
            return self.inner.step()
        finally:
            self._is_stepping = False
            for group, rate in zip(self.param_groups, rates, strict=True):
                group["lr"] = rate

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.inner.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> Any:
        return self.inner.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.inner.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.inner.add_param_group(param_group)

    def register_step_pre_hook(self, hook: Any) -> Any:
        """Call a hook ahead of each real step."""
        return torch_optimiser(self.inner).register_step_pre_hook(hook)

    def register_step_post_hook(self, hook: Any) -> Any:
        return torch_optimiser(self.inner).register_step_post_hook(hook)

    def check_other(self, optimiser: Any, *_: Any) -> None:
        """Raise ScriptError for another optimiser that steps on a part of a step."""
        is_other = optimiser is not torch_optimiser(self.inner)
        if is_other and self.passes.is_split and not self._is_stepping:
            raise self.passes.error(
                f"a second optimiser ({type(optimiser).__name__}) would step once a pass: give "
                "one optimiser to adapt(), with a group for each part of the weights."
            )

    def _check_caller(self, *_: Any) -> None:
        """Raise ScriptError if the script steps past this one, and that makes a difference."""
        if not self.passes.is_under_way or self._is_stepping:
            return
        if self.passes.are_several or self._before() != 1.0:
            raise self.passes.error(
                "this is step() of the optimiser that adapt() was given, which knows nothing of "
                "batch plans: call that of the one that adapt() returns."
            )

    def __repr__(self) -> str:
        return f"AdaptiveOptimiser({self.inner!r})"
