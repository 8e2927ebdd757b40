"""Jobs: what is asked for. The answers are in job_answers.py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SkipValidation,
    WithJsonSchema,
    model_validator,
)

from maat.api.commands import CommandBody
from maat.api.fields import (
    NEVER_NULL,
    NO_BOUND,
    BatchSize,
    Body,
    GpuCount,
    GpuTypeName,
    LeastStay,
    ModelName,
    Moment,
    MostMoves,
    Name,
)
from maat.vocabulary import (
    HEAVY_WEIGHT,
    LABEL_KEY,
    LABEL_VALUE,
    LARGEST_INTEGER,
    LEAST_WEIGHT,
    MAX_PRIORITY,
    MOST_LABELS,
    MOST_WEIGHT,
    PRIORITIES,
    PriorityClass,
)

MAX_BATCH_JOBS = 1000
MAX_DEMO_JOBS = 200
MAX_WORK = 1000.0
MOST_NEEDS = 32
MAX_ARRAY_INDEX = 999_999


def _label_key(text: str) -> str:
    if not re.fullmatch(LABEL_KEY, text):
        raise ValueError(
            "A label's key has up to 63 letters, digits and ._/-, and begins with a letter or "
            "digit: write for example team"
        )
    return text


def _label_value(text: str) -> str:
    if not re.fullmatch(LABEL_VALUE, text):
        raise ValueError(
            "A label's value has 1 to 63 letters, digits and ._/@:-: write for example vision"
        )
    return text


LabelKey = Annotated[str, AfterValidator(_label_key)]
LabelValue = Annotated[str, AfterValidator(_label_value)]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=MOST_LABELS)]


def _each_once(names: list[str]) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is named {names.count(name)} times: name each type once")
    return names


GpuTypes = Annotated[
    list[GpuTypeName], Field(min_length=1, max_length=50), AfterValidator(_each_once)
]


def priority_of(given: object) -> object:
    """Return the number of a class that is given by name; anything else as it is."""
    if not isinstance(given, str):
        return given
    if given not in tuple(PriorityClass):
        raise ValueError(
            f"There is no such priority: write {', '.join(PriorityClass)}, or a whole number"
        )
    return PRIORITIES[PriorityClass(given)]


Priority = Annotated[
    int,
    Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY),
    BeforeValidator(priority_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(PriorityClass)},
                {"type": "integer", "minimum": -MAX_PRIORITY, "maximum": MAX_PRIORITY},
            ]
        }
    ),
]


JobWeight = Annotated[float, Field(ge=LEAST_WEIGHT, le=MOST_WEIGHT)]


class JobBody(Body):
    """A new job.

    An adaptive job leaves GPU count and batch size to the scheduler; policies that do not choose
    them use `gpu_count`.
    """

    name: Name = Field(title="Name")
    model: ModelName = Field(
        title="Model",
        description="A name of GET /models; with `run` any name for what the command trains.",
    )
    cluster_id: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Id or name; default: the first cluster."
    )
    adaptivity: Literal["rigid", "strong-scaling", "adaptive"] = Field(
        default="adaptive", title="What Maat may vary"
    )
    gpu_count: GpuCount | None = Field(default=None, title="GPUs")
    min_gpus: GpuCount = Field(default=1, title="At least (GPUs)")
    max_gpus: GpuCount | None = Field(default=None, title="At most (GPUs)")
    batch_size: BatchSize | None = Field(
        default=None, title="Batch size (samples)", description="Total, in samples."
    )
    max_batch_size: BatchSize | None = Field(default=None, title="Largest batch size (samples)")
    work_scale: Annotated[float, Field(gt=0, le=MAX_WORK)] = Field(
        default=1.0,
        title="Work (× standard training)",
        description="Share of the model's standard training.",
    )
    gpu_types: GpuTypes | None = Field(
        default=None,
        title="GPU types",
        description="The types that the job may use; default: all on which the model runs.",
    )
    preemptible: bool = Field(default=True, title="May be preempted")
    priority: Priority = Field(
        default=0,
        title="Priority",
        description="A class, or a number: low is -10, normal 0, high 10, urgent 20. From 20 on it "
        "needs the permission jobs:urgent.",
    )
    weight: JobWeight = Field(
        default=1.0,
        title="Weight",
        description="How many jobs like it it counts as, to a policy that weighs jobs: Sia does, "
        f"FIFO does not. Above {HEAVY_WEIGHT:g} it needs the permission jobs:urgent.",
    )
    least_stay_seconds: LeastStay | None = Field(
        default=None,
        title="Least stay (s)",
        description="A round leaves it on its GPUs until it has held them for so long.",
    )
    most_moves_per_hour: MostMoves | None = Field(
        default=None,
        title="Most moves an hour",
        description="A round leaves it on its GPUs while it was moved so often within the last "
        "hour. Of these and the cluster's bounds the stricter ones hold.",
    )
    labels: Labels = Field(
        default_factory=dict,
        title="Labels",
        description="By which use and cost can be summed up and jobs found, such as "
        '{"team": "vision"}.',
    )
    after: Annotated[list[Name], Field(max_length=MOST_NEEDS)] = Field(
        default_factory=list,
        title="Starts after",
        description="Jobs of your tenant that must succeed before it starts, by id or external id; "
        "in a batch also others of it, by external id or place, such as `#0`.",
    )
    deadline: Moment | None = Field(
        default=None,
        title="Deadline",
        description="A wish, in cluster time: it is told when it will be missed. No policy reads "
        "it.",
    )
    external_id: Name | None = Field(
        default=None, title="Your own id", description="Your own id, unique in your tenant."
    )
    workload_kind: Literal["training", "batch-inference", "latency-inference"] = Field(
        default="training",
        title="Kind of work",
        description="What counts as goodput: effective samples/s; samples/s; 1 if the latency SLO "
        "is met, else 0.",
    )
    promised_seconds: Annotated[float, Field(gt=0, le=1_000_000)] | None = Field(
        default=None,
        title="Latency SLO of a batch (s)",
        description="Only for latency-bound inference: the time in which it answers a batch of "
        "`batch_size` requests.",
    )
    run: CommandBody | None = Field(
        default=None,
        title="Command",
        description="What the job runs, on a cluster that runs commands. `model` is then any "
        "name for it, and `batch_size` is the one it was tuned for.",
    )


class CloneBody(Body):
    """What is to be different in a job like another one.

    Fields of JobBody, also single ones of `run`; null takes a field's default.
    """

    changes: dict[str, Any] = Field(default_factory=dict)


class JobChanges(Body):
    """What may change of a job that lives. Fields left out stay unchanged.

    What it asks for may change while it holds no GPUs; `adaptivity` and `batch_size` only before it
    has held any.
    """

    name: Annotated[Name | None, NEVER_NULL] = None
    priority: Annotated[Priority | None, NEVER_NULL] = None
    weight: Annotated[JobWeight | None, NEVER_NULL] = None
    least_stay_seconds: LeastStay | None = Field(default=None, description=NO_BOUND)
    most_moves_per_hour: MostMoves | None = Field(default=None, description=NO_BOUND)
    labels: Annotated[Labels | None, NEVER_NULL] = Field(
        default=None, description="All of them: others are removed."
    )
    deadline: Moment | None = Field(default=None, description="Null takes it away.")
    gpu_types: GpuTypes | None = Field(default=None, description="Null allows all.")
    gpu_count: GpuCount | None = Field(default=None, description="Null takes it away.")
    min_gpus: Annotated[GpuCount | None, NEVER_NULL] = None
    max_gpus: GpuCount | None = Field(default=None, description="Null takes the bound away.")
    adaptivity: Annotated[Literal["rigid", "strong-scaling", "adaptive"] | None, NEVER_NULL] = None
    batch_size: BatchSize | None = Field(default=None, description="Null takes it away.")

    @model_validator(mode="before")
    @classmethod
    def _may_change(cls, given: Any) -> Any:
        fixed = [name for name in JobBody.model_fields if name not in cls.model_fields]
        found = [name for name in fixed if isinstance(given, dict) and name in given]
        if found:
            raise ValueError(
                f"{found[0]} cannot change after the submission: clone the job with another "
                f"{found[0]}, and cancel this one"
            )
        return given


class BatchBody(Body):
    """Many jobs. `atomic`: all or none; `partial`: the usable ones."""

    jobs: Annotated[list[SkipValidation[JobBody]], Field(min_length=1, max_length=MAX_BATCH_JOBS)]
    mode: Literal["atomic", "partial"] = "atomic"


def _each_index_once(indices: list[int]) -> list[int]:
    if len(set(indices)) < len(indices):
        raise ValueError("An index is given twice: give each once")
    return indices


class ArrayBody(Body):
    """One job many times, with an index each: `count` jobs from 0 on, or these indices.

    They are named `name[3]`; a command finds its index in MAAT_ARRAY_INDEX.
    """

    job: JobBody
    count: Annotated[int, Field(ge=1, le=MAX_BATCH_JOBS)] | None = None
    indices: (
        Annotated[
            list[Annotated[int, Field(ge=0, le=MAX_ARRAY_INDEX)]],
            Field(min_length=1, max_length=MAX_BATCH_JOBS),
            AfterValidator(_each_index_once),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _says_how_many(self) -> ArrayBody:
        if (self.count is None) == (self.indices is None):
            raise ValueError("The array has no size, or two: give either count or indices")
        return self

    @property
    def places(self) -> Sequence[int]:
        return self.indices if self.indices is not None else range(self.count or 0)


class DemoBody(Body):
    """Randomly drawn jobs, to try a cluster."""

    cluster_id: Annotated[str, Field(max_length=200)] | None = None
    count: Annotated[int, Field(ge=1, le=MAX_DEMO_JOBS)] = 10
    seed: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)] | None = Field(
        default=None, description="The same seed adds the same jobs."
    )
