"""What a scheduling round is made of: the data that flows through it, and the protocols of its parts. loop.py turns the crank.

observe -> RoundInput -> policy.allocate -> check -> placer.place -> check -> diff -> store.commit -> executor.apply
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.bootstrap import Projection, project_by_profile
from maat.scheduling.cluster import Cluster, NodeId
from maat.scheduling.events import Event
from maat.scheduling.explain import Reasons
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, Job, JobId
from maat.scheduling.limits import Limit
from maat.scheduling.matrix import GoodputMatrix
from maat.scheduling.solving.report import SolveReport


@dataclass(frozen=True)
class Grant:
    """What one job gets this round: how much, not where (unless the policy decides nodes or GPUs itself).

    `share_with`: running partners, best first, on whose GPUs `shared_gpus` of the `gpu_count` are to be; the others are nobody's. `gpus`: the very
    GPUs, for placers that take named ones (`PlacementResult.as_named`); the others place the job as if none were named.
    """

    gpu_type: str
    gpu_count: int
    node_count: int | None = None
    gpus_by_node: Mapping[NodeId, int] | None = None
    share_with: tuple[JobId, ...] = ()
    shared_gpus: int = 0
    batch: BatchPlan | None = None
    gpus: tuple[int, ...] | None = None


@dataclass(frozen=True)
class PolicyState:
    """What a policy or placer remembers between rounds: JSON data keyed by job id, for this policy with these parameters only."""

    owner: str = ""
    parameter_hash: str = ""
    data: Mapping[str, object] = field(default_factory=dict)

    def for_owner(self, owner: str, parameter_hash: str) -> PolicyState:
        """This state, or an empty one where it was left by another policy or by other parameters."""
        if (self.owner, self.parameter_hash) == (owner, parameter_hash):
            return self
        return PolicyState(owner, parameter_hash)


@dataclass(frozen=True)
class RoundInput:
    """All that a policy and a placer may know.

    `interference`: (victim, partner, GPU count of the victim) -> slowdown, at least 1, jobs by `JobSpec.interference_name`. `projection`: how a GPU type that a job never ran on is
    estimated.
    """

    now: float
    round_number: int
    round_seconds: float
    jobs: tuple[Job, ...]
    cluster: Cluster
    limits: tuple[Limit, ...]
    pinned: Mapping[JobId, Grant] = field(default_factory=dict)
    interference: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    state: PolicyState = field(default_factory=PolicyState)
    placer_state: PolicyState = field(default_factory=PolicyState)
    projection: Projection = project_by_profile
    seed: int = 0

    @cached_property
    def job_by_id(self) -> Mapping[JobId, Job]:
        return {job.id: job for job in self.jobs}

    @property
    def rng(self) -> np.random.Generator:
        """Chance of this round, the same each time it is planned."""
        return np.random.default_rng((self.seed, self.round_number))


@dataclass(frozen=True)
class Decision:
    """Grants in order of placement priority, with the reasons, the solver's report and what to remember.

    `matrix` is the goodput that the policy looked at, None for a policy that looks at none. `utility`, shape (P,): what the objective
    made of each pair of the matrix.

    `stands_until`: cluster time before which the policy would decide just the same, whatever the jobs achieve until then, if none came, ended,
    lost or got GPUs, or began to train. Minus infinity: it does not say.
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
    """Which GPUs every placed job holds: job i has gpus[offsets[i]:offsets[i + 1]], ascending."""

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
    """A placement, the jobs that got a grant but no place (with the reason), and what the placer remembers.

    `by_chance`: GPUs were drawn, so that another round may place the same decision otherwise, though everybody holds what it was given.
    `as_named`: whether whoever was granted GPUs by their numbers is on these, if anywhere.
    """

    placement: Placement
    unplaced: Mapping[JobId, Reasons] = field(default_factory=dict)
    state: PolicyState = field(default_factory=PolicyState)
    by_chance: bool = False
    as_named: bool = False


class ChangeKind(StrEnum):
    """What a round does to a job (DESIGN, Words): its first GPUs; other count; other type or GPUs; all taken; GPUs again; batch only."""

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
    """CPU seconds of a round by part. `policy` holds matrix and solve."""

    policy: float
    place: float

    @property
    def total(self) -> float:
        return self.policy + self.place


@dataclass(frozen=True)
class RoundResult:
    round_input: RoundInput
    decision: Decision
    placement: PlacementResult
    changes: Changes
    seconds: RoundSeconds

    @cached_property
    def reasons(self) -> Mapping[JobId, Reasons]:
        """Why every job of the round got what it got: the placer's word where it could not place a grant, else the policy's."""
        return {**self.decision.reasons, **self.placement.unplaced}

    @property
    def round_number(self) -> int:
        return self.round_input.round_number


@dataclass(frozen=True)
class ClusterState:
    """What an executor sees: the cluster as it is, every job that has not ended, and what happened since the last look.

    `jobs_to_come`: whether somebody may get GPUs later though nobody does now: jobs are still to be submitted, or nodes being repaired.
    """

    now: float
    cluster: Cluster
    jobs: tuple[Job, ...]
    events: tuple[Event, ...] = ()
    jobs_to_come: bool = False


@dataclass(frozen=True)
class StoredState:
    """What a restarted loop goes on from."""

    next_round_number: int = 1
    policy_state: PolicyState = field(default_factory=PolicyState)
    placer_state: PolicyState = field(default_factory=PolicyState)
