"""GPUs that are kept for a tenant or a job."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Body, GpuCount, GpuTypeName, Moment, Name, Timestamp


class ReservationBody(Body):
    """GPUs of one type kept for a holder: a tenant by name, or a job by id.

    Times are the cluster's own.
    """

    gpu_type: GpuTypeName
    gpu_count: GpuCount
    tenant: Name | None = None
    job_id: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    start_at: Moment | None = Field(default=None, description="Default: now.")
    end_at: Moment | None = Field(default=None, description="Default: until it is removed.")


class ReservationOut(TypedDict):
    """A reservation.

    The holder is `tenant` or `job_id`; both are null for another tenant, and another tenant's job
    has a key such as `other-1`. `state`: at the cluster's present time. A reservation for a job is
    over when the job has ended.
    """

    id: str
    cluster_id: str
    gpu_type: str
    gpu_count: int
    tenant: str | None
    job_id: str | None
    start_at: Timestamp
    end_at: Timestamp | None
    state: Literal["upcoming", "active", "over"]
    created_at: Timestamp
