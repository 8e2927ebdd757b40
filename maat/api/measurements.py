"""Measurements: uploaded tables of unequal GPUs, or of what jobs on one GPU lose."""

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
    MeasurementKind.VARIABILITY: "CSV files with the columns uuid (the GPU) and perf (a time), named APPLICATION-GPUTYPE.csv.",
    MeasurementKind.INTERFERENCE: "One CSV with the columns victim, partner, gpu_count, slowdown; PAL's norm_speed.csv; "
    "or Gavel's simulation_throughputs.json.",
}


def _unmistakable(name: str) -> str:
    """A simulation names measurements where it could also name the shipped table, give a number, or choose a GPU type by `#`."""
    if (
        name == SYNTHETIC
        or "#" in name
        or re.fullmatch(r"[-+\d.,eE_]+|[-+]?(nan|inf|infinity)", name, re.IGNORECASE)
    ):
        raise ValueError(
            f"It is a number, '{SYNTHETIC}' or has a '#', which mean something else: use another name"
        )
    return name


class FileBody(Body):
    name: Name
    text: Annotated[str, Field(min_length=1, max_length=MAX_BYTES)]


class MeasurementBody(Body):
    """Of GPUs that are not alike (`variability`) one file for each application and GPU type; of jobs on one GPU (`interference`) one file."""

    kind: Annotated[MeasurementKind, Field(strict=False)]
    name: Annotated[Name, AfterValidator(_unmistakable)]
    files: Annotated[list[FileBody], Field(min_length=1, max_length=MAX_FILES)]


class FileOut(TypedDict):
    name: str
    bytes: int
    sha256: str


class MeasurementOut(TypedDict):
    """`digest`: as `sha256sum FILES | sha256sum` prints it. `covers`: GPU type -> the applications or models that were measured on it."""

    id: str
    kind: MeasurementKind
    name: str
    owner: str
    tenant: str
    digest: str
    bytes: int
    files: list[FileOut]
    covers: dict[str, list[str]]
    created_at: Timestamp


class UsedOut(TypedDict):
    """Measurements that work was asked for with. They stay with it when they are deleted. `gpu_type`: the one chosen of a table for several."""

    id: str
    kind: MeasurementKind
    name: str
    digest: str
    gpu_type: str | None
    deleted: bool
