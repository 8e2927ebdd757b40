"""The places that pairs take under the limits that may count them, without a column per tenant.

A pair falls under no other tenant's limits. So each tenant's limits share columns, and the arrays
stay small with hundreds of tenants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.job import Job
from maat.scheduling.limits import Limit, membership, places_taken

NO_LIMIT = -1


@dataclass(frozen=True)
class LimitColumns:
    """P pairs and M columns.

    `limit`, (J, M): the number of the limit that a column stands for, of each job; NO_LIMIT for
    none. `taken`, (P, M): the places that a pair takes under it.
    """

    limit: IntArray
    taken: IntArray


def limit_columns(
    limits: Sequence[Limit],
    jobs: Sequence[Job],
    type_names: Sequence[str],
    *,
    job: IntArray,
    gpu_type: IntArray,
    count: IntArray,
) -> LimitColumns:
    """Return the columns of P pairs, whose jobs, types and GPU counts have shape (P,)."""
    own: dict[str, list[int]] = {}
    shared: list[int] = []
    for r, limit in enumerate(limits):
        if limit.tenant is None or limit.places_by_count or limit.besides_jobs:
            shared.append(r)
        else:
            own.setdefault(limit.tenant, []).append(r)
    common = [limits[r] for r in shared]
    rows = membership(common, jobs, type_names, job=job, gpu_type=gpu_type, count=count)
    width = max((len(found) for found in own.values()), default=0)
    of_job = np.full((len(jobs), len(shared) + width), NO_LIMIT, dtype=np.int64)
    of_job[:, : len(shared)] = shared
    for j, one in enumerate(jobs):
        mine = own.get(one.spec.tenant, [])
        of_job[j, len(shared) : len(shared) + len(mine)] = mine
    index = {name: t for t, name in enumerate(type_names)}
    most = np.iinfo(np.int64).max
    kinds = np.array(
        [NO_LIMIT if x.gpu_type is None else index.get(x.gpu_type, len(index)) for x in limits]
        + [len(index)]
    )
    below = np.array([most if x.below_priority is None else x.below_priority for x in limits] + [0])
    smallest = np.array([x.smallest_count for x in limits] + [0])
    priority = np.array([one.spec.priority for one in jobs], dtype=np.int64)
    taken = np.zeros((len(job), of_job.shape[1]), dtype=np.int64)
    taken[:, : len(shared)] = places_taken(common, rows, count)
    for column in range(len(shared), of_job.shape[1]):
        r = of_job[job, column]
        counted = (
            ((kinds[r] == NO_LIMIT) | (kinds[r] == gpu_type))
            & (priority[job] < below[r])
            & (count >= smallest[r])
        )
        taken[:, column] = np.where(counted, count, 0)
    return LimitColumns(of_job, taken)
