"""The script's optimiser, which does nothing inside an accumulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

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
    """Stands for an optimiser: steps and clears gradients where a step of the batch plan ends.

    `before` is called ahead of each real step and returns the factor of the learning rate for it.
    The optimiser's own rate is left to the script's scheduler.

    Attributes:
        has_stepped: The weights may have changed in this step.
        is_unscaled: The job's gradient scaler has made gradients what they are without it.
    """

    def __init__(self, inner: Any, before: Callable[[], float]) -> None:
        # Not the parent's: all state is the inner one's.
        self.inner, self._before = inner, before
        self.is_first_pass = self.is_last_pass = True
        self.has_stepped = self.is_unscaled = False

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
            raise TypeError(
                "step() takes no closure here: one that computes the loss again, as L-BFGS needs, "
                "cannot run in passes."
            )
        if hasattr(self, "grad_scale"):
            raise TypeError(
                "This GradScaler knows nothing of steps in several passes: take the one that "
                "job.scaler(scaler) returns."
            )
        if not self.is_last_pass:
            return None
        factor = self._before()
        rates = [group["lr"] for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] = group["lr"] * factor
        self.has_stepped = True
        try:
            return self.inner.step()
        finally:
            for group, rate in zip(self.param_groups, rates, strict=True):
                group["lr"] = rate

    def zero_grad(self, set_to_none: bool = True) -> None:
        if self.is_first_pass:
            self.inner.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> Any:
        return self.inner.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.inner.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.inner.add_param_group(param_group)

    def register_step_pre_hook(self, hook: Any) -> Any:
        """Call a hook ahead of each real step: the place to clip gradients in."""
        return torch_optimiser(self.inner).register_step_pre_hook(hook)

    def register_step_post_hook(self, hook: Any) -> Any:
        return torch_optimiser(self.inner).register_step_post_hook(hook)

    def __repr__(self) -> str:
        return f"AdaptiveOptimiser({self.inner!r})"
