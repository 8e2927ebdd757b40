"""How jobs ran, beside what is believed of them: seconds on GPUs, tenth by tenth of the work.

Waiting, starts and restarts are no part of it. What is believed is the goodput of rounds, on the
GPUs that the job held: its pace is then that of the job, and not that of the types it was given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maat.forecasting.history import Curve, PastLife, Stretch, Tempo
from maat.forecasting.truths import PARTS, belief_with, gradients_of
from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.belief import Fitter, GradientStatistics
from maat.scheduling.bootstrap import project_by_profile
from maat.scheduling.cluster import Cluster
from maat.scheduling.efficiency import efficiency
from maat.scheduling.job import Job, JobSpec
from maat.scheduling.matrix import evaluate_pairs
from maat.vocabulary import Adaptivity


@dataclass(frozen=True)
class Course:
    """How a job ran. `past`: by which, and by `job` itself, it is known what was to be expected.

    `work`: effective samples of its whole training; those that it did if it has ended. `curve`: its
    own gradients, if they are known from its begin to its end.
    """

    job: Job
    past: PastLife | None
    work: float
    stretches: Sequence[Stretch]
    curve: Curve = ()

    def gradients(self) -> list[GradientStatistics]:
        """Return the gradients in each part: its own, else those of the life measured most."""
        curves = () if self.past is None else self.past.curves
        return gradients_of(self.job, self.curve or next(iter(curves), ()))


class _Bits:
    """Parts of stretches that lie in one part of the work, as columns. `row`: of the jobs."""

    def __init__(self) -> None:
        self.row: list[int] = []
        self.stretch: list[int] = []
        self.part: list[int] = []
        self.work: list[float] = []

    def add(self, row: int, stretch: int, part: int, work: float) -> None:
        self.row.append(row)
        self.stretch.append(stretch)
        self.part.append(part)
        self.work.append(work)


@dataclass(frozen=True, slots=True)
class _Believed:
    """What is believed of bits, shapes (B,): their seconds, their samples, and the batch size."""

    seconds: FloatArray
    samples: FloatArray
    batch_size: FloatArray


def tempos_of(courses: Sequence[Course], cluster: Cluster, *, fitter: Fitter) -> list[Tempo]:
    """Return the tempo of every course. Within a stretch the pace is one.

    A policy lets a job have the batch size that it asked for, or the best one, which grows with the
    noise of its gradients. In each stretch it is the one that agrees better with the samples that
    were processed, and with the last batch size.
    """
    stretches, owners = list[Stretch](), list[int]()
    asked, free, bits = list[Job](), list[Job](), _Bits()
    for number, course in enumerate(courses):
        spec, rows = course.job.spec, dict[int, int]()
        gradients = course.gradients()
        belief = belief_with(course.past, course.job.belief, fitter=fitter)
        bound = _at_one_batch(spec)
        for stretch in course.stretches:
            if stretch.gpu_type not in cluster.type_index:
                continue
            for part, work in _parts(stretch, course.work):
                row = rows.get(part)
                if row is None:
                    row = rows[part] = len(free)
                    known = replace(belief, gradient=gradients[part])
                    free.append(Job(spec, known, course.work))
                    asked.append(Job(bound, known, course.work))
                bits.add(row, len(stretches), part, work)
            stretches.append(stretch)
            owners.append(number)
    if not bits.row:
        none = np.zeros(PARTS)
        return [Tempo(none, none, none, 0) for _ in courses]
    either = [_believed(jobs, stretches, bits, cluster) for jobs in (free, asked)]
    return _tempos(len(courses), stretches, np.array(owners), bits, *either)


def _tempos(
    count: int,
    stretches: Sequence[Stretch],
    owner: IntArray,
    bits: _Bits,
    free: _Believed,
    asked: _Believed,
) -> list[Tempo]:
    stretch, of = np.array(bits.stretch), len(stretches)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(stretch, weights=values, minlength=of).astype(np.float64)

    last = np.flatnonzero(np.diff(stretch, append=of))  # the last bit of every stretch that has one
    samples = np.array([one.samples for one in stretches])
    batch = np.array([one.batch_size or 0 for one in stretches], dtype=np.float64)
    distance = []
    for one in (asked, free):
        far = _distance(total(one.samples), samples)
        far[stretch[last]] += _distance(one.batch_size[last], batch[stretch[last]])
        distance.append(far)
    as_asked = (distance[0] <= distance[1])[stretch]
    believed = np.where(as_asked, asked.seconds, free.seconds)
    expected = total(np.where(as_asked, asked.samples, free.samples))
    known = (samples > 0) & (expected > 0)
    more = np.divide(samples, expected, out=np.ones(of), where=known)[stretch]
    ran = np.array([one.seconds for one in stretches])[stretch]
    seconds = np.divide(
        ran * believed, total(believed)[stretch], out=np.zeros(len(ran)), where=believed > 0
    )
    at = owner[stretch] * PARTS + np.array(bits.part)
    sums = (
        np.bincount(at, weights=values, minlength=count * PARTS).reshape(count, PARTS)
        for values in (seconds, believed, believed * more)
    )
    many = np.bincount(owner[stretch[last]], minlength=count).tolist()
    return [Tempo(*each) for each in zip(*sums, many, strict=True)]


def _distance(expected: FloatArray, actual: FloatArray) -> FloatArray:
    """Return by which factor they differ, as a logarithm; zero where one is not known."""
    known = (expected > 0) & (actual > 0)
    ratio = np.divide(actual, expected, out=np.ones(len(actual)), where=known)
    return np.abs(np.log(ratio))


def _believed(
    jobs: Sequence[Job], stretches: Sequence[Stretch], bits: _Bits, cluster: Cluster
) -> _Believed:
    """Return what rounds believe of these bits; zero where they know nothing."""
    row, work = np.array(bits.row), np.array(bits.work)
    held = [stretches[number] for number in bits.stretch]
    pairs = evaluate_pairs(
        jobs,
        cluster,
        job=row,
        gpu_type=np.array([cluster.type_index[one.gpu_type] for one in held]),
        gpu_count=np.array([one.gpu_count for one in held]),
        node_count=np.array([one.node_count for one in held]),
        column=np.zeros_like(row),
        projection=project_by_profile,
        beyond_largest_batch=True,
    )
    initial = np.array([job.spec.initial_batch_size for job in jobs], dtype=np.float64)[row]
    noise = np.array([job.belief.noise_scale(job.spec.initial_batch_size) for job in jobs])[row]
    runs = pairs.goodput > 0
    seconds = np.divide(work, pairs.goodput, out=np.zeros(len(work)), where=runs)
    total = pairs.plans.total_batch_size.astype(np.float64)
    samples = np.where(runs, work / efficiency(noise, initial, np.maximum(total, initial)), 0.0)
    return _Believed(seconds, samples, total)


def _at_one_batch(spec: JobSpec) -> JobSpec:
    """Return the spec bound to the batch size that it asks for."""
    return replace(
        spec,
        adaptivity=Adaptivity.RIGID,
        gpu_count=spec.requested_gpus,
        batch_size=spec.requested_batch_size,
    )


def _parts(stretch: Stretch, work: float) -> Iterator[tuple[int, float]]:
    """Yield the parts of the work that a stretch lies in, and how much it did in each."""
    length = work / PARTS
    if length <= 0 or stretch.end <= stretch.begin:
        return
    first = min(int(stretch.begin / length), PARTS - 1)
    last = min(max(math.ceil(stretch.end / length) - 1, first), PARTS - 1)
    for part in range(first, last + 1):
        begin = stretch.begin if part == first else part * length
        end = stretch.end if part == last else (part + 1) * length
        if end > begin:
            yield part, end - begin
