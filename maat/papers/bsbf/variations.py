"""What is varied to find why SJF-FFS falls behind SJF: one thing at a time of docs/sharing.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from maat.simulation.interference import Interference, synthetic
from maat.simulation.world_models import Model, catalog_models
from maat.workloads.sharing import MODELS, USUAL, SharingShape


@dataclass(frozen=True, slots=True)
class Setting:
    """The workload and the rules that can vary.

    `interference_scale`: share of each pair's loss, 1 for all of it, 0 for none.
    """

    shape: SharingShape = field(default=USUAL)
    memory: bool = True
    restarts: bool = True
    interference_scale: float = 1.0

    @property
    def models(self) -> Mapping[str, Model]:
        """The catalog's models with the memory and the restart of the setting."""
        return {name: self._model(model) for name, model in catalog_models().items()}

    @property
    def interference(self) -> Interference:
        """The declared table with this share of every pair's loss: 1 + scale (xi - 1)."""
        table, scale = synthetic(), self.interference_scale
        if scale == 1.0:
            return table
        pairs = {
            pair: {n: 1.0 + scale * (xi - 1.0) for n, xi in by_count.items()}
            for pair, by_count in table.pairs.items()
        }
        return replace(table, name=f"{scale:g} x {table.name}", pairs=pairs)

    @property
    def mean_slowdown(self) -> float:
        """The mean slowdown of a job by another, both of random models."""
        table = self.interference.between(list(MODELS), (1,))
        share = np.array(list(MODELS.values())) / sum(MODELS.values())
        by_pair = np.array([[table[a, b, 1] for b in MODELS] for a in MODELS])
        return float(share @ by_pair @ share)

    def _model(self, model: Model) -> Model:
        if not self.restarts:
            model = replace(model, restart_seconds=0.0)
        if self.memory:
            return model
        unfilled = {t: replace(limits, fills_gpu=False) for t, limits in model.memory.items()}
        return replace(model, memory=unfilled)


DECLARED = "declared table"
SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        DECLARED: Setting(),
        "half of what each pair loses": Setting(interference_scale=0.5),
        "a quarter of what each pair loses": Setting(interference_scale=0.25),
        "running times of sigma 1.0": Setting(replace(USUAL, sigma=1.0)),
        "running times of sigma 2.2": Setting(replace(USUAL, sigma=2.2)),
        "6 % large jobs": Setting(replace(USUAL, large_share=0.06)),
        "24 % large jobs": Setting(replace(USUAL, large_share=0.24)),
        "submitted within 5 hours": Setting(replace(USUAL, hours=5.0)),
        "memory always suffices": Setting(memory=False),
        "starting costs nothing": Setting(restarts=False),
    }
)
