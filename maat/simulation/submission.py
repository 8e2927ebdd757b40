"""A job for the simulated executor: its declaration, and what it truly is."""

from __future__ import annotations

from dataclasses import dataclass

from maat.models.truth import Truth
from maat.scheduling.job import JobSpec
from maat.scheduling.regimes import Regime


@dataclass(frozen=True)
class Submission:
    """A job to submit to the simulated executor.

    `restart_seconds`: the true cost of one restart. `work_scale`: share of the model's standard
    training. `regimes`: batch sizes that the job sets itself, epoch by epoch.
    """

    spec: JobSpec
    truth: Truth
    restart_seconds: float
    work_scale: float = 1.0
    regimes: tuple[Regime, ...] = ()
