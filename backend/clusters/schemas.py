"""Clusters and nodes as the API speaks of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from backend.clocktime import cluster_seconds, shown_at, this_moment
from backend.clusters.models import Cluster, Node
from backend.web.fields import Body, Name, Timestamp
from maat.vocabulary import MAX_GPUS_PER_NODE

MAX_NODES = 5_000
MAX_CLUSTER_GPUS = 20_000  # each stands on the cluster's page, and in every answer about its state
MAX_SPEED = 100_000.0

RoundSeconds = Annotated[float, Field(ge=1.0, le=86_400.0)]
Speed = Annotated[float, Field(gt=0.0, le=MAX_SPEED)]
Parameters = Annotated[dict[str, Any], Field(max_length=100)]
GpuIndices = Annotated[
    list[Annotated[int, Field(ge=0, lt=MAX_GPUS_PER_NODE)]], Field(max_length=MAX_GPUS_PER_NODE)
]


class NodeBody(Body):
    """One node, or `count` alike (then `name` is the stem of theirs)."""

    gpu_type: Annotated[str, Field(min_length=1, max_length=48)]
    gpu_count: Annotated[int, Field(ge=1, le=MAX_GPUS_PER_NODE)]
    name: Name | None = None
    count: Annotated[int, Field(ge=1, le=MAX_NODES)] = 1
    memory_gib: Annotated[float, Field(gt=0, le=10_000)] | None = None


class ClusterBody(Body):
    """A new cluster: its nodes one by one, or as a shape such as `t4=6x4,a100=2x8`."""

    name: Name
    nodes: Annotated[list[NodeBody], Field(max_length=MAX_NODES)] | None = None
    shape: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None
    policy: Annotated[str, Field(max_length=100)] = "sia"
    policy_parameters: Parameters = Field(default_factory=dict)
    placer: Annotated[str, Field(max_length=100)] = "whole-node"
    placer_parameters: Parameters = Field(default_factory=dict)
    round_seconds: RoundSeconds | None = Field(
        default=None, description="The policy's own interval where absent."
    )
    speed: Speed = Field(default=1.0, description="Cluster seconds per wall second.")
    keep_rounds: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000


class ClusterChanges(Body):
    """What may change of a cluster. What is left out stays."""

    name: Name | None = None
    policy: Annotated[str, Field(max_length=100)] | None = None
    policy_parameters: Parameters | None = None
    placer: Annotated[str, Field(max_length=100)] | None = None
    placer_parameters: Parameters | None = None
    round_seconds: RoundSeconds | None = None
    speed: Speed | None = None
    keep_rounds: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


class NodeChanges(Body):
    drained_gpus: GpuIndices


class NodesBody(Body):
    """Nodes to add behind those that there are: the numbers of their GPUs follow."""

    nodes: Annotated[list[NodeBody], Field(min_length=1, max_length=MAX_NODES)]


class NodeOut(BaseModel):
    id: str
    name: str
    gpu_type: str
    gpu_count: int
    memory_gib: float | None
    drained_gpus: list[int]
    position: int
    version: int

    @classmethod
    def of(cls, node: Node) -> NodeOut:
        return cls(**node.model_dump(include=set(cls.model_fields)))


class ClusterOut(BaseModel):
    """`speed`: cluster seconds per wall second. `now`: cluster time at this moment."""

    id: str
    name: str
    policy: str
    policy_parameters: dict[str, Any]
    placer: str
    placer_parameters: dict[str, Any]
    round_seconds: float
    speed: float
    paused: bool
    executor: str
    keep_rounds: int
    latest_round: int | None
    now: Timestamp
    created_at: Timestamp
    version: int

    @classmethod
    def of(cls, cluster: Cluster) -> ClusterOut:
        given = cluster.model_dump(include=set(cls.model_fields))
        now = shown_at(cluster, cluster_seconds(cluster, this_moment()))
        return cls(**given, latest_round=cluster.latest_round, now=now)


class GpuOut(BaseModel):
    gpu: int = Field(description="Its number in the cluster.")
    node: str
    index: int = Field(description="Its number on the node.")
    gpu_type: str
    drained: bool
    held: bool = Field(description="Whether a job holds it.")
    job_id: str | None = Field(
        description="Of another tenant's job a key of this answer, such as `other-1`."
    )
    job_name: str | None
    tenant: str | None


class NodeRoom(BaseModel):
    """How much is free on one node: what fragmentation is seen by."""

    node: str
    gpu_type: str
    gpu_count: int
    free_gpus: int


class ClusterStateOut(BaseModel):
    """Which job holds which GPU, as of the latest round."""

    now: Timestamp
    round_number: int | None
    as_of: Timestamp | None
    gpus: list[GpuOut]
    capacity_by_type: dict[str, int]
    used_by_type: dict[str, int]
    free_by_type: dict[str, int]
    free_gpus_by_node: list[NodeRoom]
    largest_free_on_one_node: dict[str, int]
