"""Imports: other systems' records of jobs as a trace, and their nodes as those of a cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.clusters import NodeBody
from maat.api.fields import Body, GpuTypeName
from maat.api.simulations import MAX_SIMULATED_JOBS

MAX_PREVIEWED = 500
MAX_RENAMED = 200
SHOWN_LINES = 5

TraceSourceFormat = Literal["sacct", "philly", "helios", "csv"]
Rule = Literal["recorded", "size-class"]
ForeignName = Annotated[str, Field(min_length=1, max_length=100)]
GpuTypes = Annotated[dict[ForeignName, GpuTypeName], Field(max_length=MAX_RENAMED)]
ColumnName = Annotated[str, Field(min_length=1, max_length=1000)]
Mapping = Annotated[dict[ForeignName, ColumnName], Field(max_length=20)]


class TraceImportBody(Body):
    """Records of jobs to read as a trace. Nothing is stored."""

    format: TraceSourceFormat
    text: Annotated[str, Field(min_length=1)]
    mapping: Mapping = Field(
        default_factory=dict,
        description="For csv: which column is submit, gpus, duration (or start and end), name, "
        "gpu_type, tenant, state.",
    )
    rule: Rule = Field(
        default="recorded",
        description="What a record becomes. `recorded`: a rigid job for as many seconds as it ran. "
        "`size-class`: a training of the catalog of its size in GPU-hours.",
    )
    gpu_types: GpuTypes = Field(
        default_factory=dict, description="What other names of GPU types stand for."
    )
    any_gpu_type: bool = Field(
        default=False, description="Let jobs run on any GPU type, whatever their records say."
    )
    max_jobs: Annotated[int, Field(ge=1, le=MAX_SIMULATED_JOBS)] = MAX_SIMULATED_JOBS
    preview_rows: Annotated[int, Field(ge=0, le=MAX_PREVIEWED)] = 20


class ImportedTrace(TypedDict):
    """A trace as a simulation takes it."""

    kind: Literal["csv"]
    text: str


class ImportedJob(TypedDict):
    """What a record becomes. `work_scale`: for `as-recorded` the seconds that it runs."""

    name: str
    submit_seconds: float
    model: str
    gpu_count: int
    gpu_types: list[str] | None
    work_scale: float
    tenant: str


class PreviewRow(TypedDict):
    """One record; `job` null: it is dropped, as `why` says. `row`: its line or entry."""

    row: int
    was: str
    job: ImportedJob | None
    why: str


class DroppedRowsOut(TypedDict):
    """The records dropped for one cause: how many, and the first of them."""

    cause: str
    remedy: str
    column: str
    example: str
    count: int
    rows: list[int]


class TraceImportOut(TypedDict):
    """`trace`: give it to a simulation. `rows`: records read. `rules`: what became of them."""

    trace: ImportedTrace
    jobs: int
    rows: int
    span_seconds: float
    rules: list[str]
    dropped: list[DroppedRowsOut]
    preview: list[PreviewRow]


class ColumnsBody(Body):
    """A CSV whose columns are to be mapped."""

    text: Annotated[str, Field(min_length=1)]


class ColumnsOut(TypedDict):
    """`columns`: the header. `mapping`: what their names say they are; check it.

    `rows`: the cells of the first lines below the header.
    """

    columns: list[str]
    mapping: dict[str, str]
    rows: list[list[str]]


class ClusterImportBody(Body):
    """Nodes as `scontrol show node`, `sinfo`, slurm.conf or YAML name them. Nothing is stored."""

    text: Annotated[str, Field(min_length=1)]
    gpu_types: GpuTypes = Field(
        default_factory=dict, description="What other names of GPU types stand for."
    )


class NodeGroup(TypedDict):
    """Equal nodes."""

    gpu_type: str
    gpus_per_node: int
    nodes: int


class LeftOutNode(TypedDict):
    row: int
    name: str
    why: str


class ClusterImportOut(TypedDict):
    """`nodes`: give them to a new cluster. `renamed`: GPU types, by their names in the text.

    `out_of_service`: by node, its state in the text; in the new cluster it is in service, as are
    those that are `asleep` in the text to save power. `unknown_types`: GPU types in the text for
    which nodes were left out; say what they are like in `gpu_types`.
    """

    format: str
    nodes: list[NodeBody]
    groups: list[NodeGroup]
    gpu_count: int
    left_out: list[LeftOutNode]
    renamed: dict[str, str]
    out_of_service: dict[str, str]
    asleep: list[str]
    unknown_types: list[str]
