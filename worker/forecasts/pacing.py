"""How finely the draws of a cluster are played, by its size: a large one's rounds take longer."""

from __future__ import annotations

from dataclasses import replace

from maat.forecasting.forecast import PACING, TOLERANCE
from maat.forecasting.play import Pacing
from maat.forecasting.present import Present

_FINE = 200
"""Up to so many jobs, draws are played as finely as is useful."""
QUICK = Pacing(
    resolution=0.2,
    standing=0.5,
    played_seconds=6 * 3600.0,
    fine_job_rounds=6_000.0,
    tolerance=TOLERANCE,
)
"""A hundred jobs of hours need up to 6,000 job-rounds; those that outlast the horizon, 40,000."""
COARSEST = Pacing(resolution=1.0, standing=2.0)


def pacing_of(present: Present) -> Pacing:
    """Return the pacing: coarser in proportion to the jobs beyond a number."""
    return _coarser(PACING, present)


def quick_pacing_of(present: Present) -> Pacing:
    """Return the pacing of an answer that somebody waits for."""
    return _coarser(QUICK, present)


def _coarser(pacing: Pacing, present: Present) -> Pacing:
    factor = max(len(present.job_ids) / _FINE, 1.0)
    return replace(
        pacing,
        resolution=min(pacing.resolution * factor, COARSEST.resolution),
        standing=min(pacing.standing * factor, COARSEST.standing),
        fine_job_rounds=pacing.fine_job_rounds * factor,
    )
