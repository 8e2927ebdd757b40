"""ETags and If-Match: a change names the version that it changes, so that two people do not undo each other's work."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

from backend.problems import PreconditionFailed, PreconditionRequired

IfMatch = Annotated[str | None, Header(alias="If-Match", max_length=100, description='The ETag that you read, such as `"3"`.')]


def etag(version: int) -> str:
    return f'"{version}"'


def check_version(if_match: str | None, version: int) -> None:
    """Raises PreconditionRequired without If-Match, PreconditionFailed where it names another version. `*` matches any."""
    if if_match is None:
        raise PreconditionRequired("Send If-Match with the ETag that you read.", current_version=version)
    if if_match.strip() not in ("*", etag(version)):
        detail = f"You read version {if_match.strip()}; it is version {etag(version)} by now."
        raise PreconditionFailed(detail, headers={"ETag": etag(version)}, current_version=version)
