"""Operations as the API speaks of them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from backend.operations.models import ENDED, Operation
from backend.web.fields import Timestamp


class OperationOut(BaseModel):
    """Long work. `error` is a problem document where it failed; `result_url` leads to what it made."""

    id: str
    kind: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    done: float
    total: float
    unit: str
    message: str
    error: dict[str, Any] | None
    result_url: str | None
    cancel_requested: bool
    cancelable: bool = Field(description="Whether a cancel would still do something.")
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    updated_at: Timestamp

    @classmethod
    def of(cls, operation: Operation) -> OperationOut:
        given = operation.model_dump(include=set(cls.model_fields))
        return cls(
            **given, cancelable=operation.state not in ENDED and not operation.cancel_requested
        )
