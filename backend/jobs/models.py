"""Tables of jobs: the job, its events, and its allocations over time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import BigId, Json, UtcDateTime
from backend.ids import new_id

# The sort keys of a list (repository.SORT_KEYS): columns that never change, and columns that are
# fixed once a job has ended.
_STEADY = {
    "submitted": ("submitted_seconds",),
    "name": ("name",),
    "model": ("model", "submitted_seconds"),
}
_SETTLED = {
    "state": ("state", "submitted_seconds"),
    "progress": ("progress",),
    "gpu_seconds": ("gpu_seconds",),
    "restarts": ("restarts",),
}


def _list_indexes() -> Iterator[Index]:
    """Make an index for every order of a list, for all tenants and for one.

    A page is read in order, however long the history. Columns that every round changes are indexed
    for ended jobs only: rounds write no index, and active jobs are few enough to sort.
    """
    for prefix, first in (("", ()), ("tenant_", ("tenant_id",))):
        for name, columns in _STEADY.items():
            yield Index(f"ix_jobs_{prefix}{name}", *first, *columns, "id")
        for name, columns in _SETTLED.items():
            yield _partial(
                f"ix_jobs_ended_{prefix}{name}",
                *first,
                *columns,
                "id",
                where="finished_seconds IS NOT NULL",
            )
    yield Index("ix_jobs_owner_submitted", "owner_id", "submitted_seconds", "id")
    yield Index("ix_jobs_cluster_submitted", "cluster_id", "submitted_seconds", "id")
    yield Index(
        "ix_jobs_cluster_tenant_submitted", "cluster_id", "tenant_id", "submitted_seconds", "id"
    )
    yield _partial(
        "ix_jobs_cluster_finished",
        "cluster_id",
        "finished_seconds",
        where="finished_seconds IS NOT NULL",
    )
    yield _partial("ix_jobs_active", "cluster_id", "tenant_id", where="finished_seconds IS NULL")
    yield _partial("ix_jobs_array", "array_id", "array_index", where="array_id IS NOT NULL")
    yield _partial("ix_jobs_holding", "gpu_type", where="gpu_type IS NOT NULL")


def _partial(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


class Job(SQLModel, table=True):
    """What the owner declared, and the job's present state.

    `*_seconds` are cluster time.

    `work_scale`: its work as a share of the model's standard training. `remaining_work`: effective
    samples. `processed_samples`, `gained_samples`, `lost_gpu_seconds`: counters that only grow, as
    an executor tells them (worker/executors/protocol.py). `gpus`: GPU numbers of the cluster,
    `batch`: the batch plan of the present allocation.
    `reason_*`: why the latest round gave it this allocation. `pause_requested`: rounds are to leave
    it out, as `paused_by` asked (a name). `paused_since_seconds`: since when it is paused.
    `unwaited_seconds`: for how long it was paused before it first held GPUs. `declared_version`
    grows when the scheduler must read the declaration again. `after`: ids of the jobs that must
    succeed before it starts. `deadline_told_seconds`: the deadline of which an event tells that it
    will be missed.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("tenant_id", "external_id"),
        Index("ix_jobs_cluster_state", "cluster_id", "state"),
        *_list_indexes(),
    )

    id: str = Field(default_factory=lambda: new_id("job"), primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    name: str = Field(max_length=200)
    external_id: str | None = Field(default=None, max_length=200)
    owner_id: str = Field(foreign_key="users.id", max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", max_length=40)
    model: str = Field(max_length=100)
    adaptivity: str = Field(max_length=40)
    gpu_count: int | None = None
    min_gpus: int = 1
    max_gpus: int | None = None
    batch_size: int | None = None
    max_batch_size: int | None = None
    preemptible: bool = True
    priority: int = 0
    weight: float = 1.0
    least_stay_seconds: float | None = None
    most_moves_per_hour: int | None = None
    labels: dict[str, str] = Field(default_factory=dict, sa_type=Json)
    gpu_types: list[str] | None = Field(default=None, sa_type=Json)
    work_scale: float = 1.0
    workload_kind: str = Field(default="training", max_length=40)
    promised_seconds: float | None = None
    state: str = Field(default="submitted", max_length=40)
    submitted_seconds: float
    started_seconds: float | None = None
    finished_seconds: float | None = None
    progress: float = 0.0
    remaining_work: float
    gpu_seconds: float = 0.0
    processed_samples: float = 0.0
    gained_samples: float = 0.0
    lost_gpu_seconds: float = 0.0
    restarts: int = 0
    goodput: float | None = None
    gpu_type: str | None = Field(default=None, max_length=64)
    gpus: list[int] | None = Field(default=None, sa_type=Json)
    batch: dict[str, Any] | None = Field(default=None, sa_type=Json)
    reason_code: str = Field(default="NOT_YET_CONSIDERED", max_length=64)
    reason_evidence: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    as_of_round: int | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    paused_by: str | None = Field(default=None, max_length=200)
    paused_since_seconds: float | None = None
    unwaited_seconds: float = 0.0
    declared_version: int = 1
    after: list[str] = Field(default_factory=list, sa_type=Json)
    deadline_seconds: float | None = None
    deadline_told_seconds: float | None = None
    array_id: str | None = Field(default=None, max_length=40)
    array_index: int | None = None
    version: int = 1
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class JobCount(SQLModel, table=True):
    """The number of jobs of a kind: the sum of `change` over its rows, always exact.

    Triggers on `jobs` add a row for every job that is added, removed or changes its kind (migration
    0009), so that no writer can forget it. Writers never wait for each other, as they would for one
    shared row. counting.py folds gathered rows.
    """

    __tablename__ = "job_counts"

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    tenant_id: str = Field(max_length=40)
    cluster_id: str = Field(max_length=40)
    owner_id: str = Field(max_length=40)
    model: str = Field(max_length=100)
    state: str = Field(max_length=40)
    change: int


class JobEvent(SQLModel, table=True):
    __tablename__ = "job_events"
    __table_args__ = (
        Index("ix_job_events_job", "job_id", "id"),
        Index("ix_job_events_cluster", "cluster_id", "cluster_seconds"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    round_number: int | None = None
    cluster_seconds: float
    kind: str = Field(max_length=40)
    state: str | None = Field(default=None, max_length=40)
    data: dict[str, Any] = Field(default_factory=dict, sa_type=Json)


class JobAllocation(SQLModel, table=True):
    """One span of unchanged allocation: the rows of a job are its timeline.

    `to_seconds` is None while it lasts. `running_seconds`: since when the job ran on it; None while
    it starts. `for_profile`: the job was only measured. The counters of the job as they were at its
    beginning and at its end: None where nobody read them. `noise_scale`: of its gradients at the
    beginning, in samples; None where none was measured.
    """

    __tablename__ = "allocations"
    __table_args__ = (
        Index("ix_allocations_job", "job_id", "id"),
        Index("ix_allocations_cluster", "cluster_id", "from_seconds"),
        Index("ix_allocations_ended", "cluster_id", "to_seconds"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    round_number: int
    from_seconds: float
    to_seconds: float | None = None
    gpu_type: str = Field(max_length=64)
    gpu_count: int
    node_count: int
    gpus: list[int] = Field(default_factory=list, sa_type=Json)
    total_batch_size: int | None = None
    per_gpu_batch_size: int | None = None
    accumulation_steps: int | None = None
    running_seconds: float | None = None
    for_profile: bool = False
    processed_before: float | None = None
    gained_before: float | None = None
    lost_before: float | None = None
    processed_after: float | None = None
    gained_after: float | None = None
    lost_after: float | None = None
    noise_scale: float | None = None


class BatchChange(SQLModel, table=True):
    """The end of a batch size within a span of unchanged allocation.

    `total_batch_size`: that ended. `processed_samples`: the job's counter at that time.
    """

    __tablename__ = "batch_changes"
    __table_args__ = (
        Index("ix_batch_changes_job", "job_id", "id"),
        Index("ix_batch_changes_cluster", "cluster_id", "at_seconds"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    at_seconds: float
    total_batch_size: int
    processed_samples: float


class JobPause(SQLModel, table=True):
    """One span for which a job was paused; `to_seconds` is None while it lasts."""

    __tablename__ = "job_pauses"
    __table_args__ = (
        Index("ix_job_pauses_job", "job_id", "id"),
        Index("ix_job_pauses_ended", "cluster_id", "to_seconds"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    from_seconds: float
    to_seconds: float | None = None


class JobFlag(SQLModel, table=True):
    """What is unlikely of what a job's agent reported (maat/scheduling/plausibility.py).

    `said` and `seen` in `unit`; `attempt`: its number when a round saw it. One that a person has
    dismissed stays, so that the job is not flagged for the same again.
    """

    __tablename__ = "job_flags"
    __table_args__ = (_partial("ix_job_flags_standing", "job_id", where="dismissed_at IS NULL"),)

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    kind: str = Field(primary_key=True, max_length=20)
    attempt: int
    at_seconds: float
    said: float
    seen: float
    unit: str = Field(max_length=40)
    dismissed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    dismissed_by: str | None = Field(default=None, max_length=200)


class JobDependency(SQLModel, table=True):
    """A job starts only after another has succeeded.

    `is_open`: it may still wait for it. Rounds read the open ones only, however long the history.
    """

    __tablename__ = "job_dependencies"
    __table_args__ = (_partial("ix_job_dependencies_open", "cluster_id", where="is_open"),)

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    needed_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    is_open: bool = True


class AllocationReading(SQLModel, table=True):
    """The counters of a job that held GPUs when the first round of a day was made.

    They part a long span by days, so that a day's figures stay when the span goes on.
    """

    __tablename__ = "allocation_readings"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    at_seconds: float = Field(primary_key=True)
    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    processed_samples: float
    gained_samples: float
    lost_gpu_seconds: float
