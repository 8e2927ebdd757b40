"""What stands between a report and a belief: what cannot be true, how far a figure goes. Pure.

A report is what a job's own agent says of itself. It is hostile input until it has passed here:
what cannot be true is refused, what may be true is bounded, and what several tenants say is weighed
so that none of them decides alone.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from maat.scheduling.belief import GradientStatistics
from maat.scheduling.efficiency import noise_scale
from maat.scheduling.fitting import LEAST_STEP_SECONDS, Sample

MOST_SLOWER = 3.0
"""A GPU is at most so much slower, or faster, than its fellows of one type.

The slowest GPU that was published takes 2.2 times as long as the median of its type (PAL's
Lonestar 6), the slowest single measurement 3.6 times (Longhorn).
"""
MOST_FASTER = 3.0
"""Steps of a job count as at most so much faster than is usual of its kind: model and GPU type."""
MOST_APART = 10.0
"""Ranks whose times differ more do not show GPUs of one type: something else was timed."""

HALF_LIFE_SECONDS = 7 * 86_400.0
"""After which evidence counts half as much, in cluster time."""
FORGOTTEN_SECONDS = 5 * HALF_LIFE_SECONDS
"""After which it is deleted."""
ENOUGH_REPORTS = 3
"""For full weight: one may be of a step that a disk held up."""

CLOCKS_DIFFER = 1.05
"""At most, the agent's clock and the service's, in speed."""
LATE_SECONDS = 60.0
"""At most, between the start of an attempt and what the service knows of it."""

_SAME = 1e-9  # relative: two halves of the weight are equal, whatever they are rounded to


@dataclass(frozen=True, slots=True)
class Fault:
    """What cannot be true in a part of a report: JSON Pointer within the part, problem, remedy."""

    pointer: str
    problem: str
    remedy: str
    value: float


def faults_of_ranks(compute_seconds: Sequence[float]) -> Iterator[Fault]:
    """Yield what cannot be true of the ranks' own parts of a step, s."""
    fastest = min(filter(_is_time, compute_seconds), default=math.inf)
    for rank, seconds in enumerate(compute_seconds):
        if not _is_time(seconds):
            yield _no_time(f"/{rank}", seconds)
        elif seconds > MOST_APART * fastest:
            yield Fault(
                f"/{rank}",
                f"Rank {rank} takes {seconds / fastest:.3g} times as long as the fastest rank: "
                f"GPUs of one type differ by less than {MOST_APART:g} times.",
                "Time only what every rank does alone, the same on each, and leave out what one "
                "rank does besides.",
                seconds,
            )


def faults_of_steps(
    mean_seconds: float, steps: int, *, lived_seconds: float | None
) -> Iterator[Fault]:
    """Yield what cannot be true of the mean time of steps.

    `lived_seconds`: of the attempt that made them, until now; None if it is not known.
    """
    if not _is_time(mean_seconds):
        yield _no_time("/step_seconds/mean", mean_seconds)
    elif lived_seconds is not None:
        most = lived_seconds * CLOCKS_DIFFER + LATE_SECONDS
        if mean_seconds * steps > most:
            yield Fault(
                "/step_seconds/mean",
                f"{steps} such steps take {mean_seconds * steps:.4g} s, and the attempt has lived "
                f"for {lived_seconds:.4g} s.",
                "Report each step once, in seconds.",
                mean_seconds,
            )


def relative_times(compute_seconds: Sequence[float]) -> list[float]:
    """Return each rank's time over the median rank's, within MOST_SLOWER either way."""
    middle = statistics.median(compute_seconds)
    return [bounded_ratio(seconds / middle) for seconds in compute_seconds]


def bounded_ratio(ratio: float) -> float:
    """Return how slow a GPU is against others of its type, within what GPUs can be."""
    return min(max(ratio, 1.0 / MOST_SLOWER), MOST_SLOWER)


def _is_time(seconds: float) -> bool:
    return LEAST_STEP_SECONDS <= seconds < math.inf


def _no_time(pointer: str, seconds: float) -> Fault:
    return Fault(
        pointer,
        f"No step takes so long: a kernel alone takes {LEAST_STEP_SECONDS:g} s to start, and none "
        "takes for ever.",
        "Report seconds, as a clock that never goes back measures them.",
        seconds,
    )


