"""Operations as the API answers them."""

from __future__ import annotations

from backend.answers import answer_of
from backend.operations.models import ENDED, Operation
from maat.api.operations import OperationOut


def show_operation(operation: Operation) -> OperationOut:
    return answer_of(
        OperationOut,
        operation,
        cancelable=operation.state not in ENDED and not operation.cancel_requested,
    )
