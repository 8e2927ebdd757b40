"""What a scheduling round is made of: the data that flows through it, and the protocols of its parts. loop.py turns the crank.

observe -> RoundInput -> policy.allocate -> check -> placer.place -> check -> diff -> store.commit -> executor.apply
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Protocol

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

# ---- what a policy is given, and what it answers ----------------------------------------------------------------------------------


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


class Policy(Protocol):
    """How much, for whom."""

    @property
    def name(self) -> str: ...
    @property
    def round_seconds(self) -> float: ...
    def allocate(self, round_input: RoundInput) -> Decision: ...


# ---- where ------------------------------------------------------------------------------------------------------------------------


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
    `as_named`: whether the jobs that were granted GPUs by their numbers are on these, if anywhere.
    """

    placement: Placement
    unplaced: Mapping[JobId, Reasons] = field(default_factory=dict)
    state: PolicyState = field(default_factory=PolicyState)
    by_chance: bool = False
    as_named: bool = False


class Placer(Protocol):
    """Where, GPU by GPU."""

    @property
    def name(self) -> str: ...
    def place(self, decision: Decision, round_input: RoundInput) -> PlacementResult: ...


# ---- what follows from a round ----------------------------------------------------------------------------------------------------


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

    @cached_property
    def evicted(self) -> tuple[JobId, ...]:
        """Jobs that lost GPUs to fragmentation alone (Sia section 3.1, rule c).

        Such a job held GPUs that are all still in service and was granted GPUs; it was granted just what it held and placed on others, or it
        was placed nowhere. A placer that places everybody again each round evicts every job that it moves.
        """
        return tuple(
            job.id
            for job in self.round_input.jobs
            if job.allocation is not None and self._is_evicted(job, job.allocation)
        )

    @property
    def moved_by_placer(self) -> tuple[JobId, ...]:
        """Jobs that the policy left just as they were, on GPUs that are all in service, and that the placer put on others."""
        evicted = (self.round_input.job_by_id[job_id] for job_id in self.evicted)
        return tuple(
            job.id
            for job in evicted
            if job.id in self.placement.placement.by_job and not self._chosen_elsewhere(job)
        )

    def _chosen_elsewhere(self, job: Job) -> bool:
        """Whether the policy itself named other nodes or GPUs than the job holds, or partners to share with."""
        grant, cluster = self.decision.grants[job.id], self.round_input.cluster
        held = () if job.allocation is None else job.allocation.gpus
        by_node = Counter(cluster.nodes[node].id for node in cluster.gpu_node[list(held)].tolist())
        other_nodes = grant.gpus_by_node is not None and by_node != grant.gpus_by_node
        return other_nodes or grant.gpus not in (None, held) or bool(grant.share_with)

    def _is_evicted(self, job: Job, held: Allocation) -> bool:
        grant, placed = (
            self.decision.grants.get(job.id),
            self.placement.placement.by_job.get(job.id),
        )
        if grant is None or placed == held.gpus:
            return False
        same_grant = (grant.gpu_type, grant.gpu_count) == (held.gpu_type, held.gpu_count)
        return (placed is None or same_grant) and bool(
            self.round_input.cluster.gpu_available[list(held.gpus)].all()
        )


# ---- the parts that a loop is made of ---------------------------------------------------------------------------------------------


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


class Executor(Protocol):
    """Carries rounds out. `apply` twice with the same changes is `apply` once."""

    def observe(self) -> ClusterState: ...
    def apply(self, changes: Changes) -> Sequence[Event]: ...


@dataclass(frozen=True)
class StoredState:
    """What a restarted loop goes on from."""

    next_round_number: int = 1
    policy_state: PolicyState = field(default_factory=PolicyState)
    placer_state: PolicyState = field(default_factory=PolicyState)


class RoundStore(Protocol):
    """Keeps rounds: in memory for simulations, in SQL for the live cluster."""

    def load(self) -> StoredState: ...

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        """Keep the round and what was observed before it, at once. False: somebody else committed this round."""
        ...

    def unapplied(self) -> Sequence[Changes]:
        """Changes that were committed and may not have reached the executor."""
        ...

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        """The executor has carried these changes out."""
        ...


class Clock(Protocol):
    def now(self) -> float: ...
    def sleep_until(self, time: float) -> None: ...
