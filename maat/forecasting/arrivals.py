"""How jobs come again that came in the last day. Knows no jobs: only when each came."""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray

HOUR_SECONDS, DAY_SECONDS = 3600.0, 86_400.0


class Coming:
    """How the arrivals of one day come again in one draw. `ago`: shape (N,), seconds before now.

    One day does not say at which rate each kind of job comes: it comes as often as a Poisson
    variable says, of a rate that is exponential about what was seen. It says the hour and not the
    minute: each comes about an hour earlier or later. And it does not say whether load follows the
    time of the day: in half of the draws the day begins at any other time.
    """

    def __init__(self, ago: FloatArray, stand_for: float, rng: np.random.Generator) -> None:
        self._rate = stand_for * rng.exponential(1.0, len(ago))
        shift = rng.uniform(0.0, DAY_SECONDS) if rng.random() < 0.5 else 0.0
        self._after = DAY_SECONDS - ago + shift

    def often(self, rng: np.random.Generator) -> IntArray:
        return rng.poisson(self._rate)

    def after(self, rows: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return when these rows come, seconds from the beginning of a day of the draw."""
        return (self._after[rows] + HOUR_SECONDS * rng.standard_normal(len(rows))) % DAY_SECONDS
