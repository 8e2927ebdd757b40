"""GPU types by the names that other systems give them: `nvidia_a100-sxm4-80gb` is `a100`.

The catalog's models were measured on a few types. The others have no measured speed: jobs that are
replayed as they were recorded can run on them, jobs of the catalog cannot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from maat.scheduling.errors import InputError

# Type -> how its name reads elsewhere, in lower case. A name that matches two is not known.
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("rtx", r"2080|^rtx$"),  # the catalog's rtx is the RTX 2080 Ti
    ("quad", r"quadro[ _-]*rtx[ _-]*6000|^quad(ro)?$"),  # the catalog's quad: Quadro RTX 6000
    ("rtx5000", r"rtx[ _-]*5000"),
    ("gtx1080ti", r"1080[ _-]*ti"),
    *(
        (name, rf"(?<![a-z0-9]){name}(?![0-9])")
        for name in (
            *("t4", "v100", "a100", "p100", "k80", "p40", "p4", "m40", "m60"),
            *("a10", "a30", "a40", "l40s", "l4", "h100", "h200", "b200"),
        )
    ),
    ("l40", r"(?<![a-z0-9])l40(?![0-9s])"),
    ("gh200", r"gh200"),
)
# A part of a GPU: MIG (a100_3g.20gb, 1g5gb), a vGPU (H100L-2-24C, GRID T4-8Q), one that is shared.
_SLICE = re.compile(
    r"(?<![a-z0-9])[1-7]g[._-]?\d{1,3}(?:gb)?(?![a-z0-9])"
    r"|-(?:\d{1,2}-)?\d{1,3}(?:q|a|b\d?|c|cme)$"
    r"|(?<![a-z])(?:mig|grid|v-?gpu|slice|shared)(?![a-z])"
)
GPU_TYPES: tuple[str, ...] = tuple(name for name, _ in _PATTERNS)
"""Every type that has a name here."""


@lru_cache(maxsize=4096)  # a file has a few names, in each of its records
def known_gpu_type(name: str) -> str | None:
    """Return the type that a name stands for; None if it is not known, or names several.

    A slice of a GPU (`1g.5gb`) is none of them: it is not as fast as the whole.
    """
    text = name.strip().lower()
    if is_slice(text):
        return None
    named = [known for known, pattern in _PATTERNS if re.search(pattern, text)]
    return named[0] if len(named) == 1 else None


def meant_types(names: Collection[str], there: Collection[str]) -> tuple[str, ...]:
    """Return those of the types that are there which names that are not there stand for."""
    meant = dict.fromkeys(known_gpu_type(name) for name in names if name not in there)
    return tuple(name for name in meant if name is not None and name in there)


def is_slice(name: str) -> bool:
    """Return whether a name stands for a part of a GPU, by MIG or as a vGPU."""
    return _SLICE.search(name.strip().lower()) is not None


def own_name(name: str) -> str:
    """Return a name of another system as the name of a GPU type here."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.strip().lower()).strip("-._")[:40] or "gpu"


def renamed(pairs: Mapping[str, str]) -> Mapping[str, str]:
    """Return the names that somebody says stand for a type, in lower case.

    A type that has no name here may keep its own: `rtx3090=rtx3090`. Raises InputError.
    """
    for name, known in pairs.items():
        if known not in GPU_TYPES and known != own_name(name) and pairs.get(known) != known:
            raise InputError(
                "is no known GPU type",
                field="gpu_types",
                value=f"{name}={known}",
                remedy=f"Use one of: {', '.join(GPU_TYPES)}; or keep its own name: "
                f"{name}={own_name(name)}.",
            )
    return {name.strip().lower(): known for name, known in pairs.items()}
