"""Long work and its progress."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Timestamp

OperationState = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class OperationOut(TypedDict):
    """Long work.

    `error`: a problem document if it failed; `result_url`: the address of its result.
    """

    id: str
    kind: str
    state: OperationState
    done: float
    total: float
    unit: str
    message: str
    error: dict[str, Any] | None
    result_url: str | None
    cancel_requested: bool
    cancelable: Annotated[bool, Field(description="Whether a cancel would have an effect.")]
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    updated_at: Timestamp
