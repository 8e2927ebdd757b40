"""What is believed of GPUs by what jobs reported, and who reported it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Timestamp


class ReportersOut(TypedDict):
    """Who reported: tenants that the caller may know by name, and how many others."""

    tenants: list[str]
    other_tenants: int


def reporters_words(reporters: ReportersOut) -> str:
    """Return `vision and 2 other tenants`."""
    names, others = reporters["tenants"], reporters["other_tenants"]
    parts = [", ".join(names)] if names else []
    if others:
        parts.append(f"{others} other tenant{'' if others == 1 else 's'}")
    return " and ".join(parts)


class GpuScoreOut(TypedDict):
    """How slow a GPU is believed to be, by all jobs that compared it with others."""

    node: str
    gpu_index: int
    gpu_type: str
    score: Annotated[
        float, Field(description="A step's time over that on the median GPU of its type; 1: equal.")
    ]
    weight: Annotated[
        float, Field(description="How much the evidence counts, 0-1: less of few or old reports.")
    ]
    attempts: Annotated[int, Field(description="Whose ranks compared it with others.")]
    reported_by: ReportersOut
    updated_at: Timestamp
