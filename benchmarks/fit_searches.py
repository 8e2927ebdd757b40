"""What a fit costs and how well it fits, by search: the minimum's beside the published one.

Samples are those that jobs meet in simulations under `paper`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.table import Cell, Figures
from maat.papers.bench import Bench
from maat.papers.data import Data
from maat.papers.fidelity.fits import scenario_of
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.fitting import FitSearch, Sample, fit_throughput
from maat.scheduling.fitting.loss import FitLoss
from maat.scheduling.throughput import step_seconds
from maat.simulation.engine import simulate

COLUMNS = {
    "jobs": "samples of",
    "sets": "sets",
    "published_ms": "published, CPU ms",
    "minimum_ms": "minimum, CPU ms",
    "ratio": "CPU ratio",
    "loss_p50": "published loss / minimum, p50",
    "loss_p90": "p90",
    "published_miss": "published: a measured step is missed by, p99",
    "minimum_miss": "minimum: p99",
}
NOTES = [
    "Distinct sets of samples that were fitted in one simulation under `paper` (40 generated jobs; "
    "philly-1 with the published profiles). Both searches over all of them, in turn, in one "
    "process; CPU is the mean of a fit."
]
RUNS = ("generated-1", "philly-1")
Samples = tuple[Sample, ...]


def measure() -> Figures:
    folder = os.environ.get("MAAT_DATA")
    bench = Bench(Data(None if folder is None else Path(folder)))
    names = RUNS if folder else RUNS[:1]
    rows = [_row(name, _sets_met(name, bench)) for name in names]
    return Figures("fit_searches", "A fit, by search", COLUMNS, rows, list(NOTES))


class _Recording(MemoisingFitter):
    """A fitter that keeps every set of samples that it fitted."""

    def __init__(self) -> None:
        super().__init__()
        self.sets: dict[Samples, None] = {}

    def __call__(self, samples: Samples, /) -> FloatArray:
        self.sets.setdefault(samples)
        return super().__call__(samples)


def _sets_met(name: str, bench: Bench) -> list[Samples]:
    fitter = _Recording()
    simulate(scenario_of(bench, name), fitter=fitter)
    return list(fitter.sets)


def _row(name: str, sets: Sequence[Samples]) -> dict[str, Cell]:
    fits: dict[FitSearch, list[FloatArray]] = {}
    spent: dict[FitSearch, float] = {}
    for search in FitSearch:
        fits[search], spent[search] = _timed(sets, search)
    losses = np.array([_each(sets, fits[search], _loss) for search in FitSearch])
    minimum, published = losses[0], losses[1]
    ratio = published / np.maximum(minimum, 1e-9)
    return {
        "jobs": name,
        "sets": len(sets),
        "published_ms": spent[FitSearch.PUBLISHED],
        "minimum_ms": spent[FitSearch.MINIMUM],
        "ratio": spent[FitSearch.MINIMUM] / spent[FitSearch.PUBLISHED],
        "loss_p50": float(np.median(ratio)),
        "loss_p90": float(np.quantile(ratio, 0.9)),
        "published_miss": _p99(_each(sets, fits[FitSearch.PUBLISHED], _most_missed)),
        "minimum_miss": _p99(_each(sets, fits[FitSearch.MINIMUM], _most_missed)),
    }


def _timed(sets: Sequence[Samples], search: FitSearch) -> tuple[list[FloatArray], float]:
    """Return the fits, and the CPU milliseconds of one."""
    fit_throughput(sets[0], search=search)  # what is loaded once does not count
    began = process_time()
    fits = [fit_throughput(samples, search=search) for samples in sets]
    return fits, (process_time() - began) / len(sets) * 1000


def _each(
    sets: Sequence[Samples],
    fits: Sequence[FloatArray],
    figure: Callable[[Samples, FloatArray], float],
) -> list[float]:
    return [figure(samples, fit) for samples, fit in zip(sets, fits, strict=True)]


def _loss(samples: Samples, fit: FloatArray) -> float:
    return FitLoss(samples)(fit)[0]


def _most_missed(samples: Samples, fit: FloatArray) -> float:
    nodes, replicas, batch, step = np.array([sample[:4] for sample in samples], dtype=float).T
    predicted = step_seconds(fit, batch, node_count=nodes, replica_count=replicas)
    return float(np.abs(predicted / step - 1.0).max())


def _p99(values: Sequence[float]) -> str:
    return f"{100 * float(np.quantile(values, 0.99)):.1f} %"
