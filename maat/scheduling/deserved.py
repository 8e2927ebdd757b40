"""What each tenant deserves of a cluster: equal parts by weight, and no more than it asks for.

Max-min fairness over GPUs, and how close a division came to it (Jain's index).
"""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import FloatArray


def max_min_shares(demand: FloatArray, weights: FloatArray, capacity: FloatArray) -> FloatArray:
    """Return the GPUs that each of K tenants deserves at E moments, shape (E, K).

        d_k = min(D_k, w_k x level),  sum over k of d_k = min(N, sum over k of D_k)

    The level rises for all alike; who has all that it asks for leaves the rest to the others.

    `demand`, (E, K): GPUs that a tenant's jobs could use, D_k. `weights`, (K,) or (E, K): w_k,
    above zero. `capacity`, (E,): GPUs in service, N.
    """
    moments, tenants = demand.shape
    if not tenants:
        return np.zeros((moments, 0))
    full_at = demand / weights  # the level at which a tenant has all that it asks for
    order = np.argsort(full_at, axis=1, kind="stable")
    levels = np.take_along_axis(full_at, order, axis=1)
    asked = np.take_along_axis(demand, order, axis=1)
    weight = np.take_along_axis(np.broadcast_to(weights, demand.shape), order, axis=1)
    # Before tenant i in this order is full, those before it are, and the others share the rest.
    given = np.cumsum(asked, axis=1) - asked
    sharing = np.cumsum(weight[:, ::-1], axis=1)[:, ::-1]
    level = (capacity[:, None] - given) / sharing
    runs_out = level < levels
    first = np.argmax(runs_out, axis=1)
    reached = np.where(runs_out.any(axis=1), level[np.arange(moments), first], levels[:, -1])
    return np.minimum(demand, weights * np.maximum(reached, 0.0)[:, None])


def jain_index(values: FloatArray) -> float | None:
    """Return Jain's fairness index (sum x)^2 / (n sum x^2); None of no value, or all zero.

    1 if all are equal, 1 / n if one has everything. `values`, (n,): such as actual over deserved.
    """
    squares = float((values**2).sum())
    return None if squares == 0 else float(values.sum()) ** 2 / (len(values) * squares)
