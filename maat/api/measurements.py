"""Measurements: uploaded tables of GPU variability or of interference."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from maat.api.fields import Body, Name, Timestamp
from maat.vocabulary import SYNTHETIC, MeasurementKind

MAX_FILES = 32
MAX_BYTES = 4_000_000  # of all files together
MAX_LINES = 100_000
ACCEPTED = {
    MeasurementKind.VARIABILITY: "CSV files with the columns uuid (the GPU) and perf (a time), "
    "named APPLICATION-GPUTYPE.csv.",
    MeasurementKind.INTERFERENCE: "One CSV with the columns victim, partner, gpu_count, slowdown; "
    "PAL's norm_speed.csv; or Gavel's simulation_throughputs.json.",
}


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


class FileBody(Body):
    name: Name
    text: Annotated[str, Field(min_length=1, max_length=MAX_BYTES)]


class MeasurementBody(Body):
    """Uploaded files.

    `variability` (GPUs of a type differ): one file per application and GPU type; `interference`
    (jobs share a GPU): one file.
    """

    kind: Annotated[MeasurementKind, Field(strict=False)]
    name: Annotated[Name, AfterValidator(_unmistakable)]
    files: Annotated[list[FileBody], Field(min_length=1, max_length=MAX_FILES)]


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
    notes: Annotated[
        list[str], Field(description="What its owner should know, such as names of no model.")
    ]
    created_at: Timestamp


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
