"""The places that jobs can have in a round, beside its other limits and on GPUs that are shared.

Capacity counts all places. Not all of them can be had: reservations and extra limits take some, and
not every policy puts two jobs on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import BoolArray, IntArray
from maat.scheduling.limits import LimitKind, membership
from maat.scheduling.protocols import GpuSharing, Policy
from maat.scheduling.rounds import RoundInput

UNBOUNDED = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Bound:
    """At most `places` GPUs for the jobs and types that are `counted`, shape (J, T)."""

    places: int
    counted: BoolArray

    @cached_property
    def types(self) -> BoolArray:
        """The types of which it counts any job, shape (T,)."""
        types: BoolArray = np.logical_or.reduce(self.counted, axis=0)
        return types

    def left(self, got: IntArray) -> int:
        """Return the places that it leaves beside what jobs have, (J, T)."""
        return max(self.places - int((got * self.counted).sum()), 0)


@dataclass(frozen=True)
class Room:
    """The places of J jobs and T types.

    Attributes:
        most: Shape (T,), those that a policy can use.
        sure: Shape (T,), those that it uses whenever jobs want them.
        bounds: Limits of the round other than capacity.
    """

    most: IntArray
    sure: IntArray
    bounds: tuple[Bound, ...]

    def before(self, wanted: IntArray) -> IntArray:
        """Return what jobs can have for sure, shape (T,). `wanted`, (J, T): what each wants."""
        return self._beside(self.sure, np.zeros_like(wanted), wanted)

    def after(self, got: IntArray, wanted: IntArray) -> IntArray:
        """Return what is idle and can be had, shape (T,).

        `got`, `wanted`, (J, T): what each job has, and wants beyond it.
        """
        return self._beside(self.most, got, wanted)

    def left(self, got: IntArray) -> IntArray:
        """Return what the bounds leave each job beside what all have, shape (J, T)."""
        left = np.full(got.shape, UNBOUNDED, dtype=np.int64)
        for bound in self.bounds:
            left[bound.counted] = np.minimum(left, bound.left(got))[bound.counted]
        return left

    def _beside(self, places: IntArray, got: IntArray, wanted: IntArray) -> IntArray:
        """Places less what jobs have, and what no bound keeps from all that want more of them."""
        room: IntArray = np.maximum(places - got.sum(axis=0), 0)
        for bound in self.bounds:
            within = bound.left(got) + (wanted * ~bound.counted).sum(axis=0)
            room[bound.types] = np.minimum(room, within)[bound.types]
        return room


def room_of(round_input: RoundInput, policy: Policy | None) -> Room:
    """Return the places of a round under a policy; None for one that shares wherever it may."""
    cluster = round_input.cluster
    sharing = getattr(policy, "gpu_sharing", GpuSharing.PLACES_AS_GPUS)
    return Room(
        most=cluster.usable_gpus if sharing is GpuSharing.NEVER else cluster.capacity,
        sure=cluster.capacity if sharing is GpuSharing.PLACES_AS_GPUS else cluster.usable_gpus,
        bounds=tuple(_bounds(round_input)),
    )


def _bounds(round_input: RoundInput) -> Sequence[Bound]:
    limits = [
        limit
        for limit in round_input.limits
        if limit.kind is not LimitKind.CAPACITY
        and limit.smallest_count <= 1
        and not limit.places_by_count
    ]
    if not limits:
        return []
    jobs, names = round_input.jobs, round_input.cluster.type_names
    job = np.repeat(np.arange(len(jobs)), len(names))
    gpu_type = np.tile(np.arange(len(names)), len(jobs))
    rows = membership(
        limits, jobs, names, job=job, gpu_type=gpu_type, count=np.ones_like(job)
    ).reshape(len(jobs), len(names), len(limits))
    return [Bound(limit.places, rows[:, :, r]) for r, limit in enumerate(limits)]
