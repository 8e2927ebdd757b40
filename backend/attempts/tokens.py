"""Identifies an attempt by its token, which can report for it and do nothing else."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from backend.problems import Forbidden, Unauthenticated
from backend.secret_key import ATTEMPT_PREFIX, secret_key
from backend.settings import Settings
from backend.web.before_body import before_body

PERMISSION = "attempts:report"


@before_body
async def reporting_attempt(request: Request) -> str:
    """Return the id of the attempt that the token belongs to.

    Raises Unauthenticated without such a token, Forbidden if the address names another attempt.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.startswith(ATTEMPT_PREFIX):
        raise Unauthenticated("Send the attempt's token, which its agent finds in its folder.")
    settings: Settings = request.app.state.settings
    named = str(request.path_params["attempt_id"])
    if not secret_key(settings).is_token_of(named, token):
        raise Forbidden(
            "The token belongs to another attempt.",
            remedy="Send the one in the folder of this attempt.",
        )
    return named


reporting_attempt.permission = PERMISSION  # type: ignore[attr-defined]  # a test reads it
ReportingAttempt = Annotated[str, Depends(reporting_attempt)]
