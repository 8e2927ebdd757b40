"""What tenants are owed: GPU-seconds that they deserved and did not have, from round to round.

Integer GPUs, and jobs that need several at once, make it impossible to give every tenant exactly
what it deserves in one round. What is owed makes up for it in later rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray

TURN_SECONDS = 1800.0
"""A GPU changes hands for what is owed once that is worth it for this long: moves cost restarts."""
FORGOTTEN_BELOW = 1.0  # GPU-seconds
_ROUNDING = 1e-9  # GPUs


@dataclass(frozen=True)
class Owed:
    """GPU-seconds by tenant at a time, and what decides how they grow from then on.

    Attributes:
        at: Cluster time, seconds.
        seconds: Above zero if the tenant had less than it deserved.
        due: GPUs that each tenant deserves, of those that could use more than they got, or got
            more than they deserve.
        got: GPUs that these tenants were given at `at`.
    """

    at: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)
    due: Mapping[str, float] = field(default_factory=dict)
    got: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Owed:
        return cls(**cast(Mapping[str, Any], data))

    def as_json(self) -> dict[str, object]:
        """Return JSON data; empty if nobody is owed anything."""
        return dict(vars(self)) if self.seconds or self.due else {}

    def by(
        self, now: float, tenants: Sequence[str], held: FloatArray, *, most: float
    ) -> FloatArray:
        """Return what K tenants are owed at a time, GPU-seconds, shape (K,).

        Jobs may have ended since `at`: on average in the middle. What the tenants of `due` held
        together they deserve in these proportions. What others are owed fades.

        `held`, (K,): GPUs that tenants hold now. `most`: nobody is owed more, or owes more.
        """
        passed = max(now - self.at, 0.0)
        before = np.array([self.seconds.get(tenant, 0.0) for tenant in tenants])
        due = np.array([self.due.get(tenant, 0.0) for tenant in tenants])
        got = np.array([self.got.get(tenant, 0.0) for tenant in tenants])
        short = np.array([tenant in self.due for tenant in tenants], dtype=bool)
        had = np.where(short, (got + np.minimum(held, got)) / 2, 0.0)
        part = due / due.sum() if due.sum() > 0 else due
        kept = np.where(short, 1.0, np.exp(-passed / TURN_SECONDS))
        owed: FloatArray = np.clip(before * kept + (part * had.sum() - had) * passed, -most, most)
        return owed


def owed_after(
    now: float,
    tenants: Sequence[str],
    *,
    owed: FloatArray,
    due: FloatArray,
    got: FloatArray,
    short: BoolArray,
) -> Owed:
    """Return what K tenants are owed from now on. Arrays have shape (K,).

    `short`: tenants that could use more than they got.
    """
    seconds = {
        tenant: float(value)
        for tenant, value in zip(tenants, owed.tolist(), strict=True)
        if abs(value) >= FORGOTTEN_BELOW
    }
    rows = np.flatnonzero(short | (due < got - _ROUNDING)).tolist() if short.any() else []
    return Owed(
        now,
        seconds,
        {tenants[k]: float(due[k]) for k in rows},
        {tenants[k]: float(got[k]) for k in rows},
    )


def deserved(
    demand: FloatArray, floor: FloatArray, weights: FloatArray, capacity: float
) -> FloatArray:
    """Return the GPUs that each of K tenants deserves, shape (K,).

        d_k = min(D_k, max(F_k, w_k x level)),  sum of d_k = min(N, sum of D_k)

    As `max_min_shares`, with a floor F_k (at most D_k): what is guaranteed and wanted. If the
    floors exceed the capacity N, they are what is deserved.
    """
    levels = np.unique(np.concatenate(([0.0], floor / weights, demand / weights)))
    sums = np.minimum(demand, np.maximum(floor, np.outer(levels, weights))).sum(axis=1)
    level = float(np.interp(capacity, sums, levels))
    return np.minimum(demand, np.maximum(floor, weights * level))
