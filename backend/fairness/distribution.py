"""The distribution of rho over jobs: exact values, or sums of days in a sketch. Pure.

The sums of two days add up, so a year is told from its days: number, mean, worst and share above 1
exactly, quantiles to the share ERROR (backend/usage/sketch.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from backend.usage import sketch
from maat.api.fairness import FEW_JOBS, MOST_POINTS, CdfPointOut, RhoFiguresOut, TenantRhoOut

ERROR = sketch.ERROR
_UNIT = 1e-3  # a sketch tells values above one of its unit to the share ERROR
_MICRO = 1e-6


@dataclass(frozen=True)
class RhoSums:
    """What is kept of the rho of some jobs.

    `micros`: sum of rho in millionths; whole, so that the order of adding does not matter.
    `unfair`: jobs with rho above 1.
    """

    jobs: int
    micros: int
    unfair: int
    worst: float
    sketch: bytes

    @classmethod
    def of(cls, rho: Sequence[float]) -> RhoSums:
        """Return the sums of these jobs; there is at least one."""
        values = np.array(rho)
        return cls(
            jobs=len(values),
            micros=int(np.rint(values / _MICRO).astype(np.int64).sum()),
            unfair=int((values > 1).sum()),
            worst=float(values.max()),
            sketch=sketch.packed(values / _UNIT),
        )


@dataclass(frozen=True)
class Distribution:
    """rho of jobs: `exact`, ascending, or `sums` of days if they are many days."""

    exact: Sequence[float] = ()
    sums: Sequence[RhoSums] = ()

    @classmethod
    def merged(cls, parts: Iterable[Distribution]) -> Distribution:
        """Return the distribution of all their jobs; it is exact if all of them are."""
        found = list(parts)
        exact = sorted(rho for part in found for rho in part.exact)
        return cls(exact, [one for part in found for one in part.sums])

    @cached_property
    def jobs(self) -> int:
        return len(self.exact) + sum(one.jobs for one in self.sums)

    @property
    def figures(self) -> RhoFiguresOut:
        if not self.jobs:
            return RhoFiguresOut(
                jobs=0, mean=None, median=None, p90=None, worst=None, unfair_share=None
            )
        values = np.array(self.exact)
        if not self.sums:
            return RhoFiguresOut(
                jobs=self.jobs,
                mean=float(values.mean()),
                median=float(np.median(values)),
                p90=self.exact[-(-9 * self.jobs // 10) - 1],
                worst=float(values[-1]),
                unfair_share=float((values > 1).mean()),
            )
        all_of = self._all
        median, p90 = self._quantiles([0.5, 0.9])
        return RhoFiguresOut(
            jobs=self.jobs,
            mean=sum(one.micros for one in all_of) * _MICRO / self.jobs,
            median=median,
            p90=p90,
            worst=max(one.worst for one in all_of),
            unfair_share=sum(one.unfair for one in all_of) / self.jobs,
        )

    def shown(self, tenant: str | None, points: int = MOST_POINTS) -> TenantRhoOut:
        """Return the figures and the CDF in at most `points` points."""
        many = self.jobs
        # The last point is the worst job, whatever the number of points.
        ranks = np.unique(np.linspace(many, 1, min(many, points)).round().astype(int)).tolist()
        if self.sums and ranks:
            values = self._quantiles([rank / many for rank in ranks])
        else:
            values = [self.exact[rank - 1] for rank in ranks]
        return TenantRhoOut(
            tenant=tenant,
            figures=self.figures,
            is_few=many < FEW_JOBS,
            cdf=[
                CdfPointOut(rho=rho, share=rank / many)
                for rho, rank in zip(values, ranks, strict=True)
            ],
        )

    @cached_property
    def _all(self) -> Sequence[RhoSums]:
        return [*self.sums, RhoSums.of(self.exact)] if self.exact else self.sums

    @cached_property
    def _sketch(self) -> bytes:
        return sketch.merged(one.sketch for one in self._all)

    def _quantiles(self, shares: Sequence[float]) -> list[float]:
        worst = max(one.worst for one in self._all)
        return [min(value * _UNIT, worst) for value in sketch.quantiles(self._sketch, shares)]
