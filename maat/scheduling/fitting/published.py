"""The search of the published simulators: one start, ended at 1e-5.

It stops short of the minimum where steps take milliseconds or samples are exact (minimum.py does
not). Its path decides its result, and the figures of the papers hang on that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.fitting.loss import FitLoss, priors
from maat.scheduling.fitting.samples import Sample
from maat.scheduling.one_thread import one_blas_thread

TOLERANCE = 1e-5


def published_search(samples: Sequence[Sample]) -> FloatArray:
    """Return where L-BFGS-B ends, shape (7,)."""
    from scipy.optimize import minimize  # takes 0.3 s; a client or a page never fits

    begin = priors(samples)
    # Fixed parameters stay in the minimiser: they change the steps of the others, and the search
    # ends (at 1e-5) before that effect is gone.
    at = _Remembered(FitLoss(samples))
    with one_blas_thread():
        ended = minimize(
            at.loss,
            begin.start,
            jac=at.gradient,
            method="L-BFGS-B",
            bounds=np.stack((begin.lower, begin.upper), axis=1),
            tol=TOLERANCE,
        )
    return np.asarray(ended.x, dtype=np.float64)


class _Remembered:
    """Loss and gradient, computed once for both.

    The minimiser asks for one after the other at the same point.
    """

    def __init__(self, both: FitLoss) -> None:
        self._both, self._point, self._gradient = both, b"", np.zeros(0)

    def loss(self, x: FloatArray) -> float:
        value, self._gradient = self._both(x)
        self._point = x.tobytes()
        return value

    def gradient(self, x: FloatArray) -> FloatArray:
        if x.tobytes() != self._point:
            self.loss(x)
        return self._gradient
