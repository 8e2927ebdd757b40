"""The table of docs/sharing.md that shows where SJF-FFS falls behind SJF.

It varies one thing at a time. Plays nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.sharing.runs import (
    DECISION_SEEDS,
    DECISION_XIS,
    SIZES,
    UNINFORMED,
    XIS,
    Outcomes,
    Run,
)
from benchmarks.sharing.variations import VARIATIONS, Setting, scaled
from maat.simulation.interference import interference
from maat.vocabulary import SYNTHETIC
from maat.workloads.sharing import MODELS

HEAD = (
    "varied",
    "mean xi",
    "SJF",
    "queueing",
    "SJF-FFS",
    "queueing",
    "FFS against SJF",
    "FFS before SJF",
)


def decisions_table(found: Outcomes) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return head and rows; each row uses the seeds that both policies have played."""
    xis = sorted({*DECISION_XIS, *(xi for xi in XIS if xi <= 1.5)})
    constants = [
        _row(
            found,
            f"one xi for all pairs: {xi:g}",
            f"{xi:g}",
            _plain("SJF"),
            _plain("SJF-FFS", f"{xi:g}"),
        )
        for xi in xis
    ]
    varied = [
        _row(
            found,
            key or "nothing",
            f"{mean_slowdown(setting):.2f}",
            _plain("SJF", variation=key),
            _plain("SJF-FFS", variation=key),
        )
        for key, setting in VARIATIONS.items()
    ]
    fixed = f"{mean_slowdown(VARIATIONS['']):.2f}"
    uninformed = [
        _row(
            found,
            f"{UNINFORMED}, {n} jobs",
            fixed,
            _plain(UNINFORMED, jobs=n),
            _plain("SJF-FFS", jobs=n),
        )
        for n in SIZES
    ]
    return HEAD, [row for row in (*constants, *varied, *uninformed) if row is not None]


def mean_slowdown(setting: Setting) -> float:
    """Return the mean of a job sharing with another, both of random models."""
    table = scaled(interference(SYNTHETIC), setting.interference_scale).between(list(MODELS), (1,))
    share = np.array(list(MODELS.values())) / sum(MODELS.values())
    return float(share @ np.array([[table[a, b, 1] for b in MODELS] for a in MODELS]) @ share)


def _plain(
    name: str, given: str = SYNTHETIC, *, jobs: int = SIZES[0], variation: str = ""
) -> Callable[[int], Run]:
    return lambda seed: Run(name, jobs, seed, given, variation=variation)


def _row(
    found: Outcomes, label: str, xi: str, sjf: Callable[[int], Run], ffs: Callable[[int], Run]
) -> Sequence[str] | None:
    seeds = [seed for seed in DECISION_SEEDS if sjf(seed) in found and ffs(seed) in found]
    if not seeds:
        return None
    before = sum(found[ffs(seed)].jct < found[sjf(seed)].jct for seed in seeds)
    means = [
        statistics.mean(getattr(found[run(s)], part) for s in seeds)
        for run in (sjf, ffs)
        for part in ("jct", "queueing")
    ]
    return (
        label,
        xi,
        *(f"{mean:.2f}" for mean in means),
        f"{means[2] / means[0] - 1:+.0%}",
        f"{before} of {len(seeds)}",
    )
