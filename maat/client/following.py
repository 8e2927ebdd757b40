"""Follows an operation of the service to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from maat.client.errors import Unreachable

if TYPE_CHECKING:
    from maat.api.operations import OperationOut
    from maat.client import Client

LOOK_SECONDS = 0.3
QUIET_SECONDS = 1.0
"""What takes no longer shows no progress."""
PATIENCE_SECONDS = 60.0
"""A service that does not answer for so long is not about to come back."""


def followed(
    maat: Client, operation_id: str, *, tell: Callable[[OperationOut], object] = lambda _: None
) -> OperationOut:
    """Return an operation once it has ended; Ctrl+C cancels it.

    `tell`: called while it lasts, from QUIET_SECONDS on. A service that is started again meanwhile
    is asked again. Raises Unreachable if it stays away.
    """
    begun = heard = time.monotonic()
    try:
        while True:
            try:
                operation = maat.operation(operation_id)
                heard = time.monotonic()
                if operation["state"] not in ("queued", "running"):
                    return operation
                if heard - begun > QUIET_SECONDS:
                    tell(operation)
            except Unreachable:
                if time.monotonic() - heard > PATIENCE_SECONDS:
                    raise
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        maat.cancel_operation(operation_id)
        raise
