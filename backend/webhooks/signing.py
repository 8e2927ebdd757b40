"""Signs what a webhook receives, so that the receiver can tell it is from this service and new.

    Maat-Signature: v1=HEX    HEX = HMAC-SHA256(secret, TIMESTAMP "." BODY)

The timestamp (seconds since 1970, wall time) is signed too: a receiver refuses old ones.
"""

from __future__ import annotations

import hashlib
import hmac

EVENT, TIMESTAMP, SIGNATURE = "Maat-Event-Id", "Maat-Timestamp", "Maat-Signature"


def signed_headers(secret: str, body: bytes, *, event_id: str, timestamp: int) -> dict[str, str]:
    """Return the headers that a receiver checks. `event_id`: the same in every repetition."""
    return {
        EVENT: event_id,
        TIMESTAMP: str(timestamp),
        SIGNATURE: f"v1={signature(secret, body, timestamp=timestamp)}",
    }


def signature(secret: str, body: bytes, *, timestamp: int) -> str:
    message = str(timestamp).encode() + b"." + body
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
