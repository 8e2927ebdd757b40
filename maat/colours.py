"""Colours of GPU types and of lines, for pages and notebooks: colour-blind-safe (Okabe and Ito)."""

from __future__ import annotations

from collections.abc import Iterable

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7")

# The same type has the same colour everywhere, whatever cluster it stands in.
KNOWN_GPU_TYPES = ("t4", "rtx", "a100", "quad", "v100", "h100")
_ALIASES = {
    "rtx2080ti": "rtx",
    "2080ti": "rtx",
    "rtx_2080_ti": "rtx",
    "quadro": "quad",
    "rtx6000": "quad",
    "quadro_rtx_6000": "quad",
    "aws": "t4",
    "dgx": "a100",
    "dgx-ext": "a100",
}

# Lines and areas of policies, tenants and states: another order than GPU types, and dashes.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def gpu_colour(gpu_type: str) -> str:
    """Return the colour of a GPU type; an unknown type gets a colour that follows from its name."""
    known = _ALIASES.get(gpu_type.lower(), gpu_type.lower())
    if known in KNOWN_GPU_TYPES:
        return OKABE_ITO[KNOWN_GPU_TYPES.index(known)]
    return OKABE_ITO[sum(known.encode()) % len(OKABE_ITO)]


def gpu_order(gpu_types: Iterable[str]) -> list[str]:
    """Known types in their fixed order, then the others by name."""
    rank = {name: index for index, name in enumerate(KNOWN_GPU_TYPES)}
    return sorted(
        set(gpu_types),
        key=lambda name: (rank.get(_ALIASES.get(name.lower(), name.lower()), len(rank)), name),
    )
