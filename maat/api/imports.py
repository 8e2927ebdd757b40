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
UnitName = Literal["ns", "us", "ms", "s", "min", "h", "d"]
ColumnName = Annotated[str, Field(min_length=1, max_length=1000)]
Mapping = Annotated[dict[ForeignName, ColumnName], Field(max_length=20)]


class TraceImportBody(Body):
    """Records of jobs to read as a trace. Nothing is stored."""

    format: TraceSourceFormat
    text: Annotated[str, Field(min_length=1)]
    mapping: Mapping = Field(
        default_factory=dict,
        description="For csv: which column is submit, gpus, duration (or start and end), name, "
        "gpu_type, tenant, state. Without it, they are guessed by names and values.",
    )
    units: dict[Literal["duration", "submit", "start", "end"], UnitName] = Field(
        default_factory=dict, description="For csv: the unit of the numbers of these columns."
    )
    zone: ForeignName | None = Field(
        default=None,
        description="Of times without a zone, such as `Europe/Berlin` or `+01:00`; else UTC.",
    )
    dates: Literal["day-first", "month-first"] | None = Field(
        default=None, description="Which number of 02/03/2026 is the day."
    )
    decimal: Literal["point", "comma"] | None = Field(
        default=None, description="What stands before the decimals of a number."
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
    """One record; `job` null: it becomes none, as `why` says. `row`: its line or entry.

    `further_run`: its work counts with the job's first record; else one without job is dropped.
    """

    row: int
    was: str
    job: ImportedJob | None
    why: str
    further_run: bool


class DroppedRowsOut(TypedDict):
    """The records dropped for one cause: how many, and the first of them.

    `gpu_hours`: what they held, of those that say it; `without_hours`: how many do not.
    """

    cause: str
    remedy: str
    column: str
    example: str
    count: int
    rows: list[int]
    gpu_hours: float
    without_hours: int


class TraceImportOut(TypedDict):
    """`trace`: give it to a simulation. `rows`: records read. `rules`: what became of them.

    A record is a job, a further run of one (`further_runs`), or dropped. `gpu_hours`: of the jobs;
    `dropped_gpu_hours`: of the dropped records that say it; `totals`, `losses`: the same in words.
    """

    trace: ImportedTrace
    jobs: int
    rows: int
    further_runs: int
    span_seconds: float
    gpu_hours: float
    longest_hours: float
    most_gpus: int
    dropped_gpu_hours: float
    totals: str
    losses: str
    rules: list[str]
    dropped: list[DroppedRowsOut]
    preview: list[PreviewRow]


class ColumnsBody(Body):
    """A CSV whose columns are to be mapped."""

    text: Annotated[str, Field(min_length=1)]


class ColumnQuestion(TypedDict):
    """What a column means is not clear: `choices` may be `meaning`."""

    meaning: str
    problem: str
    choices: list[str]


class ColumnsOut(TypedDict):
    """`columns`: the header. `mapping`: what they are by their names and values; check it.

    `questions`: what cannot be said without asking. `rows`: the cells of the first lines below the
    header.
    """

    columns: list[str]
    mapping: dict[str, str]
    questions: list[ColumnQuestion]
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
