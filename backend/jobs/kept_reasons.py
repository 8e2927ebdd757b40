"""What a job's row keeps of its reasons, in one column of JSON.

Beside the evidence of the primary reason these are what holds too, and why it last waited. Rounds
are pruned by age; a job's row stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

_ALSO, _WAITED = "_also", "_waited"

Stored = Mapping[str, Any]


class KeptReason(TypedDict):
    """A reason as it is stored; `round`: that gave it, None if no round did."""

    code: str
    evidence: dict[str, Any]
    round: int | None


def kept(
    evidence: Mapping[str, Any],
    *,
    also: Sequence[KeptReason] = (),
    waited: KeptReason | None = None,
) -> dict[str, Any]:
    """Return what to store."""
    return {
        **evidence,
        **({_ALSO: list(also)} if also else {}),
        **({_WAITED: waited} if waited else {}),
    }


def evidence_of(stored: Stored) -> dict[str, Any]:
    """Return the evidence of the primary reason."""
    return {name: value for name, value in stored.items() if name not in (_ALSO, _WAITED)}


def also_of(stored: Stored) -> list[KeptReason]:
    """Return what held besides, the most structural first."""
    return cast(list[KeptReason], stored.get(_ALSO, []))


def waited_of(stored: Stored) -> KeptReason | None:
    """Return why the job last waited; None if it did not, or waits now."""
    return cast(KeptReason | None, stored.get(_WAITED))