ModelKey = tuple[str, str]
"""Under which evidence of a model is kept: whose it is ("": everybody's), and its name."""


@dataclass(frozen=True, slots=True)
class SharedModels:
    """The models of which all tenants' evidence counts together.

    Names are free text: one tenant's `resnet` says nothing of another's, until an administrator
    says that it is the same (`names`). `are_all`: every name means one model, as where jobs are
    played by the catalog.
    """

    names: Collection[str] = ()
    are_all: bool = False

    def key(self, tenant: str, model: str) -> ModelKey:
        """Return the key of a tenant's model."""
        return ("" if self.are_all or model in self.names else tenant, model)


EVERY_MODEL = SharedModels(are_all=True)


def weight_of(reports: int, age_seconds: float) -> float:
    """Return how much evidence of so many reports counts at this age, 0-1."""
    fresh = 0.5 ** (max(age_seconds, 0.0) / HALF_LIFE_SECONDS)
    return float(min(reports / ENOUGH_REPORTS, 1.0) * fresh)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one job of a tenant showed: a ratio above 0, and how much it counts, 0-1."""

    tenant: str
    ratio: float
    weight: float


@dataclass(frozen=True, slots=True)
class Pooled:
    """What all evidence together says, and how much it counts, 0-1."""

    ratio: float
    weight: float

    @property
    def believed(self) -> float:
        """Return the ratio as far as the evidence goes: with none it is 1."""
        return float(self.ratio**self.weight)


def pooled(evidence: Iterable[Evidence]) -> Pooled:
    """Return the median over tenants of the medians over each one's jobs.

    A tenant counts as much as one job of full weight, however many it has, and no tenant has more
    than half of the weight. Where a range of ratios would be the median, it is the one nearest to
    1: doubt moves nothing.
    """
    of_tenant: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for each in evidence:
        if each.weight > 0:
            of_tenant[each.tenant].append((math.log(each.ratio), each.weight))
    tenants = [
        (_median(jobs), min(sum(weight for _, weight in jobs), 1.0)) for jobs in of_tenant.values()
    ]
    if not tenants:
        return Pooled(1.0, 0.0)
    middle = _median(_none_above_half(tenants) if len(tenants) > 1 else tenants)
    return Pooled(math.exp(middle), min(sum(weight for _, weight in tenants), 1.0))


def _none_above_half(values: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return (value, weight) with each weight at most that of all others together."""
    weights = [weight for _, weight in values]
    return [
        (value, min(weight, sum(weights[:place] + weights[place + 1 :])))
        for place, (value, weight) in enumerate(values)
    ]


@dataclass(frozen=True)
class Comparison:
    """GPUs that one attempt compared: of each its time over the median of them, and its weight.

    Only the quotient of two ratios means something.
    """

    tenant: str
    ratios: Mapping[int, tuple[float, float]]


def compared(comparisons: Sequence[Comparison]) -> Mapping[int, Pooled]:
    """Return how slow every compared GPU is, by its number.

    The median GPU of one comparison may itself be slower than that of another: each is scaled to
    those before it through the GPUs that they have in common, by the median over these.
    """
    known: dict[int, list[Evidence]] = defaultdict(list)
    for each in _connected(comparisons):
        shared = [
            (math.log(pooled(known[gpu]).ratio / ratio), weight)
            for gpu, (ratio, weight) in each.ratios.items()
            if gpu in known
        ]
        scale = math.exp(_median(shared)) if shared else 1.0
        for gpu, (ratio, weight) in each.ratios.items():
            known[gpu].append(Evidence(each.tenant, ratio * scale, weight))
    return {gpu: pooled(evidence) for gpu, evidence in known.items()}


def relative_scores(found: Mapping[int, Pooled], gpu_types: Sequence[object]) -> dict[int, float]:
    """Return how slow every compared GPU is believed against the median of its type, bounded.

    `gpu_types`: the type of every GPU of the cluster, shape (G,).
    """
    of_type: dict[object, list[float]] = defaultdict(list)
    for gpu, known in found.items():
        of_type[gpu_types[gpu]].append(known.believed)
    median = {kind: statistics.median(ratios) for kind, ratios in of_type.items()}
    return {
        gpu: bounded_ratio(known.believed / median[gpu_types[gpu]]) for gpu, known in found.items()
    }


