"""Clusters, their nodes, and which job holds which GPU."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator
from typing_extensions import TypedDict

from maat.api.fields import (
    LEAST_STAY,
    MOST_MOVES,
    NEVER_NULL,
    NO_BOUND,
    Body,
    GpuTypeName,
    LeastStay,
    MostMoves,
    NameInAddresses,
    Parameters,
    RoundSeconds,
    Timestamp,
)
from maat.api.simulations import Interference
from maat.vocabulary import (
    LEAST_SPEED,
    MAX_GPUS_PER_NODE,
    MAX_LIVE_JOBS_PER_GPU,
    MOST_SPEED,
    SYNTHETIC,
    ExecutorKind,
)

MAX_NODES = 5_000
MAX_CLUSTER_GPUS = 20_000  # the cluster's page and every answer about its state show each one

Speed = Annotated[float, Field(ge=LEAST_SPEED, le=MOST_SPEED)]
NodeGpus = Annotated[int, Field(ge=1, le=MAX_GPUS_PER_NODE)]
JobsPerGpu = Annotated[int, Field(ge=1, le=MAX_LIVE_JOBS_PER_GPU)]
KeptRounds = Annotated[int, Field(ge=1, le=10_000_000)]
RegisteredName = Annotated[str, Field(max_length=100)]
"""Of a policy or a placer; whether there is one is checked where they are registered."""
GpuIndices = Annotated[
    list[Annotated[int, Field(ge=0, lt=MAX_GPUS_PER_NODE)]], Field(max_length=MAX_GPUS_PER_NODE)
]


class NodeBody(Body):
    """One node, or `count` equal ones, whose names then begin with `name`."""

    gpu_type: GpuTypeName
    gpu_count: NodeGpus
    name: NameInAddresses | None = None
    count: Annotated[int, Field(ge=1, le=MAX_NODES)] = 1
    memory_gib: Annotated[float, Field(gt=0, le=10_000)] | None = None


def _absolute(path: str) -> str:
    if not path.startswith("/") or not path.isprintable() or "%" in path or "\\" in path:
        raise ValueError("The path is not absolute, or holds % or a backslash: give another one")
    return path


AbsolutePath = Annotated[str, Field(min_length=2, max_length=1_000), AfterValidator(_absolute)]
SlurmName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]*$", max_length=200)]


class SlurmParameters(Body):
    """How jobs of a cluster with the executor slurm are submitted.

    `shared_dir`: a folder that the service, its workers and all nodes see under this path; logs and
    checkpoints lie there. `conf`: the slurm.conf to use. `python`: the interpreter on the nodes,
    where Maat must be installed; default: the worker's own. `cpus_per_gpu` and
    `memory_gib_per_gpu`: what each job gets besides GPUs; default: what Slurm gives.
    """

    shared_dir: AbsolutePath
    partition: SlurmName | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    conf: AbsolutePath | None = None
    python: AbsolutePath | None = None
    cpus_per_gpu: Annotated[int, Field(ge=1, le=1_000)] | None = None
    memory_gib_per_gpu: Annotated[float, Field(gt=0, le=100_000)] | None = None


class ClusterBody(Body):
    """A new cluster: its nodes one by one, or as a shape such as `t4=6x4,a100=2x8`.

    With the executor slurm there are neither: Slurm says which nodes there are. With the executor
    local, nodes have slots without GPUs; if there are neither, the machine's GPUs are the nodes.
    """

    name: NameInAddresses
    nodes: Annotated[list[NodeBody], Field(max_length=MAX_NODES)] | None = None
    shape: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None
    policy: RegisteredName = "sia"
    policy_parameters: Parameters = Field(default_factory=dict)
    placer: RegisteredName | None = Field(
        default=None, description="Default: the policy's own placer."
    )
    placer_parameters: Parameters = Field(default_factory=dict)
    round_seconds: RoundSeconds | None = Field(
        default=None, description="Default: the policy's own interval."
    )
    speed: Speed = Field(default=1.0, description="Cluster seconds per wall second.")
    executor: Annotated[ExecutorKind, Field(strict=False, description="What runs the jobs.")] = (
        ExecutorKind.SIMULATED
    )
    executor_parameters: SlurmParameters | None = Field(
        default=None, description="For the executor slurm, and for no other."
    )
    keep_rounds: KeptRounds = 10_000
    jobs_per_gpu: JobsPerGpu = Field(
        default=1, description="How many jobs may share a GPU; 2 for policies that share."
    )
    interference: Interference | None = Field(
        default=None,
        description="Slowdown of jobs on one GPU: of simulated jobs the truth, of commands a first "
        f"guess, until a pair was measured. `{SYNTHETIC}`, one slowdown for all pairs, or "
        "uploaded measurements, with `#TYPE` if they distinguish GPU types. Default where GPUs "
        f"may be shared: `{SYNTHETIC}` for simulated jobs, 1.25 for commands.",
    )

    least_stay_seconds: LeastStay | None = Field(default=None, description=LEAST_STAY)
    most_moves_per_hour: MostMoves | None = Field(default=None, description=MOST_MOVES)

    @field_validator("executor_parameters", mode="before")
    @classmethod
    def _only_of_slurm(cls, given: object, info: ValidationInfo) -> object:
        executor = info.data.get("executor", ExecutorKind.SLURM)
        if given is not None and executor is not ExecutorKind.SLURM:
            raise ValueError(
                f"The executor {executor.value} takes no parameters: leave them out, or name the "
                "executor slurm"
            )
        return given


class ClusterChanges(Body):
    """Changes of a cluster. Fields left out stay unchanged.

    Another policy brings its own placer unless one is named. A new policy or placer begins with its
    default parameters.
    """

    name: Annotated[NameInAddresses | None, NEVER_NULL] = None
    policy: Annotated[RegisteredName | None, NEVER_NULL] = None
    policy_parameters: Annotated[Parameters | None, NEVER_NULL] = None
    placer: Annotated[RegisteredName | None, NEVER_NULL] = None
    placer_parameters: Annotated[Parameters | None, NEVER_NULL] = None
    round_seconds: Annotated[RoundSeconds | None, NEVER_NULL] = None
    speed: Annotated[Speed | None, NEVER_NULL] = None
    keep_rounds: Annotated[KeptRounds | None, NEVER_NULL] = None
    jobs_per_gpu: Annotated[JobsPerGpu | None, NEVER_NULL] = None
    interference: Annotated[Interference | None, NEVER_NULL] = None
    least_stay_seconds: LeastStay | None = Field(default=None, description=NO_BOUND)
    most_moves_per_hour: MostMoves | None = Field(default=None, description=NO_BOUND)


class NodeChanges(Body):
    """Changes of a node. Fields left out stay unchanged.

    `drained_gpus`: all of its GPUs that are out of service, by their numbers on the node.
    `gpu_count`: how many GPUs it has, of the cluster's last node.
    """

    drained_gpus: Annotated[GpuIndices | None, NEVER_NULL] = None
    gpu_count: Annotated[NodeGpus | None, NEVER_NULL] = None

    @model_validator(mode="after")
    def _says_something(self) -> NodeChanges:
        if self.drained_gpus is None and self.gpu_count is None:
            raise ValueError("The change is empty: give drained_gpus or gpu_count")
        return self


class NodesBody(Body):
    """Nodes to add after the present ones; their GPU numbers follow."""

    nodes: Annotated[list[NodeBody], Field(min_length=1, max_length=MAX_NODES)]


class NodeOut(TypedDict):
    """A node of a cluster."""

    id: str
    name: str
    gpu_type: str
    gpu_count: int
    memory_gib: float | None
    drained_gpus: list[int]
    fault: Annotated[str | None, Field(description="Why it cannot be used; null if it can.")]
    position: int
    version: int


class MovedJobOut(TypedDict):
    """A job that holds GPUs out of service. Counts are GPUs.

    `may_move`: the next round may take them; otherwise it keeps them until it ends.
    `restart_seconds`: checkpoint, stop, start and restore, as estimated.
    """

    job_id: Annotated[
        str,
        Field(description="For another tenant's job, a key of this answer such as `other-1`."),
    ]
    job_name: str
    tenant: str | None
    state: str
    gpu_type: str
    gpu_count: Annotated[int, Field(description="All that it holds.")]
    gpus_here: Annotated[int, Field(description="Those of them that are out of service.")]
    may_move: bool
    restart_seconds: float


class NodeEffectOut(TypedDict):
    """What a change of a node would mean for jobs (`dry_run`): nothing was changed.

    `gpus`: the numbers on the node of all GPUs that would then be out of service, or gone.
    `restart_gpu_seconds`: what the restarts of the jobs that move cost together.
    """

    dry_run: bool
    cluster_id: str
    node: str
    gpus: list[int]
    jobs: list[MovedJobOut]
    held_up_by: Annotated[int, Field(description="Jobs that cannot be moved.")]
    restart_gpu_seconds: float
    sentence: str


class ClusterOut(TypedDict):
    """`speed`: cluster seconds per wall second. `now`: cluster time at this moment."""

    id: str
    name: str
    policy: str
    policy_parameters: dict[str, Any]
    weighs_jobs: Annotated[bool, Field(description="Whether its policy counts jobs by weight.")]
    placer: str
    placer_parameters: dict[str, Any]
    round_seconds: float
    speed: float
    paused: bool
    executor: str
    executor_parameters: dict[str, Any]
    fault: Annotated[
        str | None, Field(description="Why its engine does not answer; null while it does.")
    ]
    keep_rounds: int
    jobs_per_gpu: Annotated[int, Field(description="How many jobs may share a GPU.")]
    interference: Annotated[
        str | float | None, Field(description="The declared slowdown of jobs on one GPU.")
    ]
    least_stay_seconds: Annotated[float | None, Field(description=LEAST_STAY)]
    most_moves_per_hour: Annotated[int | None, Field(description=MOST_MOVES)]
    node_count: int
    gpu_count: Annotated[int, Field(description="All GPUs, drained ones included.")]
    latest_round: int | None
    notes: Annotated[
        list[str],
        Field(
            description="What the policy or placer needs and the cluster lacks, with the remedy; "
            "and GPUs that no job can use."
        ),
    ]
    now: Timestamp
    created_at: Timestamp
    version: int


class GpuHolderOut(TypedDict):
    """A job that holds a GPU. `job_id`: for another tenant's job, a key such as `other-1`."""

    job_id: str
    job_name: str
    tenant: str | None


