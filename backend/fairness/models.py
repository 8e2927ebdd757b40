"""Tables of finish-time fairness: rho of every ended job, and what it is worked out from."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import BigInteger, Index, text
from sqlmodel import Field, SQLModel

from backend.columns import BigId, Json, UtcDateTime
from backend.operations.models import OperationState
from maat.vocabulary import WithoutRho

_OPEN = "state IN ('queued', 'running')"
OPEN: Any = text(_OPEN)
"""Selects the rows that are not settled. Literally as in their index, or it would not be used."""
FAILURES = frozenset({WithoutRho.TIME_LIMIT, WithoutRho.FAULT})


class JobFairness(SQLModel, table=True):
    """rho of a job that has ended. The journal adds the row in the step that ends the job.

    It is a row of work too (worker/work_queue.py): `state` queued, running, succeeded, failed or
    cancelled; `started_at`, `heartbeat_at`, `finished_at` are wall time. Succeeded without a rho
    means that the job is left out.

    `rho` by `rule` and `formula_version`; `jct_seconds`; `contention`: mean number of active jobs
    over its life; `isolated_seconds`: its JCT alone by GPU type. `shape`: the cluster when it was
    first worked out, as [GPU type, usable GPUs of a node, such nodes]; it is kept, so that a newer
    formula starts from the same. `why`: how its life was spent (worker/fairness/lives.py).
    `reason`: a word of WithoutRho, `detail` more of it. `operation_id`: of the request to work it
    out again. `compute_seconds`: what working it out took.
    """

    __tablename__ = "job_fairness"
    __table_args__ = (
        Index("ix_job_fairness_cluster_finished", "cluster_id", "finished_seconds"),
        Index("ix_job_fairness_operation", "operation_id"),
        Index(
            "ix_job_fairness_open",
            "finished_seconds",
            sqlite_where=text(_OPEN),
            postgresql_where=text(_OPEN),
        ),
    )

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", max_length=40)
    finished_seconds: float
    state: str = Field(default=OperationState.QUEUED.value, max_length=40)
    rule: str | None = Field(default=None, max_length=40)
    formula_version: int | None = None
    rho: float | None = None
    jct_seconds: float | None = None
    contention: float | None = None
    isolated_seconds: dict[str, float] | None = Field(default=None, sa_type=Json)
    shape: list[list[Any]] | None = Field(default=None, sa_type=Json)
    why: dict[str, Any] | None = Field(default=None, sa_type=Json)
    reason: str | None = Field(default=None, max_length=40)
    detail: str | None = Field(default=None, max_length=500)
    operation_id: str | None = Field(default=None, foreign_key="operations.id", max_length=40)
    cancel_requested: bool = False
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    compute_seconds: float | None = None


def settled_state(reason: str | None) -> OperationState:
    """Return the state of a row that has been settled, by why it has no rho."""
    if reason == WithoutRho.SKIPPED:
        return OperationState.CANCELLED
    return OperationState.FAILED if reason in FAILURES else OperationState.SUCCEEDED


class WaitReason(SQLModel, table=True):
    """Since when a job without GPUs waits for this reason (a ReasonCode).

    It holds until the next one, or until the job gets GPUs. Summed up in `JobFairness.why` once the
    job has ended, and deleted then.
    """

    __tablename__ = "job_wait_reasons"
    __table_args__ = (Index("ix_job_wait_reasons_job", "job_id", "id"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    at_seconds: float
    code: str = Field(max_length=64)


class EndedBelief(SQLModel, table=True):
    """What was believed of a job when it ended, where its executor keeps nothing else of it.

    `samples`: by GPU type, rows of [nodes, replicas, per-GPU batch, step seconds, synchronisation
    seconds]. `gradients`: rows of [effective samples done, squared norm, variance]; None until they
    are gathered from `job_gradients`.
    """

    __tablename__ = "ended_beliefs"

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    samples: dict[str, list[list[float]]] = Field(sa_type=Json)
    gradients: list[list[float]] | None = Field(default=None, sa_type=Json)


class RhoDay(SQLModel, table=True):
    """rho of a tenant's jobs that ended on one day of a cluster's calendar (UTC).

    The fields are those of backend.fairness.distribution.RhoSums.
    """

    __tablename__ = "rho_days"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    day: date = Field(primary_key=True)
    tenant_id: str = Field(foreign_key="tenants.id", primary_key=True, max_length=40)
    jobs: int
    micros: int = Field(sa_type=BigInteger)
    unfair: int
    worst: float
    sketch: bytes


class EndedDay(SQLModel, table=True):
    """A day whose RhoDay rows are whole. It goes when rho of one of its jobs changes.

    `counts`: the jobs that ended, as rows of [state, reason, formula version, number]; the state is
    that of JobFairness. `of_tenants`: by tenant id, how many of each of these rows are its own.
    `succeeded`: of them, jobs that did, by tenant id.
    """

    __tablename__ = "ended_days"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    day: date = Field(primary_key=True)
    counts: list[list[Any]] = Field(sa_type=Json)
    of_tenants: dict[str, list[int]] = Field(sa_type=Json)
    succeeded: dict[str, int] = Field(sa_type=Json)


class WeightChange(SQLModel, table=True):
    """A tenant's weight had another value from a time of a cluster on.

    `at_seconds`: cluster time. `before`, `after`: the weights.
    """

    __tablename__ = "weight_changes"
    __table_args__ = (
        Index("ix_weight_changes_cluster", "cluster_id", "at_seconds"),
        Index("ix_weight_changes_tenant", "tenant_id"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", max_length=40)
    at_seconds: float
    before: float
    after: float


class ShareDay(SQLModel, table=True):
    """Shares of the tenants over one day of a cluster's calendar (UTC), once it is over.

    `capacity_gpu_seconds`: GPUs in service. `tenants`: by id, [deserved, held, demanded] GPU
    seconds.
    """

    __tablename__ = "share_days"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    day: date = Field(primary_key=True)
    capacity_gpu_seconds: float
    tenants: dict[str, list[float]] = Field(sa_type=Json)
