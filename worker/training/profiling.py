"""Which jobs are profiled next, and where: decided before a round, on GPUs that nobody holds. Pure.

A job that adapts, and of which nothing is known on a type, first steps for a short while on one GPU
of each type (Sia section 3.2): one type after the other, while it waits for GPUs anyway. Once it
has trained it learns from that. A profile takes no GPU from others: it takes free ones only, and of
each type at most a quarter at a time, so that new jobs cannot keep those that wait from theirs.
While that quarter is in other profiles, and GPUs of the type are free, a job waits for its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from backend.attempts.profiles import why_given_up
from backend.models import AttemptRow, Job
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import JobId, JobSpec
from maat.vocabulary import AttemptKind, AttemptState

PROFILE_SECONDS = 20.0
"""Of steps on one type, GPU seconds (Sia section 3.2)."""

MOST_WAIT_SECONDS = 120.0
"""For a profile, since the submission or the last profile: some three profiles of others."""

_MOST_SIZES = 6
_MOST_TRIES = 3  # on one type, of profiles that were lost through no fault of the job
_SHARE = 4


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU by its node's name and its index there."""

    node: str
    index: int


class Wish(NamedTuple):
    """A job, and the types on which it is to be profiled yet, the next one first."""

    job_id: JobId
    gpu_types: Sequence[str]


@dataclass(frozen=True)
class Room:
    """The GPUs of a type: those that nobody holds, all in service, and those in profiles."""

    free: Sequence[Gpu]
    in_service: int
    profiling: int


def types_to_profile(
    spec: JobSpec,
    believed: Collection[str],
    attempts: Sequence[AttemptRow],
    *,
    gpu_types: Iterable[str],
) -> Sequence[str]:
    """Return the types on which the job is to be profiled yet; none once it has trained.

    `attempts`: all of the job's, oldest first.
    """
    has_trained = any(one.kind == AttemptKind.TRAIN for one in attempts)
    if spec.is_rigid or has_trained or why_given_up(believed, attempts) is not None:
        return ()
    tries = [one.gpu_type for one in attempts]
    return [
        kind
        for kind in gpu_types
        if spec.may_use(kind) and kind not in believed and tries.count(kind) < _MOST_TRIES
    ]


def assign(wishes: Iterable[Wish], rooms: Mapping[str, Room]) -> Mapping[JobId, tuple[str, Gpu]]:
    """Return the type and the GPU of each job that is profiled from now on.

    Jobs in order, each on the first of its types with room; from the node with the fewest free
    GPUs, so that whole nodes stay free.
    """
    free = {kind: list(room.free) for kind, room in rooms.items()}
    left = {
        kind: max(room.in_service // _SHARE, 1) - room.profiling for kind, room in rooms.items()
    }
    found: dict[JobId, tuple[str, Gpu]] = {}
    for wish in wishes:
        for kind in wish.gpu_types:
            if free.get(kind) and left[kind] > 0:
                gpu = _on_the_fullest_node(free[kind])
                free[kind].remove(gpu)
                left[kind] -= 1
                found[wish.job_id] = (kind, gpu)
                break
    return found


def waiting(
    wishes: Iterable[Wish], rooms: Mapping[str, Room], given: Collection[JobId]
) -> set[JobId]:
    """Return the jobs that got no profile, though a GPU is free: others are profiled before."""
    return {
        wish.job_id
        for wish in wishes
        if wish.job_id not in given and any(rooms[kind].free for kind in wish.gpu_types)
    }


def waits_since(job: Job, attempts: Sequence[AttemptRow]) -> float:
    """Return when a job began to wait for its next profile."""
    ended = [one.ended_seconds for one in attempts if one.ended_seconds is not None]
    return max(ended, default=job.submitted_seconds)


def rooms_of(cluster: Cluster, attempts: Iterable[AttemptRow]) -> Mapping[str, Room]:
    """Return the room by type; `attempts`: of all jobs, those that have not ended."""
    held, profiling = set[Gpu](), Counter[str]()
    for one in attempts:
        held |= {Gpu(node, index) for node, found in one.gpus_by_node.items() for index in found}
        profiling[one.gpu_type] += one.kind == AttemptKind.PROFILE
    free: dict[str, list[Gpu]] = {kind: [] for kind in cluster.type_names}
    for node in cluster.nodes:
        usable = [Gpu(node.id, i) for i in range(node.gpu_count) if i not in node.drained]
        free[node.gpu_type] += [gpu for gpu in usable if gpu not in held]
    usable_by_type = dict(zip(cluster.type_names, cluster.usable_gpus.tolist(), strict=True))
    return {kind: Room(free[kind], usable_by_type[kind], profiling[kind]) for kind in free}


def profile_attempt(
    job: Job, attempts: Sequence[AttemptRow], gpu_type: str, gpu: Gpu, now: float
) -> AttemptRow:
    """Return the next attempt of a job: a profile on this GPU."""
    return AttemptRow(
        kind=AttemptKind.PROFILE.value,
        job_id=job.id,
        cluster_id=job.cluster_id,
        number=attempts[-1].number + 1 if attempts else 1,
        round_number=0,
        state=AttemptState.ORDERED.value,
        reports=True,
        gpu_type=gpu_type,
        gpus_by_node={gpu.node: [gpu.index]},
        gpu_count=1,
        ordered_seconds=now,
    )


def profile_sizes(spec: JobSpec, gpu_type: str) -> Sequence[int]:
    """Return the batch sizes of a profile on one GPU, in the order in which they are tried.

    The initial one, the fourth of it, and larger ones ascending up to what the job allows: where
    memory ends, the smaller ones are measured.
    """
    limits, initial = spec.memory[gpu_type], spec.initial_batch_size
    largest = min(limits.largest_per_gpu, spec.max_batch_size)
    initial = min(initial, largest)
    smallest = max(initial // 4, limits.smallest_per_gpu, min(initial, 2))
    grown = [initial * 2**power for power in range(1, 64) if initial * 2**power < largest]
    while len(grown) > _MOST_SIZES - 3:
        grown = grown[1::2]
    return list(dict.fromkeys((initial, smallest, *grown, largest)))


def _on_the_fullest_node(free: Sequence[Gpu]) -> Gpu:
    count = {gpu.node: sum(other.node == gpu.node for other in free) for gpu in free}
    return min(free, key=lambda gpu: count[gpu.node])
