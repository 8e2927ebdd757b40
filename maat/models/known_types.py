"""Refuses names that are no GPU type anybody knows, with the type that was meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

from maat.models.gpu_types import known_gpu_type
from maat.models.profiles import GPU_TYPE_BY_SUFFIX
from maat.scheduling.errors import ClusterError

_MOST_NAMED = 12


def check_known_types(
    names: Iterable[str], known: Collection[str], *, offered: Iterable[str], by: str
) -> None:
    """Raise ClusterError for the first name that is no known GPU type.

    `offered`: the types to name instead, of which the first few are shown. `by`: who could have
    known it, as in `neither the catalog nor the trace know`.
    """
    unknown = next((name for name in names if name not in known), None)
    if unknown is None:
        return
    meant = _meant(unknown, known)
    hint = "" if meant is None else f"Did you mean {meant}? "
    raise ClusterError(
        f"is a GPU type that {by}",
        field="cluster",
        value=unknown,
        remedy=f"{hint}Known are: {', '.join(islice(offered, _MOST_NAMED))}.",
    )


def _meant(name: str, known: Collection[str]) -> str | None:
    """Return the type that a name of another system, or a slip, stands for."""
    other = GPU_TYPE_BY_SUFFIX.get(name, known_gpu_type(name))
    if other is not None:
        return other if other in known else None
    return next(iter(get_close_matches(name, sorted(known), n=1)), None)
