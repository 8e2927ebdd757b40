"""By what a request names its sender."""

from __future__ import annotations

import hashlib
import json

from fastapi import Request

from backend.accounts.cookies import session_secret
from backend.accounts.locality import is_local
from backend.settings import Settings


def digest_of_credentials(request: Request) -> str:
    """Return a digest of all by which a request names its sender; equal ones have the same."""
    settings: Settings = request.app.state.settings
    given = [
        request.headers.get("authorization"),
        session_secret(request),
        settings.implicit_admin and is_local(request),
    ]
    return hashlib.sha256(json.dumps(given).encode()).hexdigest()
