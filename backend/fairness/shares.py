"""What each tenant deserved of a cluster and what its jobs held, over spans of time. Pure.

A tenant demands the GPUs that its unfinished jobs could use. What it deserves is the max-min share
of the GPUs in service by weight (maat.scheduling.deserved), at every moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.deserved import max_min_shares

_AT_ONCE = 200_000  # values of one array: moments x tenants

DEFAULT_WEIGHT = 1.0


class Wanting(NamedTuple):
    """A job: it could use `gpus` GPUs from `begin` to `end`, seconds; negative while paused."""

    tenant_id: str
    begin: float
    end: float
    gpus: float


class Holding(NamedTuple):
    """A job held `gpus` GPUs from `begin` to `end`, seconds."""

    tenant_id: str
    begin: float
    end: float
    gpus: float


class Weights(NamedTuple):
    """What tenants weigh from a cluster time on, by id; who is not named weighs 1."""

    at: float
    by_tenant: Mapping[str, float]


class Capacity(NamedTuple):
    """From `at` on, `gpus` GPUs were in service."""

    at: float
    gpus: float


@dataclass(frozen=True)
class Shares:
    """GPU seconds of K tenants in B spans of time.

    `deserved`, `held`, `demanded`, shape (B, K): columns as in `tenants`. `capacity`, shape (B,).
    """

    tenants: tuple[str, ...]
    deserved: FloatArray
    held: FloatArray
    demanded: FloatArray
    capacity: FloatArray


def shares_over(
    edges: Sequence[float],
    wanting: Sequence[Wanting],
    holding: Sequence[Holding],
    capacity: Sequence[Capacity],
    *,
    weights: Sequence[Weights] = (),
) -> Shares:
    """Return the shares of the spans between `edges`, ascending, (B + 1,).

    Exact: every moment at which a job came or ended, or GPUs came or went, counts. `capacity`: in
    order of time; the first holds before it too. `weights`: likewise; all weigh 1 without any.
    """
    ids = {one.tenant_id for one in wanting} | {one.tenant_id for one in holding}
    tenants = tuple(sorted(ids))
    place = {tenant: k for k, tenant in enumerate(tenants)}
    at = np.array(edges, dtype=float)
    moments = _moments(at, wanting, capacity, weights)
    weight = _weights_at(moments[:-1], weights, tenants)
    gpus = _in_service(moments[:-1], capacity)
    length = np.diff(moments)
    span = np.searchsorted(at, moments[:-1], side="right") - 1
    deserved, demanded = (np.zeros((len(at) - 1, len(tenants))) for _ in range(2))
    demand = _Demand(wanting, place)
    step = max(_AT_ONCE // max(len(tenants), 1), 1)
    for first in range(0, len(length), step):
        part = slice(first, first + step)
        asked = np.minimum(demand.at(moments[:-1][part]), gpus[part][:, None])
        fair = max_min_shares(asked, weight[part], gpus[part])
        np.add.at(demanded, span[part], asked * length[part][:, None])
        np.add.at(deserved, span[part], fair * length[part][:, None])
    return Shares(
        tenants,
        deserved,
        _held_gpu_seconds(at, holding, place),
        demanded,
        np.bincount(span, weights=gpus * length, minlength=len(at) - 1).astype(np.float64),
    )


def _moments(
    at: FloatArray,
    wanting: Sequence[Wanting],
    capacity: Sequence[Capacity],
    weights: Sequence[Weights],
) -> FloatArray:
    """All moments from the first edge to the last at which something changes, and the edges."""
    changes = [
        *(time for one in wanting for time in (one.begin, one.end)),
        *(one.at for one in capacity),
        *(one.at for one in weights),
    ]
    inside = np.array(changes, dtype=float)
    inside = inside[(inside > at[0]) & (inside < at[-1])]
    return np.unique(np.concatenate([at, inside]))


def _weights_at(
    moments: FloatArray, weights: Sequence[Weights], tenants: Sequence[str]
) -> FloatArray:
    """Return the tenants' weights at E moments, shape (E, K)."""
    rows = [[one.by_tenant.get(each, DEFAULT_WEIGHT) for each in tenants] for one in weights]
    known = np.array(rows or [[DEFAULT_WEIGHT] * len(tenants)], dtype=float)
    begins = np.array([one.at for one in weights[1:]])
    found: FloatArray = known[np.searchsorted(begins, moments, side="right")]
    return found


def _in_service(moments: FloatArray, capacity: Sequence[Capacity]) -> FloatArray:
    if not capacity:
        return np.zeros(len(moments))
    begins = np.array([one.at for one in capacity])
    gpus = np.array([float(one.gpus) for one in capacity])
    found: FloatArray = gpus[np.maximum(np.searchsorted(begins, moments, side="right") - 1, 0)]
    return found


class _Demand:
    """The GPUs that the jobs of each tenant could use, as a function of time."""

    def __init__(self, wanting: Sequence[Wanting], place: Mapping[str, int]) -> None:
        self._tenants = len(place)
        times: list[list[float]] = [[] for _ in place]
        changes: list[list[float]] = [[] for _ in place]
        for one in wanting:
            k = place[one.tenant_id]
            times[k] += (one.begin, one.end)
            changes[k] += (one.gpus, -one.gpus)
        self._times: list[FloatArray] = []
        self._sums: list[FloatArray] = []
        for mine, change in zip(times, changes, strict=True):
            order = np.argsort(mine, kind="stable")
            self._times.append(np.array(mine)[order])
            self._sums.append(np.concatenate([[0.0], np.cumsum(np.array(change)[order])]))

    def at(self, moments: FloatArray) -> FloatArray:
        """Return the demand of each tenant, shape (E, K)."""
        found = np.zeros((len(moments), self._tenants))
        for k, (times, sums) in enumerate(zip(self._times, self._sums, strict=True)):
            found[:, k] = sums[np.searchsorted(times, moments, side="right")]
        return np.maximum(found, 0.0)


def _held_gpu_seconds(
    at: FloatArray, holding: Sequence[Holding], place: Mapping[str, int]
) -> FloatArray:
    """GPU seconds held in each span, shape (B, K)."""
    found = np.zeros((len(at) - 1, len(place)))
    if not holding:
        return found
    begin, end, gpus = (
        np.array([getattr(one, name) for one in holding], dtype=float)
        for name in ("begin", "end", "gpus")
    )
    k: IntArray = np.array([place[one.tenant_id] for one in holding], dtype=np.int64)
    for b in range(len(at) - 1):
        inside = np.minimum(end, at[b + 1]) - np.maximum(begin, at[b])
        found[b] = np.bincount(k, weights=np.maximum(inside, 0.0) * gpus, minlength=len(place))
    return found
