"""The pace of what is left of a job, by its pace so far and by how jobs went that ended.

How far a pace so far tells of the rest is learnt of them too. Where jobs of a model differ, it says
nearly all. Where they are alike it says little: it was measured on a few configurations, early on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.forecasting.history import Halves
from maat.scheduling.arrays import FloatArray

PRIOR_WEIGHT = 4
"""Ended jobs that the prior counts as. Of slopes it is 1: a job goes on at its own pace."""


@dataclass(frozen=True)
class Rest:
    """Logarithms of the paces of N jobs before and after a part of their work, shapes (N,).

    `slope`: of the later ones on the earlier ones, between 0 and 1. `error`: its standard error.
    """

    before: FloatArray
    after: FloatArray
    slope: float
    error: float

    @classmethod
    def of(cls, halves: Sequence[Halves]) -> Rest:
        before = np.log([one.before for one in halves])
        after = np.log([one.after for one in halves])
        slope, error = _slope(before, after)
        return cls(before, after, slope, error)

    def __len__(self) -> int:
        return len(self.before)

    def middle(self, so_far: float) -> float:
        """Return the median pace of what is left."""
        return math.exp(
            float(np.median(self.after + self.slope * (math.log(so_far) - self.before)))
        )

    def drawn(self, so_far: float, rng: np.random.Generator) -> float:
        """Draw the pace of what is left: as another one went on, by a slope that may be wrong."""
        one = int(rng.random() * len(self))
        slope = min(max(self.slope + self.error * rng.standard_normal(), 0.0), 1.0)
        return math.exp(self.after[one] + slope * (math.log(so_far) - self.before[one]))


def _slope(before: FloatArray, after: FloatArray) -> tuple[float, float]:
    """Return the slope of the regression, with its prior, and its standard error."""
    count = len(before)
    spread = float(before.var()) if count else 0.0
    if spread < 1e-12:
        return 1.0, 0.0
    own = float(np.mean((before - before.mean()) * (after - after.mean()))) / spread
    slope = min(max((count * own + PRIOR_WEIGHT) / (count + PRIOR_WEIGHT), 0.0), 1.0)
    left = float((after - slope * before).var())
    return slope, math.sqrt(left / (spread * (count + PRIOR_WEIGHT)))
