"""What is believed of GPUs by what jobs reported, and who reported it."""

from __future__ import annotations

from enum import StrEnum
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


def model_words(model: str, tenant: str | None) -> str:
    """Return `vision/resnet`, or the name alone of everybody's model, or one not to be seen."""
    return model if tenant is None else f"{tenant}/{model}"


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


class SharedModelOut(TypedDict):
    """A model of which what all tenants' jobs reported counts together."""

    model: str
    shared_at: Timestamp


class SlowdownOut(TypedDict):
    """How much slower a model steps beside another on its GPUs, by all jobs that measured it.

    `*_batch`: samples of a step on one GPU. `slowdown`: step time beside the partner over that
    alone, the median over tenants and their jobs; `spread`: the standard deviation of all
    `reports`. `is_used`: whether decisions go by it, which takes several reports.
    """

    victim: str
    victim_tenant: Annotated[
        str | None, Field(description="Whose model it is; null: everybody's, or not to be seen.")
    ]
    victim_batch: int
    partner: str
    partner_tenant: str | None
    partner_batch: int
    gpu_type: str
    gpu_count: Annotated[int, Field(description="Of the victim.")]
    slowdown: float
    spread: float
    weight: Annotated[
        float, Field(description="How much the evidence counts, 0-1: less of few or old reports.")
    ]
    jobs: Annotated[int, Field(description="That measured it.")]
    reports: int
    is_used: bool
    reported_by: ReportersOut
    updated_at: Timestamp


class Measured(StrEnum):
    """What jobs measured of a model: steps and memory, the noise of gradients, how they ended."""

    BELIEFS = "beliefs"
    GRADIENTS = "gradients"
    HISTORY = "history"


class ModelEvidenceOut(TypedDict):
    """What jobs of a model reported on a cluster: of how many there is what."""

    model: str
    tenant: Annotated[str | None, Field(description="Whose model it is; null: everybody's.")]
    beliefs: Annotated[int, Field(description="Jobs whose steps were measured.")]
    gradients: Annotated[int, Field(description="Jobs whose gradients were measured.")]
    history: Annotated[int, Field(description="Jobs that succeeded, by which forecasts go.")]
    reported_by: ReportersOut
