"""Sia's objective over the pairs of a round (eq. 4), as data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from maat.scheduling.arrays import FloatArray


@dataclass(frozen=True)
class Objective:
    """What every pair, and leaving a job idle, counts.

    `utility`: (r_i G_ij)^p, shape (P,). `weight`: of the pair's job, (P,). `idle_penalty`: lambda.
    `minimised`: p < 0, so that the paper minimises the sum.
    """

    utility: FloatArray
    weight: FloatArray
    idle_penalty: float
    minimised: bool

    @cached_property
    def value(self) -> FloatArray:
        """The value of a pair over leaving the job idle, shape (P,).

        lambda - (r G)^p for p < 0, (r G)^p + lambda for p > 0.
        """
        above = (
            self.idle_penalty - self.utility
            if self.minimised
            else (self.utility + self.idle_penalty)
        )
        value: FloatArray = self.weight * above
        return value
