"""Tables of attempts: their lives, the GPUs that they hold, and what was measured in them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from backend.columns import BigCount, BigId, Json, UtcDateTime
from backend.ids import new_id
from maat.vocabulary import AttemptKind, Outcome

_FAILURES = frozenset({Outcome.FAILED.value, Outcome.LOST.value, Outcome.CANCELLED.value})


class AttemptRow(SQLModel, table=True):
    """One life of a job's processes on one allocation. `*_seconds` are cluster time.

    The worker writes how it stands, the service what its agent reports: they share no column.

    `kind`: train or profile. `number` grows with every attempt of a job. `round_number`: of the
    round that ordered it; 0 for a profile, which none orders. `gpus_by_node`: GPU indices by the
    node's name. `plan`: the batch plan that it is to run, under `plan_number`. `launched`: the
    engine may have been told. `stop_told`: the engine has heard that it is to end. `last_lines`: of
    the log of the rank that failed first.

    Reported: `incarnation` names the agent's process, so that two with one token are told apart;
    `report_sequence` is the last report's; `progress` effective samples since the job's first
    start; `goodput` effective samples/s between the last two reports; `checkpoint_step` the last
    one saved; `trouble`: what is wrong with its checkpoints; `finished`: all work is done (the
    worker says so of a profile whose script has no agent and ended well);
    `stepping_seconds`: of a profile, the time from its first step on. `processed_samples`,
    `gained_samples`: samples of all steps of this attempt, and their effective ones; None if its
    agent does not say. `checkpoint_seconds`: when the last new checkpoint was reported.
    `total_samples`: all work, as last named, and `least_total_samples` the least that was ever
    named. `timed_*`: the steps whose times were reported, how long they took together, and since
    when they are taken.
    """

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("job_id", "number"),
        Index(
            "ix_attempts_live",
            "cluster_id",
            sqlite_where=text("state != 'ended'"),
            postgresql_where=text("state != 'ended'"),
        ),
        Index("ix_attempts_ended", "cluster_id", "ended_seconds"),
    )

    id: str = Field(default_factory=lambda: new_id("att"), primary_key=True, max_length=40)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    kind: str = Field(default=AttemptKind.TRAIN.value, max_length=40)
    number: int
    round_number: int
    state: str = Field(max_length=40)
    outcome: str | None = Field(default=None, max_length=40)
    reason: str = Field(default="", max_length=1000)
    reports: bool
    engine_id: str | None = Field(default=None, max_length=200)
    gpu_type: str = Field(max_length=64)
    gpus_by_node: dict[str, list[int]] = Field(sa_type=Json)
    gpu_count: int
    plan: dict[str, int] | None = Field(default=None, sa_type=Json)
    plan_number: int = 0
    launched: bool = False
    ordered_seconds: float
    queued_seconds: float | None = None
    alive_seconds: float | None = None
    running_seconds: float | None = None
    stop_reason: str | None = Field(default=None, max_length=40)
    stop_seconds: float | None = None
    stop_told: bool = False
    killed_seconds: float | None = None
    absent_seconds: float | None = None
    ended_seconds: float | None = None
    exits: dict[str, int] | None = Field(default=None, sa_type=Json)
    last_lines: list[str] | None = Field(default=None, sa_type=Json)
    incarnation: str | None = Field(default=None, max_length=64)
    report_sequence: int = Field(default=0, sa_type=BigCount)
    reported_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    reported_seconds: float | None = None
    progress: float | None = None
    total_samples: float | None = None
    least_total_samples: float | None = None
    timed_steps: int = Field(default=0, sa_type=BigInteger)
    timed_seconds: float = 0.0
    timed_since: float | None = None
    checkpoint_step: int | None = Field(default=None, sa_type=BigCount)
    trouble: str | None = Field(default=None, max_length=500)
    restore_seconds: float | None = None
    loss: float | None = None
    running_plan: dict[str, int] | None = Field(default=None, sa_type=Json)
    goodput: float | None = None
    finished: bool = False
    stepping_seconds: float | None = None
    processed_samples: float | None = None
    gained_samples: float | None = None
    checkpoint_seconds: float | None = None

    @property
    def lost_gpu_seconds(self) -> float:
        """Return the GPU seconds after the last checkpoint, if a failure ended the attempt."""
        if self.ended_seconds is None or self.outcome not in _FAILURES:
            return 0.0
        if self.kind != AttemptKind.TRAIN or self.running_seconds is None:
            return 0.0
        saved = max(self.running_seconds, self.checkpoint_seconds or 0.0)
        return max(self.ended_seconds - saved, 0.0) * self.gpu_count

    def gpu_seconds(self, now: float) -> float:
        """Return for how many GPU seconds the attempt has held its GPUs."""
        if self.queued_seconds is None:
            return 0.0
        end = now if self.ended_seconds is None else self.ended_seconds
        return max(end - self.queued_seconds, 0.0) * self.gpu_count


class GpuHold(SQLModel, table=True):
    """A GPU that an attempt holds. That nobody else holds it is the key's doing.

    `slot`: 0, and 1 for a second attempt where the engine lets two share.
    """

    __tablename__ = "gpu_holds"

    node_id: str = Field(foreign_key="nodes.id", primary_key=True, max_length=40)
    gpu_index: int = Field(primary_key=True)
    slot: int = Field(default=0, primary_key=True)
    attempt_id: str = Field(foreign_key="attempts.id", index=True, max_length=40)


class StepSample(SQLModel, table=True):
    """Step times of a job in one configuration: count, means, and the squares' sum about the mean.

    `sync_mean`: the part of a step that waits for other replicas and overlaps with nothing.
    `believed_*`: what models are fitted to. These follow the measured ones only when those have
    moved (backend/attempts/steps.py), and `believed_weight` says how much they count.
    """

    __tablename__ = "job_samples"
    __table_args__ = (
        UniqueConstraint(
            "job_id",
            "gpu_type",
            "node_count",
            "replica_count",
            "per_gpu_batch_size",
            "accumulation_steps",
            name="uq_job_samples_configuration",
        ),
        CheckConstraint(
            "step_mean > 0 AND step_mean <= 1e5 AND step_m2 >= 0 AND step_m2 <= 1e18",
            name="step_is_time",
        ),
        CheckConstraint("sync_mean >= 0 AND sync_mean <= 1e5", name="sync_is_time"),
        CheckConstraint(
            "believed_step > 0 AND believed_step <= 1e5 AND believed_sync >= 0 "
            "AND believed_sync <= 1e5 AND believed_weight >= 0 AND believed_weight <= 1",
            name="belief_is_time",
        ),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    gpu_type: str = Field(max_length=64)
    node_count: int
    replica_count: int
    per_gpu_batch_size: int
    accumulation_steps: int
    count: int = Field(sa_type=BigCount)
    step_mean: float
    step_m2: float
    sync_mean: float
    believed_step: float
    believed_sync: float
    believed_weight: float
    first_seconds: float
    last_seconds: float


class JobFit(SQLModel, table=True):
    """The throughput model of a job on a GPU type, and the samples that it was fitted to.

    `parameters`: the seven of Pollux eq. 8-11. `samples`: rows of maat.scheduling.fitting.Sample;
    others make it out of date. `error`: relative difference between model and samples, root mean
    square. `forecast_error`: the same of the fit before, for configurations that it had not seen;
    None as long as there were none.
    """

    __tablename__ = "job_fits"

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    gpu_type: str = Field(primary_key=True, max_length=64)
    parameters: list[float] = Field(sa_type=Json)
    samples: list[list[float]] = Field(sa_type=Json)
    error: float
    forecast_error: float | None = None
    fitted_seconds: float


class GpuScore(SQLModel, table=True):
    """How slow a GPU was for a job, by the ranks of one attempt on several GPUs.

    `ratio`: its time for a rank's own part of a step over that of the median rank, the mean of
    `count` reports (only the quotient of two ratios of an attempt means something). `application`:
    the job's model. What is believed of a GPU: maat.scheduling.evidence.
    """

    __tablename__ = "gpu_scores"
    __table_args__ = (
        CheckConstraint("count >= 1 AND ratio > 0.3 AND ratio < 3.1", name="score_is_ratio"),
    )

    node_id: str = Field(foreign_key="nodes.id", primary_key=True, max_length=40)
    gpu_index: int = Field(primary_key=True)
    attempt_id: str = Field(foreign_key="attempts.id", primary_key=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", max_length=40)
    application: str = Field(max_length=200)
    count: int
    ratio: float
    updated_seconds: float


class SharingSample(SQLModel, table=True):
    """How much slower a job steps while jobs of a model are on the same GPUs.

    `*_batch`: samples of a step on one GPU, in all passes. `ratio`: over the step time alone in the
    same configuration, the mean of `count` reports by their weights, which sum to `weight`;
    `ratio_m2`: the squares' weighted sum about it. `gpu_count`: of the slowed job. `victim`,
    `tenant_id`: its model and tenant. What is believed of a pair: backend/attempts/slowdowns.py.
    """

    __tablename__ = "sharing_samples"
    __table_args__ = (
        CheckConstraint(
            "count >= 0 AND weight >= 0 AND weight <= 101 AND ratio >= 0.4 AND ratio <= 1001 "
            "AND ratio_m2 > -1 AND ratio_m2 < 1e12",
            name="slowdown_is_ratio",
        ),
        Index("ix_sharing_samples_cluster", "cluster_id", "tenant_id", "victim"),
    )

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    victim_batch: int = Field(primary_key=True, sa_type=BigCount)
    partner_tenant_id: str = Field(foreign_key="tenants.id", primary_key=True, max_length=40)
    partner: str = Field(primary_key=True, max_length=200)
    partner_batch: int = Field(primary_key=True, sa_type=BigCount)
    gpu_type: str = Field(primary_key=True, max_length=64)
    gpu_count: int = Field(primary_key=True)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", max_length=40)
    victim: str = Field(max_length=200)
    count: int
    weight: float
    ratio: float
    ratio_m2: float
    updated_seconds: float


class SharedModel(SQLModel, table=True):
    """A model of which all tenants' evidence counts together, by an administrator's word."""

    __tablename__ = "shared_models"

    model: str = Field(primary_key=True, max_length=200)
    shared_at: datetime = Field(sa_type=UtcDateTime)


class ForgottenPast(SQLModel, table=True):
    """Until when forecasts forget how jobs of a tenant's model ended, in cluster time."""

    __tablename__ = "forgotten_pasts"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", primary_key=True, max_length=40)
    model: str = Field(primary_key=True, max_length=200)
    until_seconds: float


class JobMemory(SQLModel, table=True):
    """Samples of one pass for which a GPU of a type had no room: the fewest of a job."""

    __tablename__ = "job_memory"

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    gpu_type: str = Field(primary_key=True, max_length=64)
    out_of_memory_at: int


class GradientSample(SQLModel, table=True):
    """The gradient's squared norm and variance at the initial batch size, as last reported.

    `batch_size`: that initial batch size, M0 of phi = M0 var / sqr (Pollux eq. 5), in samples.
    """

    __tablename__ = "job_gradients"
    __table_args__ = (
        Index("ix_job_gradients_job", "job_id", "id"),
        CheckConstraint(
            "square >= 0 AND square <= 1e30 AND variance >= 0 AND variance <= 1e30 "
            "AND progress >= 0 AND progress <= 1e18",
            name="gradient_is_finite",
        ),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    at_seconds: float
    square: float
    variance: float
    steps: int = Field(sa_type=BigCount)
    batch_size: int
    progress: float
