"""ETags and preconditions (RFC 9110, 13.1): a change names the version that it changes, so that two people do not undo each other's work.

A tag is `"VERSION"`, or `"VERSION.MOMENT"` where a resource shows more than what may be changed of it: readers compare the whole tag, and
changes the version alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from fastapi import Header

from backend.problems import PreconditionFailed, PreconditionRequired, shown_value

_TAG = r'(W/)?"[!#-~]*"'
_TAGS = rf"^\s*(\*|{_TAG}(\s*,\s*{_TAG})*)\s*$"
_ONE = re.compile(r'(W/)?"([!#-~]*)"')

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=1000,
        pattern=_TAGS,
        description='The ETag that you read, such as `"3"`; or several; or `*`.',
    ),
]


def etag(version: int, moment: object = None) -> str:
    """`moment`: what else an answer follows from, without being changed by requests."""
    return f'"{version}"' if moment is None else f'"{version}.{moment}"'


def check_version(if_match: str | None, version: int, moment: object = None) -> None:
    """Raises PreconditionRequired without If-Match, PreconditionFailed where it names only other versions."""
    if if_match is None:
        raise PreconditionRequired(
            "Send If-Match with the ETag that you read.", current_version=version
        )
    check_version_if_sent(if_match, version, moment)


def check_version_if_sent(if_match: str | None, version: int, moment: object = None) -> None:
    """`*` matches any version; a weak tag matches none, for it does not say which version it is (RFC 9110, 13.1.1)."""
    if if_match is None or if_match.strip() == "*":
        return
    if str(version) not in (tag.partition(".")[0] for weak, tag in _tags(if_match) if not weak):
        detail = f"You read version {shown_value(if_match.strip())}; it is version {etag(version)} by now."
        raise PreconditionFailed(
            detail, headers={"ETag": etag(version, moment)}, current_version=version
        )


def is_known(if_none_match: str, current: str) -> bool:
    """Whether a reader has the answer with this tag already. Weak tags count as the strong ones (RFC 9110, 13.1.2)."""
    return if_none_match.strip() == "*" or any(
        f'"{tag}"' == current.removeprefix("W/") for _, tag in _tags(if_none_match)
    )


def _tags(header: str) -> Iterator[tuple[bool, str]]:
    """(whether it is weak, what it says) of every tag."""
    yield from ((bool(weak), tag) for weak, tag in _ONE.findall(header))
