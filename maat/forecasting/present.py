"""The present state of a cluster, from which every draw is played. Plays nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from maat.scheduling.bootstrap import Projection, project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Job, JobId, JobSpec
from maat.scheduling.protocols import Placer, Policy
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.reservations import Reservation
from maat.scheduling.rounds import StoredState
from maat.scheduling.stability import NO_BOUNDS, Stability
from maat.simulation.fidelity import FIDELITIES, Fidelity


@dataclass(frozen=True)
class PresentJob:
    """A job that rounds see: what the scheduler knows of it.

    `restart_left`: seconds of its present start or restart still to come. `plan`: the batch plan
    that runs; `fixed_plan`: the one that the last round gave.
    """

    job: Job
    restart_left: float = 0.0
    plan: BatchPlan | None = None
    fixed_plan: BatchPlan | None = None


@dataclass(frozen=True)
class WaitingJob:
    """A job that rounds do not see yet: it is to be profiled, or follows others (`after`)."""

    spec: JobSpec
    after: frozenset[JobId] = frozenset()


@dataclass(frozen=True)
class Present:
    """A cluster between two rounds. Times are cluster seconds.

    `state`: the number of the next round, and what policy and placer remember. `fidelity`: the
    rules by which jobs live. Jobs that are to hold no GPU are left out. `interference`: what the
    policy knows of slowdowns. `slowdowns`: of jobs on one GPU, as they are played, of every pair
    (SharedGpus); None where no GPU is shared.
    """

    now: float
    next_round_at: float
    round_seconds: float
    cluster: Cluster
    policy: Policy
    placer: Placer
    jobs: tuple[PresentJob, ...] = ()
    waiting: tuple[WaitingJob, ...] = ()
    state: StoredState = StoredState()
    reservations: tuple[Reservation, ...] = ()
    quotas: tuple[TenantQuota, ...] = ()
    stability: Stability = NO_BOUNDS
    interference: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    slowdowns: Mapping[tuple[str, str, int], float] | None = None
    projection: Projection = project_by_profile
    fidelity: Fidelity = field(default_factory=lambda: FIDELITIES["paper"])
    seed: int = 0

    @property
    def job_ids(self) -> tuple[JobId, ...]:
        """Return the jobs that have not ended: those that a forecast is made for."""
        return (*(one.job.id for one in self.jobs), *(one.spec.id for one in self.waiting))
