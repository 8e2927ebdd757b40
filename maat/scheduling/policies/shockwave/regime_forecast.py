"""Predicts how long jobs will still run, by their speeds and batch regimes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.job import Job
from maat.scheduling.policies.requests import requests
from maat.scheduling.rounds import RoundInput


@dataclass(frozen=True)
class Forecast:
    """The predictions for J jobs on their requested GPUs of their fastest type.

    Shapes (J,). `done`: share of the work, 0-1. `spent_seconds`: the seconds that this took or
    would have taken there. `paced_seconds`: the whole work at the mean pace of the epochs begun.
    `remaining_seconds`: predicted. Seconds are NaN if the job's speed is unknown, infinite if it
    can run on no type.
    """

    done: FloatArray
    spent_seconds: FloatArray
    paced_seconds: FloatArray
    remaining_seconds: FloatArray

    def supposing(self, seconds: float) -> Forecast:
        """Return the forecast with `seconds` as the whole time of unknown jobs."""
        unknown, left = np.isnan(self.remaining_seconds), 1.0 - self.done
        return Forecast(
            self.done,
            np.where(unknown, self.done * seconds, self.spent_seconds),
            np.where(unknown, seconds, self.paced_seconds),
            np.where(unknown, left * seconds, self.remaining_seconds),
        )


def forecast(round_input: RoundInput) -> Forecast:
    """Return the forecast of every job of the round, in order."""
    sizes = [_sizes(job) for job in round_input.jobs]
    rates = _rates(round_input, sizes)
    rows = [_of_job(job, rate) for job, rate in zip(round_input.jobs, rates, strict=True)]
    columns = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return Forecast(*columns)


def expected_epochs(
    declared: Sequence[int], begun: Mapping[int, int], *, epochs: float, left: float
) -> Mapping[int, float]:
    """Return how many of `left` epochs are expected at each batch size.

    Dirichlet posterior (Shockwave section 5): every declared size counts as `epochs` / sizes prior
    observations, every epoch begun as one more. The mean is scaled to all `epochs`, the epochs
    begun are subtracted, and the rest is scaled to `left`.
    """
    weight = {size: epochs / len(declared) + begun.get(size, 0) for size in declared}
    scale = epochs / max(sum(weight.values()), 1e-300)
    rest = {size: scale * w - min(begun.get(size, 0), int(scale * w)) for size, w in weight.items()}
    total = sum(rest.values())
    if total <= 0:
        return {size: left / len(declared) for size in declared}
    return {size: left * share / total for size, share in rest.items()}


def _sizes(job: Job) -> tuple[int | None, ...]:
    """Return the total batch sizes that the job may run with.

    None stands for the size that it requests or may choose.
    """
    return (None,) if job.spec.regimes is None else job.spec.regimes.batch_sizes


def _rates(round_input: RoundInput, sizes: Sequence[Sequence[int | None]]) -> list[FloatArray]:
    """Return work per second of every job at each of its sizes, on its fastest type.

    0 if it can run on no type, NaN if it has no model.
    """
    variants = [
        _at_batch_size(job, size)
        for job, own in zip(round_input.jobs, sizes, strict=True)
        for size in own
    ]
    wanted = requests(replace(round_input, jobs=tuple(variants)))
    names = round_input.cluster.type_names
    rate = np.where(wanted.pair_of >= 0, wanted.goodput, 0.0)
    known = np.zeros_like(rate, dtype=bool)
    known[wanted.pairs.job, wanted.pairs.gpu_type] = wanted.pairs.known
    for v, job in enumerate(variants):
        for t in np.flatnonzero(rate[v] > 0).tolist():
            measured = _measured(job, names[t])
            rate[v, t] = rate[v, t] if measured is None else measured
    best = np.where(known, rate, 0.0).max(axis=1, initial=0.0)
    best = np.where((best <= 0) & (rate > 0).any(axis=1), np.nan, best)
    return np.split(best, np.cumsum([len(own) for own in sizes])[:-1]) if sizes else []


def _at_batch_size(job: Job, size: int | None) -> Job:
    """Return the job as it would be with that size throughout.

    Its owner counts epochs, so a sample is worth the same in any batch.
    """
    if size is None:
        return job
    largest = max(job.spec.max_batch_size, size)
    return replace(
        job,
        spec=replace(job.spec, batch_size=size, initial_batch_size=size, max_batch_size=largest),
    )


def _measured(job: Job, gpu_type: str) -> float | None:
    """Return measured samples per second at the job's own count and regime.

    Of several measurements the one on fewest nodes counts. None if there is none.
    """
    belief, size = job.belief.by_type.get(gpu_type), job.spec.batch_size
    if belief is None or size is None or job.spec.regimes is None:
        return None
    replicas = job.spec.requested_gpus // job.spec.replica_gpus(gpu_type)
    per_gpu = size // replicas if job.spec.rounds_batch_down else -(-size // replicas)
    same = [
        s
        for s in belief.samples
        if (s.replica_count, s.per_gpu_batch_size) == (replicas, max(per_gpu, 1))
    ]
    return min((size / s.step_seconds for s in sorted(same)[:1]), default=None)


def _of_job(job: Job, rate: FloatArray) -> tuple[float, float, float, float]:
    work = max(job.spec.work, job.remaining_work, 1e-9)
    done = min(max(1.0 - job.remaining_work / work, 0.0), 1.0)
    if not (rate > 0).all():
        nothing = np.inf if (rate == 0).any() else np.nan
        return done, nothing, nothing, nothing
    if job.spec.regimes is None:
        whole = work / float(rate[0])
        return done, done * whole, whole, job.remaining_work / float(rate[0])
    sizes, one = job.spec.regimes.batch_sizes, job.spec.regimes.epoch_work
    seconds = dict(zip(sizes, (one / rate).tolist(), strict=True))
    begun = dict(job.epochs_begun) or {_first_regime(job): 1}
    left = expected_epochs(sizes, begun, epochs=work / one, left=job.remaining_work / one)
    pace = _mean_epoch_seconds(begun, seconds)
    return (
        done,
        done * work / one * pace,
        work / one * pace,
        sum(many * seconds[size] for size, many in left.items()),
    )


def _first_regime(job: Job) -> int:
    """Return the first regime of the job, as declared."""
    sizes = job.spec.regimes.batch_sizes if job.spec.regimes is not None else ()
    return job.spec.batch_size if job.spec.batch_size in sizes else sizes[0]


def _mean_epoch_seconds(begun: Mapping[int, int], seconds: Mapping[int, float]) -> float:
    """Return the mean seconds of the epochs begun."""
    return sum(many * seconds[size] for size, many in begun.items()) / sum(begun.values())


def longest_first(remaining_seconds: FloatArray, rows: Iterable[int]) -> IntArray:
    """Return rows by predicted remaining time, longest first, ties by row."""
    at = np.array(list(rows), dtype=np.int64)
    order: IntArray = at[np.argsort(-remaining_seconds[at], kind="stable")]
    return order
