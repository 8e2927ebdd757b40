"""What jobs that have ended say of those to come. Reads nothing: the worker fills it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from statistics import median

from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import GradientStatistics, SampleKey
from maat.scheduling.evidence import EVERY_MODEL, ModelKey, SharedModels
from maat.scheduling.fitting import Sample
from maat.scheduling.job import JobId, JobSpec

LEAST_IN_GROUP = 5
"""Fewer jobs than this say too little of a group: the next wider one counts."""
MOST_CURVES = 5
"""Of so many jobs of a group, the latest, the gradients count."""

Curve = tuple[tuple[float, GradientStatistics], ...]
"""The gradients of one training: (share of its work done, statistics), ascending."""


@dataclass(frozen=True)
class PastLife:
    """What was measured of trainings that have ended, or is published of their model.

    `samples`: step times by GPU type. `curves`: the gradients of each training, those that were
    measured most often first.
    """

    samples: Mapping[str, tuple[Sample, ...]]
    curves: tuple[Curve, ...] = ()


LifeKey = tuple[str | None, ModelKey]
"""The owner of jobs, None for anybody, and their model."""


def together(lives: Iterable[PastLife]) -> PastLife | None:
    """Return what several lives of one model measured; None of none.

    Each job measures few configurations, and a fit to few is far off in the others. Of the same
    configuration the first life counts. Of gradients, those of the first MOST_CURVES count. Those
    that were measured less than half as often as others are left out: noise may grow a hundredfold
    from one measurement to the next.
    """
    samples: dict[str, dict[SampleKey, Sample]] = defaultdict(dict)
    curves: list[Curve] = []
    for life in lives:
        curves += life.curves
        for kind, measured in life.samples.items():
            for sample in measured:
                samples[kind].setdefault(sample[:3], sample)
    curves = curves[:MOST_CURVES]
    most = max(map(len, curves), default=0)
    if not samples and not most:
        return None
    often = [one for one in curves if one and 2 * len(one) >= most]
    return PastLife(
        {kind: tuple(by.values()) for kind, by in samples.items()},
        tuple(sorted(often, key=len, reverse=True)),
    )


def of_tenants(lives: Sequence[PastLife]) -> PastLife | None:
    """Return what the lives of several tenants say of one model; None of none.

    Of a configuration that several measured, the median counts, the faster of two; of gradients,
    those of each tenant in turn.
    """
    if len(lives) < 2:
        return lives[0] if lives else None
    measured: dict[str, dict[SampleKey, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for life in lives:
        for kind, samples in life.samples.items():
            for sample in samples:
                measured[kind][sample[:3]].append(sample)
    curves = [curve for turn in zip_longest(*(life.curves for life in lives)) for curve in turn]
    return PastLife(
        {
            kind: tuple(_middle(samples) for samples in by_key.values())
            for kind, by_key in measured.items()
        },
        tuple([curve for curve in curves if curve is not None][:MOST_CURVES]),
    )


def _middle(samples: Sequence[Sample]) -> Sample:
    return sorted(samples, key=lambda sample: sample.step_seconds)[(len(samples) - 1) // 2]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A job ran for `seconds` on these GPUs, and its work grew from `begin` to `end`.

    `samples`: that it processed for it. `batch_size`: in total, the last one; None if unknown.
    """

    gpu_type: str
    gpu_count: int
    node_count: int
    seconds: float
    begin: float
    end: float
    samples: float
    batch_size: int | None = None


