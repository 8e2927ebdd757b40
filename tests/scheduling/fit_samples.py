"""Sets of samples that a job meets: some on one GPU, then a few on more, up to 16.

Step times are those of the catalog's models, exact or scattered, and the published measurements.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maat.models.catalog import load_catalog
from maat.scheduling.arrays import FloatArray
from maat.scheduling.fitting import Sample
from maat.scheduling.throughput import pass_seconds, step_seconds

SHAPES = ((1, 2), (1, 3), (1, 4), (1, 6), (1, 8), (2, 2), (2, 4), (2, 8), (2, 16), (4, 16))
PROFILED = 10


class Met(NamedTuple):
    """A set of samples, with what it was made from."""

    name: str
    samples: list[Sample]
    truth: FloatArray | None = None


def of_catalog(count: int, *, scatter: float, seed: int) -> Iterator[Met]:
    """Yield sets of step times by the catalog's models, scattered by a log-normal factor."""
    rng = np.random.default_rng(seed)
    pairs = [(model, kind) for model in load_catalog().values() for kind in model.fits]
    for _ in range(count):
        model, kind = pairs[rng.integers(len(pairs))]
        fit = model.fits[kind]
        truth = np.array(fit.throughput_parameters)
        low, high = fit.smallest_per_gpu_batch_size, fit.largest_per_gpu_batch_size
        batches = sorted({round(size) for size in np.geomspace(low, high, PROFILED)})
        keys = _keys(batches, rng)
        samples = [_sample(truth, *key, scatter=scatter, rng=rng) for key in keys]
        yield Met(f"{model.name} on {kind}", samples, truth)


def _keys(batches: list[int], rng: np.random.Generator) -> list[tuple[int, int, int]]:
    profiled = batches if rng.random() < 0.6 else list(rng.choice(batches, 1))
    keys = [(1, 1, int(batch)) for batch in profiled]
    for _ in range(rng.integers(0, 6)):
        nodes, replicas = SHAPES[rng.integers(len(SHAPES))]
        key = (nodes, replicas, int(rng.choice(batches)))
        if key not in keys:
            keys.append(key)
    return keys


def _sample(
    truth: FloatArray,
    nodes: int,
    replicas: int,
    batch: int,
    *,
    scatter: float,
    rng: np.random.Generator,
) -> Sample:
    compute = float(pass_seconds(truth, np.asarray(float(batch))))
    step = float(
        step_seconds(
            truth,
            np.asarray(float(batch)),
            node_count=np.asarray(nodes),
            replica_count=np.asarray(replicas),
        )
    )
    of_compute, of_step = np.exp(rng.normal(0.0, scatter, 2)) if scatter else (1.0, 1.0)
    compute, step = compute * of_compute, step * of_step
    if replicas == 1:
        return Sample(1, 1, batch, step, 0.0)
    return Sample(nodes, replicas, batch, step, max(step - compute, 0.0))


def of_profiles(folder: Path, count: int, *, seed: int) -> Iterator[Met]:
    """Yield sets of the published measurements (a folder per model, a file per GPU type)."""
    rng = np.random.default_rng(seed)
    tables = [
        (f"{file.parent.name} {file.stem}", table)
        for file in sorted(folder.glob("*/placements-*.csv"))
        if (table := _measured(file))
    ]
    for _ in range(count):
        name, table = tables[rng.integers(len(tables))]
        alone = [key for key in table if key[1] == 1][:PROFILED]
        several = [key for key in table if key[1] > 1]
        chosen = rng.permutation(len(several))[: rng.integers(0 if alone else 1, 6)]
        keys = alone + [several[at] for at in chosen]
        yield Met(name, [Sample(*key, *table[key]) for key in keys])


def _measured(file: Path) -> dict[tuple[int, int, int], tuple[float, float]]:
    """Return step and synchronisation by (nodes, replicas, batch), where both are possible."""
    times = defaultdict(list)
    with file.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            nodes = len(row["placement"])
            replicas = sum(int(digit) for digit in row["placement"])
            if "local_bsz" in row and replicas <= 16:
                times[nodes, replicas, int(float(row["local_bsz"]))].append(
                    (float(row["step_time"]), float(row.get("sync_time") or 0.0))
                )
    means = {key: np.mean(rows, axis=0).tolist() for key, rows in times.items()}
    return {
        key: (step, sync if key[1] > 1 else 0.0)
        for key, (step, sync) in means.items()
        if sync <= step
    }