def _connected(comparisons: Sequence[Comparison]) -> Iterator[Comparison]:
    """Yield comparisons so that each shares GPUs with those before it, where any does."""
    of_gpu: dict[int, list[int]] = defaultdict(list)
    for number, each in enumerate(comparisons):
        for gpu in each.ratios:
            of_gpu[gpu].append(number)
    waiting = set(range(len(comparisons)))
    for first in range(len(comparisons)):
        line = deque([first] if first in waiting else [])
        waiting.discard(first)
        while line:
            each = comparisons[line.popleft()]
            yield each
            for gpu in each.ratios:
                for number in of_gpu.pop(gpu, ()):
                    if number in waiting:
                        waiting.discard(number)
                        line.append(number)


def usual_gradient(
    measured: Sequence[tuple[GradientStatistics, float]],
) -> GradientStatistics | None:
    """Return the gradient of median noise of one job's latest reports; None of none.

    `measured`: with the age of each, s. One report decides nothing, and a noise scale says no more
    than that every sample of a large batch has its full value: goodput is never above throughput,
    which is bounded by samples. Noise itself has no bound: it grows 16,000 times in a training that
    was published (deepspeech2 of the catalog).
    """
    kept = [(each, age) for each, age in measured if age < FORGOTTEN_SECONDS]
    if not kept:
        return None
    ordered = sorted(kept, key=lambda one: noise_scale(one[0].square, one[0].variance, 1.0))
    weights = [weight_of(ENOUGH_REPORTS, age) for _, age in ordered]
    reached = [before >= sum(weights) / 2 * (1 - _SAME) for before in accumulate(weights)]
    return ordered[reached.index(True)][0]


OfKind = Sequence[tuple[str, Sequence[Sample]]]
"""The tenant of each job of a model, and what it measured on one GPU type."""


def bounded_samples(samples: Sequence[Sample], of_kind: OfKind) -> tuple[Sample, ...]:
    """Return a job's samples with no step faster than its kind by more than MOST_FASTER.

    `of_kind`: of every job of the model on the GPU type, this one's too. What is usual
    is the median over tenants of the medians over their jobs, the faster of two: one that is alone
    of its kind, or one of two, is its own measure.
    """
    usual = {
        batch: usual_seconds(batch, of_kind)
        for batch in {sample.per_gpu_batch_size for sample in samples}
    }
    return tuple(
        _no_faster(sample, usual[sample.per_gpu_batch_size] / MOST_FASTER) for sample in samples
    )


def _no_faster(sample: Sample, least: float) -> Sample:
    """Return the sample, or one whose step takes `least` seconds without its synchronisation."""
    if alone_seconds(sample) >= least:
        return sample
    return sample._replace(step_seconds=least + sample.sync_seconds)


def usual_seconds(batch: int, of_kind: OfKind) -> float:
    """Return the time of a pass over `batch` samples that is usual of a kind, s; 0 of none.

    More samples take no less time than fewer, and fewer at least their part of it.
    """
    least: dict[str, list[float]] = defaultdict(list)
    for tenant, of_job in of_kind:
        if of_job:
            seconds = (
                alone_seconds(each) * min(batch / each.per_gpu_batch_size, 1.0) for each in of_job
            )
            least[tenant].append(max(seconds))
    medians = [statistics.median_low(of_jobs) for of_jobs in least.values()]
    return statistics.median_low(medians) if medians else 0.0


def alone_seconds(sample: Sample) -> float:
    """Return the time of a step without its synchronisation, s."""
    return sample.step_seconds - sample.sync_seconds


def _median(values: Sequence[tuple[float, float]]) -> float:
    """Return the weighted median of (logarithm, weight); of a range, what is nearest to 0."""
    ordered = sorted(values)
    half, before = sum(weight for _, weight in ordered) / 2, 0.0
    for place, (value, weight) in enumerate(ordered):
        before += weight
        if before > half * (1 + _SAME):
            return value
        if before >= half * (1 - _SAME):
            above = ordered[min(place + 1, len(ordered) - 1)][0]
            return min(max(value, 0.0), above)
    return ordered[-1][0]
