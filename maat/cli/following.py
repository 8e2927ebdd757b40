"""Follows an operation of the service to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maat.api.operations import OperationOut
    from maat.client import Client

LOOK_SECONDS = 0.3
QUIET_SECONDS = 1.0
"""What takes no longer shows no progress."""


def followed(
    maat: Client, operation_id: str, *, tell: Callable[[OperationOut], object] = lambda _: None
) -> OperationOut:
    """Return an operation once it has ended; Ctrl+C cancels it and ends the command.

    `tell`: called while it lasts, from QUIET_SECONDS on.
    """
    begun = time.monotonic()
    try:
        while (operation := maat.operation(operation_id))["state"] in ("queued", "running"):
            if time.monotonic() - begun > QUIET_SECONDS:
                tell(operation)
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        maat.cancel_operation(operation_id)
        raise
    return operation
