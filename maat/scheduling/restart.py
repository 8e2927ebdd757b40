"""The restart factor: the discount on a change of configuration (Sia eq. 3)."""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import FloatArray


def restart_factor(
    age_seconds: FloatArray,
    restarts: FloatArray,
    restart_seconds: FloatArray,
    *,
    young_move_freely: bool = False,
) -> FloatArray:
    """Return r = max(T - N S, 0) / (T + S).

    T is age, N restarts so far, S the seconds of one; shapes broadcast. `young_move_freely`: r = 1
    while T < S, as in the published simulator: a job younger than one restart is not bound to its
    first place.
    """
    factor = np.maximum(age_seconds - restarts * restart_seconds, 0.0) / np.maximum(
        age_seconds + restart_seconds, 1e-12
    )
    return np.where(age_seconds < restart_seconds, 1.0, factor) if young_move_freely else factor
