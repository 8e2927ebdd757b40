"""The script's gradient scaler, which does nothing inside an accumulation."""

from __future__ import annotations

from typing import Any

import torch

from maat.agent.optimiser import AdaptiveOptimiser


class AdaptiveScaler:
    """Stands for a torch.amp.GradScaler: its scale holds until a step of the batch plan ends."""

    def __init__(self, inner: torch.amp.GradScaler, optimiser: AdaptiveOptimiser) -> None:
        self.inner, self._optimiser = inner, optimiser

    def scale(self, outputs: Any) -> Any:
        """Return losses times the scale."""
        return self.inner.scale(outputs)

    def unscale_(self, optimiser: Any) -> None:
        if self._optimiser.passes.is_last:
            self.inner.unscale_(optimiser)

    def step(self, optimiser: Any) -> Any:
        """Step, unless a gradient is not finite or the step has passes to come."""
        self._optimiser.note_step()
        if not self._optimiser.passes.is_last:
            return None
        self._optimiser.is_unscaled = True
        try:
            return self.inner.step(optimiser)
        finally:
            self._optimiser.is_unscaled = False
            self._optimiser.passes.is_skipped = not self._optimiser.has_stepped

    def update(self, new_scale: Any = None) -> None:
        if self._optimiser.passes.is_last:
            self.inner.update(new_scale)

    def get_scale(self) -> float:
        return float(self.inner.get_scale())

    def is_enabled(self) -> bool:
        return bool(self.inner.is_enabled())

    def state_dict(self) -> Any:
        return self.inner.state_dict()

    def load_state_dict(self, state_dict: Any) -> None:
        self.inner.load_state_dict(state_dict)
