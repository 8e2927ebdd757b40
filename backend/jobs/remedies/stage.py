"""The present cluster as a round is tried on it. The serving process provides it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlmodel import Session

from backend.clusters.models import Cluster
from backend.jobs.models import Job
from maat.scheduling.explain import Reasons


@dataclass(frozen=True)
class Start:
    """What a round would give a job."""

    gpu_type: str
    gpu_count: int
    node_count: int


@dataclass(frozen=True)
class Trial:
    """What a tried round gives a job. `why`: its reason; None if the round does not see the job."""

    start: Start | None
    why: Reasons | None


@dataclass(frozen=True)
class Room:
    """What the next round would leave free without the job.

    GPUs by type, and the most of them on one node.
    """

    free_by_type: Mapping[str, int]
    most_on_one_node: Mapping[str, int]


@dataclass(frozen=True)
class DrainedNode:
    """A node of which an operator has taken GPUs out of service, and how many."""

    id: str
    name: str
    gpu_type: str
    gpus: int


class Stage(Protocol):
    """The present cluster and one of its jobs."""

    @property
    def capacity_by_type(self) -> Mapping[str, int]:
        """All GPUs, drained ones included: submissions are checked against it."""
        ...

    @property
    def drained_nodes(self) -> Sequence[DrainedNode]: ...

    @property
    def last_round_seconds(self) -> float:
        """CPU seconds that deciding and placing took."""
        ...

    @property
    def tenant_weight(self) -> float:
        """The weight of the job's tenant."""
        ...

    @property
    def weighs_jobs(self) -> bool:
        """Whether the cluster's policy counts jobs by weight."""
        ...

    def room(self) -> Room: ...

    @property
    def executor(self) -> str:
        """What runs the cluster's jobs."""
        ...

    def trial_of_new(self) -> Trial | None:
        """Return what the job, not stored yet, would get if it were submitted now.

        None if that depends on what the executor measures of it first.
        """
        ...

    def trial_of(
        self,
        changes: Mapping[str, Any],
        *,
        tenant_weight: float | None = None,
        returned: Collection[str] = (),
    ) -> Trial:
        """Return what a round would give the stored job now, with these changes in place.

        `tenant_weight`: of its tenant; None leaves it. `returned`: ids of nodes that are back in
        service.
        """
        ...


class Rehearsal(Protocol):
    """Plays rounds that are not carried out."""

    def stage(self, session: Session, job: Job) -> Stage | None:
        """Return the stage; None if the cluster has no node to play a round with."""
        ...

    def never_started(
        self, session: Session, cluster: Cluster, jobs: Sequence[Job]
    ) -> Mapping[str, Reasons]:
        """Return why, of those jobs that no round would start as the cluster stands.

        They need not be stored.
        """
        ...
