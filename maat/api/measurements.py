"""Measurements: uploads of GPU variability, interference, profiles of models, and traces."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from typing_extensions import TypedDict

from maat.api.fields import Body, Name, Timestamp
from maat.vocabulary import MEASURED, SYNTHETIC, MeasurementKind

MAX_FILES = 256
MAX_BYTES = 4_000_000  # of all files together
MAX_LINES = 100_000
MAX_ARCHIVE_BYTES = 4_000_000
MAX_URL = 500
ACCEPTED = {
    MeasurementKind.VARIABILITY: "CSV files with the columns uuid (the GPU) and perf (a time), "
    "named APPLICATION-GPUTYPE.csv.",
    MeasurementKind.INTERFERENCE: "One CSV with the columns victim, partner, gpu_count, slowdown; "
    "PAL's norm_speed.csv; or Gavel's simulation_throughputs.json.",
    MeasurementKind.LOCALITY: "One CSV of `maat measure locality`, with the columns model, "
    "gpu_type, gpu_count, per_gpu_batch_size, node_count, within_seconds, across_seconds, steps.",
    MeasurementKind.PROFILES: "A folder for each model with placements-TYPE.csv, "
    "scalability-TYPE.csv and validation-BATCH.csv (a zip, or files named MODEL/FILE); or one JSON "
    "table of throughputs, Gavel's or Shockwave's.",
    MeasurementKind.TRACE: "One trace, in any format of docs/traces.md.",
}
_ADDRESS = re.compile(r"https?://[^\s]+")


def _unmistakable(name: str) -> str:
    """Check a name of measurements.

    It must differ from the shipped table's name and from numbers, and must not hold `#`, which
    chooses a GPU type.
    """
    if (
        name == SYNTHETIC
        or "#" in name
        or re.fullmatch(r"[-+\d.,eE_]+|[-+]?(nan|inf|infinity)", name, re.IGNORECASE)
    ):
        raise ValueError(
            f"A number, '{SYNTHETIC}' and a '#' have another meaning here: use another name"
        )
    return name


def _web_address(url: str) -> str:
    if not _ADDRESS.fullmatch(url):
        raise ValueError("This is no address of the web: begin it with https://")
    return url


Archive = Annotated[str, Field(min_length=1, max_length=MAX_ARCHIVE_BYTES * 4 // 3 + 4)]


class FileBody(Body):
    name: Name
    text: Annotated[str, Field(min_length=1, max_length=MAX_BYTES)]


class MeasurementBody(Body):
    """Uploaded files, as texts or as a zip.

    `variability` (GPUs of a type differ): one file per application and GPU type; `interference`
    (jobs share a GPU) and `locality` (steps across nodes): one file; `profiles` (step times of
    models): a folder per model, or one table of throughputs; `trace`: one file.
    """

    kind: Annotated[MeasurementKind, Field(strict=False)]
    name: Annotated[Name, AfterValidator(_unmistakable)]
    files: Annotated[list[FileBody], Field(max_length=MAX_FILES)] = Field(default_factory=list)
    archive: Archive | None = Field(
        default=None, description="A zip of the files, in base64, instead of `files`."
    )
    source: Name | None = Field(
        default=None, description="Who measured it, and where it was published."
    )
    url: Annotated[str, Field(max_length=MAX_URL), AfterValidator(_web_address)] | None = Field(
        default=None, description="Where it was taken from."
    )
    licence: Name | None = Field(default=None, description="Under which licence it may be used.")

    @field_validator("name")
    @classmethod
    def _is_no_word_of_penalties(cls, name: str, known: ValidationInfo) -> str:
        """Refuse what a request would take for the models' own step times."""
        if name == MEASURED and known.data.get("kind") is MeasurementKind.LOCALITY:
            raise ValueError(f"'{MEASURED}' has another meaning here: use another name")
        return name


class FileOut(TypedDict):
    name: str
    bytes: int
    sha256: str


class MeasurementOut(TypedDict):
    """Uploaded measurements.

    `digest`: as `sha256sum FILES | sha256sum` prints it. `covers`: GPU type -> the applications or
    models measured on it.
    """

    id: str
    kind: MeasurementKind
    name: str
    owner: str
    tenant: str
    digest: str
    bytes: int
    files: list[FileOut]
    covers: dict[str, list[str]]
    source: str | None
    url: str | None
    licence: str | None
    notes: Annotated[
        list[str], Field(description="What its owner should know, such as names of no model.")
    ]
    created_at: Timestamp


class ScoresOut(TypedDict):
    """One application on the GPUs of one type: the median of each GPU over that of all.

    `scores`: ascending. `bins`: of each GPU, the score of its bin (PAL section III-B).
    """

    application: str
    gpu_type: str
    scores: list[float]
    bins: list[float]


class PairsOut(TypedDict):
    """Slowdowns of jobs that share a GPU: rows are victims; null: not measured, or no room."""

    models: list[str]
    slowdowns: list[list[float | None]]


class RatePoint(TypedDict):
    """Samples per second on GPUs of the fewest nodes; `fitted`: by the fitted model, if any."""

    gpus: int
    per_gpu_batch: float
    rate: float
    fitted: float | None


class RatesOut(TypedDict):
    """Throughput of one model on one GPU type (Pollux figure 3)."""

    model: str
    gpu_type: str
    points: list[RatePoint]


class SpreadOut(TypedDict):
    """The penalty of steps across nodes of one model on one GPU type, and its smallest ratio and
    largest over the rows; `steps`: of all rows.
    """

    model: str
    gpu_type: str
    penalty: float
    least: float
    most: float
    steps: int


class MeasurementFiguresOut(TypedDict):
    """What charts draw of a measurement; a part that it has not is empty or null."""

    kind: MeasurementKind
    scores: list[ScoresOut]
    pairs: PairsOut | None
    rates: RatesOut | None
    spreads: list[SpreadOut]


class FileTextOut(TypedDict):
    name: str
    text: str


class MeasurementFilesOut(TypedDict):
    """The files of a measurement, as they were uploaded; those of a zip unpacked."""

    files: list[FileTextOut]


class UsedOut(TypedDict):
    """Measurements that an operation uses. It keeps them when they are deleted.

    `gpu_type`: the one chosen from a table for several.
    """

    id: str
    kind: MeasurementKind
    name: str
    digest: str
    gpu_type: str | None
    deleted: bool
