"""Quotas: how many GPUs of a type a tenant is guaranteed, and may hold at most."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Body, GpuTypeName, Name, Timestamp
from maat.vocabulary import LEAST_WEIGHT, MAX_GPUS, MOST_WEIGHT

MAX_QUOTAS = 1000

QuotaCount = Annotated[int, Field(ge=0, le=MAX_GPUS)]

Weight = Annotated[
    float,
    Field(
        ge=LEAST_WEIGHT,
        le=MOST_WEIGHT,
        title="Weight",
        description="Its share of what several tenants want, against theirs: of 2 and 1, one gets "
        "two thirds.",
    ),
]


class QuotaBody(Body):
    """The quota of one tenant on one GPU type of a cluster. Counts are GPUs."""

    guaranteed: QuotaCount = Field(
        default=0,
        title="Guaranteed (GPUs)",
        description="The tenant has them whenever it wants them. While it does not, others may "
        "borrow them; they come back within one round.",
    )
    ceiling: QuotaCount | None = Field(
        default=None,
        title="Ceiling (GPUs)",
        description="The most that the tenant's jobs may hold together; without one, all.",
    )
    accept_preemption: bool = Field(
        default=False,
        title="Running jobs may lose GPUs",
        description="Needed for a ceiling below what the tenant's jobs hold now: the next round "
        "then takes GPUs from those that may be preempted.",
    )


class TenantQuotaBody(Body):
    """What one tenant may hold in a simulation, in GPUs by type; see `QuotaBody`."""

    tenant: Name
    weight: Weight = 1.0
    guaranteed: dict[GpuTypeName, QuotaCount] = Field(default_factory=dict, max_length=50)
    ceiling: dict[GpuTypeName, QuotaCount] = Field(default_factory=dict, max_length=50)


class QuotaOut(TypedDict):
    """A quota, and what is in use of it now. Counts are GPUs: one that two jobs share counts twice.

    `borrowed`: what the tenant holds above its guarantee. `lent`: how many of its guaranteed GPUs
    others would give back if it wanted all of them now. `weight`: the tenant's, in all clusters.
    """

    cluster_id: str
    tenant: str
    gpu_type: str
    guaranteed: int
    ceiling: int | None
    weight: float
    in_use: int
    borrowed: int
    lent: int
    changed_at: Timestamp
    version: int


class QuotaTypeOut(TypedDict):
    """One GPU type of a cluster: all GPUs, those in service, those that jobs hold.

    `guaranteed`: to all tenants together; null for readers who do not see all tenants.
    """

    gpu_type: str
    gpus: int
    in_service: int
    in_use: int
    guaranteed: int | None


class QuotaPage(TypedDict):
    """One page of quotas, and all GPU types of the cluster. `next_cursor` is null on the last."""

    items: list[QuotaOut]
    next_cursor: Annotated[
        str | None,
        Field(description="Pass it as `cursor` for the next page; null on the last."),
    ]
    gpu_types: list[QuotaTypeOut]
