"""The script's optimiser, which does nothing inside an accumulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

ADAPTIVE = (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam)


class AdaptiveOptimiser(torch.optim.Optimizer):
    """Stands for an optimiser: steps and clears gradients where a step of the batch plan ends.

    `before` is called ahead of each real step and returns the factor of the learning rate for it.
    The optimiser's own rate is left to the script's scheduler.
    """

    def __init__(self, inner: Any, before: Callable[[], float]) -> None:
        # Not the parent's: all state is the inner one's.
        self.inner, self._before = inner, before
        self.is_first_pass = self.is_last_pass = True

    @property
    def param_groups(self) -> Any:
        return self.inner.param_groups

    @property
    def state(self) -> Any:
        return self.inner.state

    @property
    def defaults(self) -> Any:
        return self.inner.defaults

    def step(self, closure: Any = None) -> Any:
        if closure is not None:
            raise TypeError(
                "step() takes no closure here: one that computes the loss again, as L-BFGS needs, "
                "cannot run in passes."
            )
        if not self.is_last_pass:
            return None
        factor = self._before()
        rates = [group["lr"] for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] = group["lr"] * factor
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
        return self.inner.register_step_pre_hook(hook)

    def register_step_post_hook(self, hook: Any) -> Any:
        return self.inner.register_step_post_hook(hook)

    def __repr__(self) -> str:
        return f"AdaptiveOptimiser({self.inner!r})"