@dataclass(frozen=True, slots=True)
class Halves:
    """The pace of a job's samples before a part of its work, and its pace from there on."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Tempo:
    """Seconds that a job ran, and those that were believed of the same work, in each part of it.

    `of_samples`: those that were believed of the samples that it processed for that work. Shapes
    (P,): as many parts of equal work as in a BelievedTruth. Waiting, starts and restarts are no
    part of it (paces.py). `stretches`: of how many it is made, with one pace in each.
    """

    seconds: FloatArray
    believed: FloatArray
    of_samples: FloatArray
    stretches: int = 1

    @property
    def pace(self) -> float | None:
        """Return how much slower the job was than believed; None if it did no work."""
        return _pace(self.seconds, self.believed)

    @property
    def pace_of_samples(self) -> float | None:
        """Return how much slower its samples were than believed; None if it did no work.

        How many samples its work takes is no part of it: that differs from part to part.
        """
        return _pace(self.seconds, self.of_samples)

    def halves_at(self, part: int) -> Halves | None:
        """Return the pace of samples before this part, and the pace from it on.

        None if one is not known: a single stretch does not say how the pace changed in it.
        """
        if self.stretches < 2:
            return None
        before = _pace(self.seconds[:part], self.of_samples[:part])
        after = _pace(self.seconds[part:], self.believed[part:])
        return None if before is None or after is None else Halves(before, after)


def _pace(seconds: FloatArray, believed: FloatArray) -> float | None:
    ran, foreseen = float(seconds.sum()), float(believed.sum())
    return ran / foreseen if ran > 0 and foreseen > 0 else None


@dataclass(frozen=True)
class Ended:
    """A job that has ended well.

    `run_seconds`: from its first GPUs to its end. `tempo`: None if nothing was believed of it.
    `restarts`: starts after the first one. `tenant`: as in JobSpec.
    """

    owner: str
    model: str
    run_seconds: float
    tempo: Tempo | None = None
    restarts: int = 0
    tenant: str = "default"

    @property
    def pace(self) -> float | None:
        return None if self.tempo is None else self.tempo.pace

    def halves_at(self, part: int) -> Halves | None:
        return None if self.tempo is None else self.tempo.halves_at(part)


@dataclass(frozen=True)
class PastArrival:
    """A job that was submitted `ago` seconds before now: `spec` as it would be now."""

    spec: JobSpec
    ago: float


@dataclass(frozen=True)
class History:
    """The past of one cluster.

    `lives`: of an owner's jobs of a model, and of anybody's. `ended`: the latest first. `arrivals`:
    of the last day, each stands for `stand_for` jobs. `stretches`: of jobs that have begun and not
    ended. `shared`: of which models all tenants' jobs count together.
    """

    lives: Mapping[LifeKey, PastLife] = field(default_factory=dict)
    ended: Sequence[Ended] = ()
    arrivals: Sequence[PastArrival] = ()
    stand_for: float = 1.0
    stretches: Mapping[JobId, Sequence[Stretch]] = field(default_factory=dict)
    shared: SharedModels = EVERY_MODEL

    def key_of(self, job: JobSpec | Ended) -> ModelKey:
        """Return whose model it is, and its name."""
        return self.shared.key(job.tenant, job.model)

    def life_of(self, spec: JobSpec) -> PastLife | None:
        """Return the life that says most of this job: its owner's, else anybody's."""
        model = self.key_of(spec)
        own = self.lives.get((spec.owner, model))
        return self.lives.get((None, model)) if own is None else own

    def paces_of(self, spec: JobSpec) -> list[list[float]]:
        """Return the paces of jobs of its owner and model, and of its model.

        Without any of its model, one of each: the median, since a model of which many jobs end says
        no more of another one.
        """
        by_model, model = self._paces_by_model(), self.key_of(spec)
        if model not in by_model:
            return [[median(some) for some in by_model.values()]]
        of_owner = [one.pace for one in self._of_owner(spec) if one.pace is not None]
        return [of_owner, [one.pace for one in self._of_model(spec) if one.pace is not None]]

    def deviations(self) -> list[float]:
        """Return the paces of all jobs over the median of their models that have several."""
        several = [paces for paces in self._paces_by_model().values() if len(paces) > 1]
        return [pace / median(paces) for paces in several for pace in paces]

    def _paces_by_model(self) -> Mapping[ModelKey, list[float]]:
        found: dict[ModelKey, list[float]] = defaultdict(list)
        for one in self.ended:
            if (pace := one.pace) is not None:
                found[self.key_of(one)].append(pace)
        return dict(found)

    def precedents_of(self, spec: JobSpec) -> int:
        """Return how many jobs of the narrowest group of enough have a pace; of all if none has."""
        found = 0
        for group in self._groups(spec):
            found = sum(one.pace is not None for one in group)
            if found >= LEAST_IN_GROUP:
                break
        return found

    def halves_of(self, spec: JobSpec, part: int) -> list[list[Halves]]:
        """Return the paces of jobs before and after this part of their work.

        Those of its owner and model, of its model, and all.
        """
        return [
            [halves for one in group if (halves := one.halves_at(part)) is not None]
            for group in self._groups(spec)
        ]

    def run_seconds_of(self, spec: JobSpec) -> list[float]:
        """Return how long jobs of this owner and model ran; of the model if too few did."""
        found = [one.run_seconds for one in self._of_owner(spec)]
        if len(found) >= LEAST_IN_GROUP:
            return found
        return [one.run_seconds for one in self._of_model(spec)]

    def _of_owner(self, spec: JobSpec) -> list[Ended]:
        """Return the jobs of its owner and model."""
        mine = (spec.owner, self.key_of(spec))
        return [one for one in self.ended if (one.owner, self.key_of(one)) == mine]

    def _of_model(self, spec: JobSpec) -> list[Ended]:
        """Return the jobs of its model: of each tenant at most as many as of all others together.

        So no tenant has more than half of the weight.
        """
        model = self.key_of(spec)
        found = [one for one in self.ended if self.key_of(one) == model]
        many = Counter(one.tenant for one in found)
        if self.shared.are_all or len(many) < 2:
            return found
        most = {tenant: max(len(found) - count, 1) for tenant, count in many.items()}
        seen, kept = Counter[str](), list[Ended]()
        for one in found:
            seen[one.tenant] += 1
            if seen[one.tenant] <= most[one.tenant]:
                kept.append(one)
        return kept

    def _groups(self, spec: JobSpec) -> Iterator[list[Ended]]:
        yield self._of_owner(spec)
        yield self._of_model(spec)
        yield list(self.ended)
