"""Statistical efficiency: the value of a sample in a larger batch.

It is relative to a sample at the initial batch size.
"""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import FloatArray


def efficiency(
    noise_scale: FloatArray, initial_batch_size: FloatArray, total_batch_size: FloatArray
) -> FloatArray:
    """Return EFFICIENCY(M) = (phi + M0) / (phi + M) (Pollux eq. 6).

    In (0, 1] for M >= M0. Shapes broadcast.
    """
    return (noise_scale + initial_batch_size) / (noise_scale + total_batch_size)


def noise_scale(
    gradient_square: FloatArray | float,
    gradient_variance: FloatArray | float,
    initial_batch_size: FloatArray | float,
) -> FloatArray:
    """Return phi = M0 var / sqr, in samples (Pollux eq. 5).

    var is the variance of the gradient at batch size M0. A vanishing gradient gives a very large
    phi: every batch is then as good as another. No variance gives 0.
    """
    square = np.maximum(np.asarray(gradient_square, dtype=np.float64), 1e-300)
    with np.errstate(over="ignore"):  # infinite noise is bounded like any that is very large
        phi = np.asarray(initial_batch_size) * np.maximum(gradient_variance, 0.0) / square
    return np.minimum(phi, 1e18)
