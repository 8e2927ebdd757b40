"""GPUs that are kept free for a tenant or a job."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Body, GpuCount, GpuTypeName, Moment, Name, Timestamp


class ReservationBody(Body):
    """GPUs of one type that everybody but the holder leaves free: a tenant by name, or a job by id. Times are the cluster's own."""

    gpu_type: GpuTypeName
    gpu_count: GpuCount
    tenant: Name | None = None
    job_id: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    start_at: Moment | None = Field(default=None, description="Now where absent.")
    end_at: Moment | None = Field(
        default=None, description="It holds until it is removed where absent."
    )


class ReservationOut(TypedDict):
    """`tenant`, `job_id`: the holder, one of them; both null where it is another tenant, and a job of one goes by a key such as `other-1`.

    `state`: whether it holds at this moment of the cluster's time. One for a job is over when the job has ended.
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
