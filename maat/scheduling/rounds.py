"""The data of a scheduling round, from its input to its changes.

    observe -> RoundInput -> policy.allocate -> check -> placer.place -> check -> diff
            -> store.commit -> executor.apply

protocols.py has the parts that produce and consume the data; loop.py calls them; a planned round
is a `RoundResult` (round_result.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.bootstrap import Projection, project_by_profile
from maat.scheduling.cluster import Cluster, NodeId
from maat.scheduling.events import Event
from maat.scheduling.explain import Reasons
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, Job, JobId
from maat.scheduling.limits import Limit, LimitIndex
from maat.scheduling.matrix import GoodputMatrix
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.solving.report import SolveReport
from maat.scheduling.worked_out import WorkedOut

T = TypeVar("T")


@dataclass(frozen=True)
class Grant:
    """What one job gets this round: how much. Where is the placer's choice.

    A policy may decide nodes (`gpus_by_node`) or GPUs itself.

    Attributes:
        share_with: Running partners, best first. `shared_gpus` of the `gpu_count` GPUs are to be
            on their GPUs; the others are exclusive.
        gpus: Exact GPU numbers, for placers that honour them (`PlacementResult.as_named`). Other
            placers ignore them.
    """

    gpu_type: str
    gpu_count: int
    node_count: int | None = None
    gpus_by_node: Mapping[NodeId, int] | None = None
    share_with: tuple[JobId, ...] = ()
    shared_gpus: int = 0
    batch: BatchPlan | None = None
    gpus: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class RequiredStay:
    """Until when a job must stay on its GPUs (cluster time), and by which bound: stability.py.

    Attributes:
        least_stay_seconds: Set if it has not held its GPUs for so long.
        moves_in_last_hour: Set if it was moved so often, which is the most it may be.
    """

    until: float
    least_stay_seconds: float | None = None
    moves_in_last_hour: int | None = None

    def evidence(self, now: float) -> Mapping[str, float | int | None]:
        """Return it as evidence of a reason that a round gives at `now`."""
        return {
            "stays_for_seconds": self.until - now,
            "least_stay_seconds": self.least_stay_seconds,
            "moves_in_last_hour": self.moves_in_last_hour,
        }


@dataclass(frozen=True)
class PolicyState:
    """What a policy or placer remembers between rounds: JSON data keyed by job id.

    It belongs to one policy with one set of parameters.

    Attributes:
        shares: What tenants are owed, as JSON data. It is the round loop's, not the policy's: a
            policy neither reads nor writes it, and it outlives a change of policy.
    """

    owner: str = ""
    parameter_hash: str = ""
    data: Mapping[str, object] = field(default_factory=dict)
    shares: Mapping[str, object] = field(default_factory=dict)

    def for_owner(self, owner: str, parameter_hash: str) -> PolicyState:
        """Return this state, or an empty one if another policy or parameters left it.

        `shares` stays.
        """
        if (self.owner, self.parameter_hash) == (owner, parameter_hash):
            return self
        return PolicyState(owner, parameter_hash, shares=self.shares)


@dataclass(frozen=True)
class RoundInput:
    """All that a policy and a placer may know.

    Attributes:
        stays: The pinned jobs that must stay for a time, and until when. No policy reads them.
        interference: (victim, partner, GPU count of the victim) -> slowdown of at least 1. Jobs
            are named by `JobSpec.interference_name`.
        projection: Estimates throughput on a GPU type on which a job never ran.
        quotas: What tenants may hold. A policy need not read them: before it decides they have
            become limits (quotas/rounds.py).
        worked_out: Where `once` keeps results; None for nowhere.
    """

    now: float
    round_number: int
    round_seconds: float
    jobs: tuple[Job, ...]
    cluster: Cluster
    limits: tuple[Limit, ...]
    pinned: Mapping[JobId, Grant] = field(default_factory=dict)
    stays: Mapping[JobId, RequiredStay] = field(default_factory=dict)
    interference: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    state: PolicyState = field(default_factory=PolicyState)
    placer_state: PolicyState = field(default_factory=PolicyState)
    projection: Projection = project_by_profile
    seed: int = 0
    quotas: tuple[TenantQuota, ...] = ()
    worked_out: WorkedOut | None = field(default=None, compare=False, repr=False)

    def once(self, name: str, work_out: Callable[[], T]) -> T:
        """Return what `work_out` gives, kept by `name` while the round is decided several times.

        It may depend on jobs, cluster and projection, and not on limits, pins or states.
        """
        of = (self.jobs, self.cluster)
        return work_out() if self.worked_out is None else self.worked_out.get(name, of, work_out)

    @cached_property
    def limit_index(self) -> LimitIndex:
        return LimitIndex(self.limits)

    @cached_property
    def job_by_id(self) -> Mapping[JobId, Job]:
        return {job.id: job for job in self.jobs}

    @property
    def rng(self) -> np.random.Generator:
        """Return the random generator of this round, the same each time it is planned."""
        return np.random.default_rng((self.seed, self.round_number))


@dataclass(frozen=True)
class Order:
    """In which order a policy grants jobs what they request.

    Attributes:
        rows: Numbers of the jobs, first come first.
        types: The GPU types that a job may have, as the policy tries them.
        keep_running: Whether running jobs keep their GPUs before others are considered.
        blocks: Whether jobs behind one that does not fit wait.
    """

    rows: Sequence[int]
    types: Callable[[int], Sequence[int]]
    keep_running: bool
    blocks: bool


@dataclass(frozen=True)
class Decision:
    """Grants in order of placement priority, with reasons, report and state.

    Attributes:
        matrix: The goodput that the policy used; None if it used none.
        utility: Shape (P,), the value of each pair of the matrix in the policy's objective.
        stands_until: Cluster time before which the policy would decide the same, whatever progress
            the jobs make, provided that no job arrives, ends, gains or loses GPUs, or begins to
            train. Minus infinity if the policy does not know.
    """

    grants: Mapping[JobId, Grant]
    report: SolveReport
    reasons: Mapping[JobId, Reasons]
    state: PolicyState = field(default_factory=PolicyState)
    matrix: GoodputMatrix | None = None
    utility: FloatArray | None = None
    stands_until: float = -math.inf


@dataclass(frozen=True)
class Placement:
    """Which GPUs every placed job holds.

    Job i has gpus[offsets[i]:offsets[i + 1]], ascending.
    """

    job_ids: tuple[JobId, ...]
    offsets: IntArray
    gpus: IntArray

    @classmethod
    def of(cls, gpus_by_job: Mapping[JobId, Sequence[int]]) -> Placement:
        counts = [len(gpus) for gpus in gpus_by_job.values()]
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        flat = [gpu for gpus in gpus_by_job.values() for gpu in sorted(gpus)]
        return cls(tuple(gpus_by_job), offsets, np.array(flat, dtype=np.int64))

    @cached_property
    def by_job(self) -> Mapping[JobId, tuple[int, ...]]:
        flat = self.gpus.tolist()
        bounds = self.offsets.tolist()
        return {job: tuple(flat[bounds[i] : bounds[i + 1]]) for i, job in enumerate(self.job_ids)}


@dataclass(frozen=True)
class PlacementResult:
    """A placement, the granted jobs without a place and why, and the placer's state.

    Attributes:
        by_chance: GPUs were drawn at random, so another round may place the same decision
            differently even if every job holds what it was granted.
        as_named: True if the placer honours explicit GPU numbers in a grant: those GPUs or none.
        without_scores: Jobs that GPU scores would have left without a place, and that were placed
            as if all GPUs were equal.
    """

    placement: Placement
    unplaced: Mapping[JobId, Reasons] = field(default_factory=dict)
    state: PolicyState = field(default_factory=PolicyState)
    by_chance: bool = False
    as_named: bool = False
    without_scores: frozenset[JobId] = frozenset()


class ChangeKind(StrEnum):
    """What a round does to a job.

    START: first GPUs. RESCALE: another count. MIGRATE: another type or other GPUs. PREEMPT: all
    GPUs taken. RESUME: GPUs after a preemption. BATCH: only another batch plan.
    """

    START = "start"
    RESCALE = "rescale"
    MIGRATE = "migrate"
    PREEMPT = "preempt"
    RESUME = "resume"
    BATCH = "batch"


@dataclass(frozen=True)
class Change:
    job_id: JobId
    kind: ChangeKind
    before: Allocation | None
    after: Allocation | None
    grant: Grant | None


@dataclass(frozen=True)
class Changes:
    """What an executor must carry out. Idempotent by (round number, job)."""

    round_number: int
    time: float
    items: tuple[Change, ...] = ()


@dataclass(frozen=True)
class RoundSeconds:
    """CPU seconds of a round by part. `policy` includes matrix and solve."""

    policy: float
    place: float

    @property
    def total(self) -> float:
        return self.policy + self.place


@dataclass(frozen=True)
class ClusterState:
    """What an executor observes: the cluster, all unfinished jobs, and recent events.

    Attributes:
        events: What happened since the last observation.
        jobs_to_come: True if a job may get GPUs later although none can now: jobs are still to be
            submitted, or nodes are being repaired.
    """

    now: float
    cluster: Cluster
    jobs: tuple[Job, ...]
    events: tuple[Event, ...] = ()
    jobs_to_come: bool = False


@dataclass(frozen=True)
class StoredState:
    """The state from which a restarted loop continues."""

    next_round_number: int = 1
    policy_state: PolicyState = field(default_factory=PolicyState)
    placer_state: PolicyState = field(default_factory=PolicyState)
