"""ETags and preconditions (RFC 9110, 13.1).

A change names the version that it changes, so that two people do not undo each other's work. A tag
is `"VERSION"`, or `"VERSION.MOMENT"` if a resource shows more than requests can change: readers
compare the whole tag, changes only the version.
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
        description='The ETag that you read, such as `"3"`; several; or `*`.',
    ),
]


def etag(version: int, moment: object = None) -> str:
    """Return an ETag. `moment`: what else the answer depends on, besides requests."""
    return f'"{version}"' if moment is None else f'"{version}.{moment}"'


def check_version(if_match: str | None, version: int, moment: object = None) -> None:
    """Check If-Match.

    Raises PreconditionRequired without If-Match, PreconditionFailed if it names only other
    versions.
    """
    if if_match is None:
        raise PreconditionRequired(
            "Send If-Match with the ETag that you read.", current_version=version
        )
    check_version_if_sent(if_match, version, moment)


def check_version_if_sent(if_match: str | None, version: int, moment: object = None) -> None:
    """Check If-Match if it is sent.

    `*` matches any version; a weak tag matches none (RFC 9110, 13.1.1).
    """
    if if_match is None or if_match.strip() == "*":
        return
    if str(version) not in (tag.partition(".")[0] for weak, tag in _tags(if_match) if not weak):
        read = shown_value(if_match.strip())
        detail = f"You read version {read}; it is now version {etag(version)}."
        raise PreconditionFailed(
            detail, headers={"ETag": etag(version, moment)}, current_version=version
        )


def is_known(if_none_match: str, current: str) -> bool:
    """Return whether the reader already has the answer with this tag.

    Weak tags match strong ones (RFC 9110, 13.1.2).
    """
    return if_none_match.strip() == "*" or any(
        f'"{tag}"' == current.removeprefix("W/") for _, tag in _tags(if_none_match)
    )


def _tags(header: str) -> Iterator[tuple[bool, str]]:
    """Yield (is weak, content) of every tag."""
    yield from ((bool(weak), tag) for weak, tag in _ONE.findall(header))
