"""Signs what a webhook receives, so that the receiver can tell it is from this service and new.

    Maat-Signature: v1=HEX    HEX = HMAC-SHA256(secret, TIMESTAMP "." BODY)

The timestamp (seconds since 1970, wall time) is signed too: a receiver refuses old ones. While a
secret is replaced, there is a signature by each: v1=HEX,v1=HEX.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

EVENT, TIMESTAMP, SIGNATURE = "Maat-Event-Id", "Maat-Timestamp", "Maat-Signature"


def signed_headers(
    secrets: Sequence[str], body: bytes, *, event_id: str, timestamp: int
) -> dict[str, str]:
    """Return the headers that a receiver checks. `event_id`: the same in every repetition."""
    signatures = [f"v1={signature(secret, body, timestamp=timestamp)}" for secret in secrets]
    return {
        EVENT: event_id,
        TIMESTAMP: str(timestamp),
        SIGNATURE: ",".join(signatures),
    }


def signature(secret: str, body: bytes, *, timestamp: int) -> str:
    message = str(timestamp).encode() + b"." + body
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
