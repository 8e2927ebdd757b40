"""Tables of clusters, their nodes and the state that survives a worker's restart."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import UniqueConstraint
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import CompressedJson, Json, UtcDateTime
from backend.ids import new_id
from maat.scheduling.parts import Parts
from maat.scheduling.stability import Stability
from maat.vocabulary import ExecutorKind

DEFAULT_KEEP_ROUNDS = 10_000
FOUND_GPUS: dict[str, Any] = {"gpus": "found"}
"""Parameters of the executor local where the machine's own GPUs are the nodes."""


class Cluster(SQLModel, table=True):
    """A cluster.

    `epoch`: the date shown for cluster second 0. `lease_*` and `fencing`: the worker that may
    commit rounds (wall time). `fault`: why its engine does not answer; None while it does.
    `interference`: see backend/clusters/interference.py.
    """

    __tablename__ = "clusters"

    id: str = Field(default_factory=lambda: new_id("clu"), primary_key=True, max_length=40)
    name: str = Field(unique=True, max_length=200)
    policy: str = Field(max_length=100)
    policy_parameters: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    placer: str = Field(max_length=100)
    placer_parameters: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    round_seconds: float
    speed: float = 1.0
    epoch: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    anchor_wall: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    anchor_boot: str | None = Field(default=None, max_length=40)
    anchor_boot_seconds: float | None = None
    anchor_seconds: float = 0.0
    paused: bool = False
    executor: str = Field(default=ExecutorKind.SIMULATED.value, max_length=40)
    executor_parameters: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    fault: str | None = Field(default=None, max_length=1000)
    keep_rounds: int = DEFAULT_KEEP_ROUNDS
    jobs_per_gpu: int = 1
    interference: str | None = Field(default=None, max_length=300)
    least_stay_seconds: float | None = None
    most_moves_per_hour: int | None = None
    next_round_number: int = 1
    lease_holder: str | None = Field(default=None, max_length=200)
    lease_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    fencing: int = 0
    version: int = 1
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)

    @property
    def parts(self) -> Parts:
        """The policy that decides and the placer that places, with their parameters."""
        return Parts(self.policy, self.placer, self.policy_parameters, self.placer_parameters)

    @property
    def stability(self) -> Stability:
        """How long jobs stay where they are."""
        return Stability(self.least_stay_seconds, self.most_moves_per_hour)

    @property
    def runs_commands(self) -> bool:
        return self.executor != ExecutorKind.SIMULATED

    @property
    def finds_nodes(self) -> bool:
        """Whether its executor says which nodes there are."""
        return self.executor == ExecutorKind.SLURM or self.executor_parameters == FOUND_GPUS

    @property
    def is_stopped(self) -> bool:
        """Whether its time stands still. Processes go on while rounds are paused: time too."""
        return self.paused and not self.runs_commands

    @property
    def latest_round(self) -> int | None:
        """The number of the last round; None before the first."""
        return self.next_round_number - 1 if self.next_round_number > 1 else None


class Node(SQLModel, table=True):
    """A node.

    `position` orders the nodes and so numbers the GPUs; `drained_gpus`: indices on it. `fault`: why
    its engine cannot use it; None if it can.
    """

    __tablename__ = "nodes"
    __table_args__ = (
        UniqueConstraint("cluster_id", "name"),
        UniqueConstraint("cluster_id", "position"),
    )

    id: str = Field(default_factory=lambda: new_id("node"), primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", index=True, max_length=40)
    name: str = Field(max_length=200)
    gpu_type: str = Field(max_length=64)
    gpu_count: int
    memory_gib: float | None = None
    drained_gpus: list[int] = Field(default_factory=list, sa_type=Json)
    fault: str | None = Field(default=None, max_length=1000)
    position: int
    version: int = 1


class ClusterRuntime(SQLModel, table=True):
    """The latest state of the policy, the placer and the executor.

    It is written with the round that made it. `executor_state` holds what belongs to no job: the
    nodes by which GPUs were numbered, and what only the executor reads. Each job's state is a row
    of its own.
    """

    __tablename__ = "cluster_states"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    round_number: int = 0
    policy_state: dict[str, Any] | None = Field(default=None, sa_type=Json)
    placer_state: dict[str, Any] | None = Field(default=None, sa_type=Json)
    executor_state: Any = Field(default=None, nullable=True, sa_type=CompressedJson)


class ExecutorJob(SQLModel, table=True):
    """How the executor left an unfinished job.

    `standing`: text that only the executor reads.
    """

    __tablename__ = "executor_jobs"

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", index=True, max_length=40)
    standing: str = Field(sa_type=sa.Text)


class ExecutorSamples(SQLModel, table=True):
    """What the executor has learnt of a job, such as step times: text that only it reads.

    It is large and changes rarely, so it is not in the row that every round writes.
    """

    __tablename__ = "executor_samples"

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", index=True, max_length=40)
    samples: str = Field(sa_type=sa.Text)