class GpuOut(TypedDict):
    """One GPU, and which job holds it."""

    gpu: Annotated[int, Field(description="The GPU's number in the cluster.")]
    node: str
    index: Annotated[int, Field(description="The GPU's number on the node.")]
    gpu_type: str
    drained: bool
    held: Annotated[bool, Field(description="Whether a job holds it.")]
    job_id: Annotated[
        str | None,
        Field(description="For another tenant's job, a key of this answer such as `other-1`."),
    ]
    job_name: str | None
    tenant: str | None
    shared_with: Annotated[
        list[GpuHolderOut], Field(description="Jobs that hold it beside that one.")
    ]


class NodeRoom(TypedDict):
    """The free GPUs of one node, which show fragmentation."""

    node: str
    gpu_type: str
    gpu_count: int
    free_gpus: int


class ClusterStateOut(TypedDict):
    """Which job holds which GPU, as of the latest round."""

    now: Timestamp
    round_number: int | None
    as_of: Timestamp | None
    gpus: list[GpuOut]
    capacity_by_type: dict[str, int]
    used_by_type: dict[str, int]
    free_by_type: dict[str, int]
    free_gpus_by_node: list[NodeRoom]
    faults: Annotated[
        dict[str, str], Field(description="By the name of a node that cannot be used, why.")
    ]
    largest_free_on_one_node: dict[str, int]


class HeldOut(TypedDict):
    """How many GPUs of which type a job holds."""

    gpu_type: str
    gpu_count: int


class HoldingChangeOut(TypedDict):
    """A job that holds other GPUs than before, by type or number.

    `before`, `after`: null if it held, or holds, none.
    """

    job_id: Annotated[
        str,
        Field(description="For another tenant's job, a key of this answer such as `other-1`."),
    ]
    job_name: str
    before: HeldOut | None
    after: HeldOut | None


class ClusterChangesOut(TypedDict):
    """What holds other GPUs now than a round left it. `since_round`: null before the second."""

    since_round: int | None
    changes: list[HoldingChangeOut]
