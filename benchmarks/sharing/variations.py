"""What docs/sharing.md varies to find why SJF-FFS falls behind SJF.

`AS_FIXED` is the experiment itself. Plays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from maat.simulation.interference import Interference
from maat.simulation.world_models import Model


@dataclass(frozen=True, slots=True)
class Setting:
    """The workload and the rules that can vary.

    `interference_scale`: share of each pair's loss, 1 for all of it, 0 for none.
    """

    hours: float = 8.0
    large_share: float = 0.12
    mean_hours_large: float = 1.74
    mean_hours_small: float = 0.55
    sigma: float = 1.6
    memory: bool = True
    restarts: bool = True
    interference_scale: float = 1.0


AS_FIXED = Setting()
VARIATIONS: Mapping[str, Setting] = MappingProxyType(
    {
        "": AS_FIXED,
        "half of what each pair loses": replace(AS_FIXED, interference_scale=0.5),
        "a quarter of what each pair loses": replace(AS_FIXED, interference_scale=0.25),
        "running times of sigma 1.0": replace(AS_FIXED, sigma=1.0),
        "running times of sigma 2.2": replace(AS_FIXED, sigma=2.2),
        "6 % large jobs": replace(AS_FIXED, large_share=0.06),
        "24 % large jobs": replace(AS_FIXED, large_share=0.24),
        "submitted within 5 hours": replace(AS_FIXED, hours=5.0),
        "memory always suffices": replace(AS_FIXED, memory=False),
        "starting costs nothing": replace(AS_FIXED, restarts=False),
    }
)


def with_setting(model: Model, setting: Setting) -> Model:
    """Return the model with the memory and the restart of a setting."""
    if not setting.restarts:
        model = replace(model, restart_seconds=0.0)
    if not setting.memory:
        model = replace(
            model,
            memory={t: replace(limits, fills_gpu=False) for t, limits in model.memory.items()},
        )
    return model


def scaled(interference: Interference, scale: float) -> Interference:
    """Scale the loss of every pair: xi becomes 1 + scale (xi - 1). Constants stay."""
    if scale == 1.0 or interference.everywhere is not None:
        return interference
    pairs = {
        pair: {n: 1.0 + scale * (xi - 1.0) for n, xi in by_count.items()}
        for pair, by_count in interference.pairs.items()
    }
    return replace(interference, name=f"{scale:g} x {interference.name}", pairs=pairs)
