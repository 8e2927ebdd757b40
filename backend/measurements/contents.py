"""Turns uploaded files into the library's measurements, and says what they cover.

Knows no table; the worker calls it too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import lru_cache

from maat.simulation.interference import (
    Interference,
    gavel_types,
    is_gavel,
    read_interference_text,
    synthetic,
)
from maat.simulation.variability import Variability, read_variability_texts
from maat.vocabulary import SYNTHETIC, MeasurementKind

EVERY_GPU = "every GPU"

Texts = Mapping[str, str]


def variability_of(texts: Texts, *, gpu_types: Collection[str] | None = None) -> Variability:
    """Read variability. Raises VariabilityError naming file, row and column."""
    return read_variability_texts(texts, gpu_types=gpu_types)


def interference_of(texts: Texts, *, name: str, gpu_type: str | None = None) -> Interference:
    """Read interference. Raises InterferenceError naming row and column.

    `name`: as results show it. `gpu_type`: one of those that the file distinguishes.
    """
    (text,) = texts.values()
    return read_interference_text(text, name=name, gpu_type=gpu_type)


@lru_cache(maxsize=16)
def declared_interference(
    given: str, *, text: str | None = None, name: str = "", gpu_type: str | None = None
) -> Interference:
    """Return the shipped table, one slowdown for all pairs, or the table in a text; cached.

    Raises InterferenceError.
    """
    if text is not None:
        return read_interference_text(text, name=name, gpu_type=gpu_type)
    return synthetic() if given == SYNTHETIC else Interference.constant(float(given))


def catalog_pairs() -> list[tuple[str, str]]:
    """Return the pairs of the catalog's models that can share GPUs: (victim, partner)."""
    return sorted(synthetic().pairs)


def covered(kind: MeasurementKind, texts: Texts) -> dict[str, list[str]]:
    """Return GPU type -> the applications or models measured on it.

    Reads everything. Raises InputError.
    """
    if kind is MeasurementKind.VARIABILITY:
        measured = variability_of(texts).measured
        return {
            gpu_type: sorted(name for of, name in measured if of == gpu_type)
            for gpu_type, _ in sorted(measured)
        }
    ((name, text),) = texts.items()
    types = gavel_types(text, name=name) if is_gavel(text) else None
    if types is None:
        return {EVERY_GPU: _models(interference_of(texts, name=name))}
    return {
        gpu_type: _models(interference_of(texts, name=name, gpu_type=gpu_type))
        for gpu_type in sorted(types)
    }


def _models(table: Interference) -> list[str]:
    return sorted({name for pair in table.pairs for name in pair})


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(texts: Texts) -> str:
    """Return what `sha256sum FILES | sha256sum` prints in the folder of the files."""
    return sha256("".join(f"{sha256(text)}  {name}\n" for name, text in sorted(texts.items())))
