"""Pairs that share GPUs and lose by it, since they slow each other otherwise than was believed.

SJF-BSBF takes no GPUs away, and knows all slowdowns beforehand. A live cluster measures them only
once a pair runs. So a pair is judged again when other slowdowns are known than those by which it
was judged last, and only then: where they stay the same, as in a simulation, nothing is parted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import cast

from maat.scheduling.batch_split import Split
from maat.scheduling.job import Allocation, JobId
from maat.scheduling.policies.ordering import in_order
from maat.scheduling.policies.sharing.batches import Batches
from maat.scheduling.policies.sharing.partners import Judge, Partner, Partners
from maat.scheduling.rounds import Grant, PolicyState, RoundInput

JUDGED = "judged"

_Pair = tuple[JobId, JobId]  # in alphabetical order


@dataclass(frozen=True, slots=True)
class Slowdowns:
    """How much two jobs slow each other on one GPU; None if that is not known."""

    first: float | None
    second: float | None


class SharingPairs:
    """The pairs that share GPUs, and the slowdowns by which each was judged last."""

    def __init__(self, round_input: RoundInput, batches: Batches, memory: PolicyState) -> None:
        self._input, self._batches = round_input, batches
        self._row_of = {job.id: row for row, job in enumerate(round_input.jobs)}
        stored = cast(
            "Mapping[JobId, Mapping[JobId, list[float | None]]]", memory.data.get(JUDGED, {})
        )
        self._judged = {
            (first, second): Slowdowns(*known)
            for first, others in stored.items()
            for second, known in others.items()
        }

    def to_part(self, judge: Judge) -> Mapping[JobId, Slowdowns]:
        """Return the jobs that leave their GPUs, each with the slowdowns of itself and its partner.

        Of a pair that loses, the job leaves that comes later in the policy's order, unless it is
        pinned. The other must gain by more than the restart costs.
        """
        leaving: dict[JobId, Slowdowns] = {}
        for first, second in self._running():
            now, before = self._slowdowns((first, second)), self._judged.get((first, second))
            if before in (None, now) or leaving.keys() & {first, second}:
                continue
            order = in_order({self._row_of[i]: self._rank(i) for i in (first, second)})
            ids = [self._input.jobs[row].id for row in order]
            leaver = next((i for i in reversed(ids) if i not in self._input.pinned), None)
            if leaver is None:
                continue
            partner = second if leaver == first else first
            if self._loses(leaver, partner, judge):
                leaving[leaver] = self._slowdowns((leaver, partner))
        return leaving

    def remembered(self, grants: Mapping[JobId, Grant]) -> dict[str, object]:
        """Return, as JSON data, the slowdowns of the pairs that share GPUs from now on, if any."""
        started = {
            _pair(job_id, partner)
            for job_id, grant in grants.items()
            for partner in grant.share_with
        }
        stay = {pair for pair in self._running() if grants.keys() >= set(pair)}
        found: dict[JobId, dict[JobId, list[float | None]]] = {}
        for first, second in sorted(started | stay):
            known = self._slowdowns((first, second))
            found.setdefault(first, {})[second] = [known.first, known.second]
        return {JUDGED: found} if found else {}

    def _running(self) -> Iterator[_Pair]:
        """Yield the pairs that share a GPU now, all of whose GPUs are in service."""
        if self._input.cluster.jobs_per_gpu == 1:
            return
        available, on_gpu = self._input.cluster.gpu_available, dict[int, list[JobId]]()
        for job in self._input.jobs:
            gpus = () if job.allocation is None else job.allocation.gpus
            if available[list(gpus)].all():
                for gpu in gpus:
                    on_gpu.setdefault(gpu, []).append(job.id)
        yield from sorted(
            {_pair(*two) for holders in on_gpu.values() for two in combinations(holders, 2)}
        )

    def _rank(self, job_id: JobId) -> tuple[float, float]:
        return self._batches.rank(self._row_of[job_id])

    def _slowdowns(self, jobs: _Pair) -> Slowdowns:
        """Return how much each of them is slowed by the other, on the GPUs that it asks for."""
        specs = [self._input.jobs[self._row_of[job_id]].spec for job_id in jobs]
        found = [
            self._input.interference.get(
                (victim.interference_name, partner.interference_name, victim.requested_gpus)
            )
            for victim, partner in (specs, reversed(specs))
        ]
        return Slowdowns(*(xi if xi is not None and math.isfinite(xi) else None for xi in found))

    def _loses(self, leaver: JobId, partner: JobId, judge: Judge) -> bool:
        """Return whether the leaver would rather wait for the partner's end, and then restart."""
        mine, other = self._way(leaver), self._way(partner)
        if mine is None or other is None:
            return False
        row, held = self._row_of[leaver], self._allocation_of(leaver)
        whole = self._batches.ways(row, self._input.cluster.type_index[held.gpu_type])[0]
        waiting = whole.solo_seconds + self._input.jobs[row].spec.restart_seconds
        known = self._slowdowns((partner, leaver))
        there = Partner(
            partner, self._allocation_of(partner).gpu_count, other, known.first, known.second
        )
        return not judge((mine,), Partners((there,)), waiting)

    def _way(self, job_id: JobId) -> Split | None:
        """Return how a job runs its batch, with its time on as many nodes as it has."""
        cluster, held = self._input.cluster, self._allocation_of(job_id)
        way = self._batches.running_way(self._row_of[job_id], cluster.type_index[held.gpu_type])
        apart = len({int(cluster.gpu_node[gpu]) for gpu in held.gpus}) > 1
        return way.apart() if way is not None and apart else way

    def _allocation_of(self, job_id: JobId) -> Allocation:
        return cast("Allocation", self._input.job_by_id[job_id].allocation)


def _pair(one: JobId, other: JobId) -> _Pair:
    return (one, other) if one < other else (other, one)
