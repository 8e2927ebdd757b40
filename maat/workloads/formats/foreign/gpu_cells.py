"""The GPU types that a cell names: one, or several of which the job may have any."""

from __future__ import annotations

import re

from maat.models.gpu_types import known_gpu_type
from maat.workloads.formats.foreign.records import is_absent

_BETWEEN = re.compile(r"[|;,]|\s+or\s+", re.IGNORECASE)
_AROUND = " \t[](){}'\""


def types_in(text: str) -> tuple[str, ...]:
    """Return the names in a cell such as `P100|T4|V100M16` or `['V100', 'T4']`, as written.

    A slash separates names only if each part is a known type.
    """
    names = [part.strip(_AROUND) for part in _BETWEEN.split(text)]
    found: dict[str, None] = {}
    for name in names:
        if not is_absent(name):
            found.update(dict.fromkeys(_by_slash(name)))
    return tuple(found)


def _by_slash(name: str) -> list[str]:
    parts = [part.strip() for part in name.split("/")]
    return parts if len(parts) > 1 and all(map(known_gpu_type, parts)) else [name]
