"""What a live cluster asks of any executor, and what the executor answers.

An executor runs the jobs of one cluster: it carries rounds out and says how the jobs stand. What it
must remember from step to step is its own state, which nobody else reads: a head, as JSON data, and
two texts per job; or tables of its own, where something besides the rounds changes them too.
docs/architecture.md says what every executor must keep to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from backend.models import Job as JobRow
from maat.scheduling.cluster import Cluster
from maat.scheduling.events import Event
from maat.scheduling.explain import ReasonCode
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.interference import DeclaredSlowdowns
from maat.scheduling.job import Allocation, JobId
from maat.scheduling.protocols import Clock
from maat.scheduling.rounds import Changes, ClusterState
from maat.vocabulary import JobState
from worker.writes import Write


class EndedBatch(NamedTuple):
    """A total batch size that ended on GPUs that stayed: when, and the samples counted by then."""

    at: float
    total_batch_size: int
    processed_samples: float


class JobStatus(NamedTuple):
    """How a job stands now.

    `progress`: share of its work that is done; `remaining_work`: effective samples.
    `allocation`: the GPUs that it truly holds. These may differ from what the last round gave it,
    and the journal records these. `starting`: a round gave it GPUs, and it does not hold them yet.
    `ending`: it is cancelled, its processes are not over yet, and rounds give its GPUs away.
    `ended`: how it ended; None while it has not. `profiling`: it holds them to be measured, or
    waits for that and is kept out of rounds.
    `held_back`: set while the executor keeps it out of rounds: evidence of HELD_BACK.
    `processed_samples`, `gained_samples`: samples of all its steps and their effective ones, what
    failures undid included; 0 if not known. `lost_gpu_seconds`: spent on what failures undid. All
    three only grow. `noise_scale`: the gradient noise scale in samples; None until it is measured.
    `ended_batches`: since the last observation, in order, by an executor that knows when; without
    one, a batch size ends when another plan is first seen.
    """

    job_id: JobId
    progress: float
    remaining_work: float
    gpu_seconds: float
    restarts: int
    started_at: float | None
    allocation: Allocation | None
    goodput: float | None
    plan: BatchPlan | None
    ended: JobState | None = None
    starting: bool = False
    profiling: bool = False
    held_back: Mapping[str, Any] | None = None
    ending: bool = False
    processed_samples: float = 0.0
    gained_samples: float = 0.0
    lost_gpu_seconds: float = 0.0
    noise_scale: float | None = None
    ended_batches: Sequence[EndedBatch] = ()


class Observation(NamedTuple):
    """The cluster as the scheduler may know it, and the status of every job that has one.

    Jobs that are being profiled may have none. Jobs that ended since the last observation have one
    for the last time.
    """

    state: ClusterState
    statuses: Sequence[JobStatus]


class Applied(NamedTuple):
    """What followed at once from the changes of a round, and the status of the jobs touched."""

    events: Sequence[Event]
    statuses: Sequence[JobStatus]


@dataclass(frozen=True)
class Pause:
    """Why rounds leave a job out for now: a reason and its evidence."""

    code: ReasonCode
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class News:
    """Requests since the last round.

    `jobs`: new jobs, as the database holds them; `tenants`: names by id, of those with new jobs;
    `cancelled`: jobs that were asked to end, new ones included. `tables`: what the executor's own
    tables say now, as `ExecutorEntry.read` found it. `paused`: all jobs that are to hold no GPU for
    now. The executor takes theirs away as a preemption does; rounds do not see these jobs. `met`:
    (job, other) where a job waited for another that has succeeded; executors need not know.
    """

    jobs: Sequence[JobRow]
    tenants: Mapping[str, str]
    cancelled: Sequence[JobId]
    tables: Any = None
    paused: Mapping[JobId, Pause] = field(default_factory=dict)
    met: Sequence[tuple[JobId, JobId]] = ()


class StoredJob(NamedTuple):
    """The stored state of one job. `standing` changes often, `samples` seldom."""

    standing: str
    samples: str


@dataclass(frozen=True)
class StoredState:
    """The state that an executor left in the database. Only this executor can read it."""

    head: Mapping[str, Any]
    jobs: Mapping[JobId, StoredJob]


@dataclass(frozen=True)
class StateChanges:
    """What must be written so that the stored jobs are the executor's present ones."""

    new: Mapping[JobId, StoredJob] = field(default_factory=dict)
    standing: Mapping[JobId, str] = field(default_factory=dict)
    samples: Mapping[JobId, str] = field(default_factory=dict)
    gone: Sequence[JobId] = field(default_factory=list)


@dataclass(frozen=True)
class Restoration:
    """All that an executor begins from.

    `clock`: cluster time, which stands still within a step. `news.jobs`: every unfinished job.
    `state`: what it left; None before the first round. `numbers`: the new number of each GPU that
    the state may name by number and that still exists; None if no GPU changed its number.
    `interference`: as declared; None if no GPU can be shared.
    """

    cluster_id: str
    cluster: Cluster
    clock: Clock
    news: News
    state: StoredState | None
    numbers: Mapping[int, int] | None = None
    interference: DeclaredSlowdowns | None = None


class LiveExecutor(Protocol):
    """An executor of a live cluster, from step to step.

    After a step that was not committed, the object is discarded and another one restored.
    """

    @property
    def known(self) -> Set[JobId]:
        """The jobs that it has taken up and that have not ended."""
        ...

    def go_on(self, news: News) -> None:
        """Begin another step. The last one was committed; the clock shows the new time."""
        ...

    def observe(self) -> Observation:
        """Return how everything stands, with the events since the last observation."""
        ...

    def apply(self, changes: Changes) -> Applied:
        """Carry a round out, or begin to. Twice with the same changes is once."""
        ...

    def head(self) -> Mapping[str, Any]:
        """Return the part of the state that belongs to no job, as JSON data."""
        ...

    def take_changes(self, *, of: Iterable[JobId] | None = None) -> StateChanges:
        """Return what differs from the stored jobs; it counts as stored from now on.

        `of`: the jobs that the caller has touched since; None for all.
        """
        ...

    def take_writes(self) -> Sequence[Write]:
        """Return the writes to its own tables; they are stored with what it was told or asked."""
        ...
