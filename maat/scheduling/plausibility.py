"""Whether what a job's agent says agrees with what Maat saw: time, steps and work. Pure.

What cannot be is a Fault, for which its report is refused. What is unlikely is a Doubt, for which
the job is flagged: it may have an innocent cause, so a person judges, and until then the job is
believed less (`doubted_samples`). What a report alone can show is in maat.scheduling.evidence.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from maat.scheduling.evidence import (
    CLOCKS_DIFFER,
    LATE_SECONDS,
    Fault,
    OfKind,
    alone_seconds,
    usual_seconds,
)
from maat.scheduling.fitting import Sample
from maat.vocabulary import Doubted

MOST_WORTH = 2.0
"""Effective samples of an attempt over its samples: at most so many, and one batch more.

A sample is worth at most one at the initial batch size or above (Pollux eq. 7). The last step of a
pass over the data may be smaller, and is worth at most an initial batch: the pass has had one.
"""
LEAST_TIMED = 0.05
"""Timed steps take at least this part of the time that an attempt ran.

The first step of a pass, evaluation and checkpoints are not timed, and may take most of it.
"""
JUDGED_SECONDS = 600.0
"""Since the first step, before the part that steps take says anything: the first ones are slow."""
JUDGED_STEPS = 10
MOST_PACE = 3.0
"""Progress is at most so many times what the fastest steps that were timed can have made.

Steps speed up and slow down; scripts that leave epochs before their end count whole ones.
"""
MUCH_FASTER = 10.0
"""Than the usual of its kind: beyond MOST_FASTER, where it is bounded without a word.

Names of models are free: one tenant's `resnet` may be of 18 layers or of 152.
"""
MOST_WORK = 1.05
"""Progress over the least work that its agent ever named: more is no rounding."""
MOST_DECLARED_WORK = 2.0
"""Progress over the work that its owner declared, who may only have estimated it."""
LEAST_DONE = 0.1
"""Of the work that was named, before a job says that it has finished: training may stop early."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Steps that the agent of an attempt has timed, and how long they took together, s."""

    steps: int = 0
    seconds: float = 0.0

    def __add__(self, other: Timed) -> Timed:
        return Timed(self.steps + other.steps, self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an agent says that it is; names and units are those of its report."""

    steps: int
    processed_samples: float | None = None
    gained_samples: float | None = None


def faults_of_time(timed: Timed, *, lived_seconds: float | None) -> Iterator[Fault]:
    """Yield what cannot be true of all steps that an attempt timed, this report's too.

    Steps follow each other: together they take no longer than the attempt has lived, whatever its
    reports are late or come together. `lived_seconds`: None if it is not known.
    """
    if lived_seconds is None:
        return
    if timed.seconds > lived_seconds * CLOCKS_DIFFER + LATE_SECONDS:
        yield Fault(
            "/passes",
            f"The {timed.steps} steps that the attempt has timed take {timed.seconds:.4g} s, and "
            f"it has lived for {lived_seconds:.4g} s.",
            "Report each step once, in seconds.",
            timed.seconds,
        )


def faults_of_progress(said: Progress, *, largest_batch: int | None) -> Iterator[Fault]:
    """Yield what cannot be true of progress.

    `largest_batch`: samples of a step that the job may take, in all; None if nobody has said.
    """
    processed, gained = said.processed_samples, said.gained_samples
    if processed is None or largest_batch is None:
        return
    # `steps` are the job's, since its first start: no fewer than those of the attempt. An agent
    # that does not count them says 0.
    if said.steps and processed > said.steps * largest_batch:
        yield Fault(
            "/progress/processed_samples",
            f"{said.steps} steps of at most {largest_batch} samples process no more than "
            f"{said.steps * largest_batch}.",
            "Report the samples of this attempt's steps, and all steps of the job.",
            processed,
        )
    most = MOST_WORTH * (processed + largest_batch)
    if gained is not None and gained > most:
        yield Fault(
            "/progress/gained_samples",
            f"{processed:.6g} samples are worth at most {most:.6g} effective ones: none is worth "
            "more than one at the initial batch size.",
            "Report each sample times its statistical efficiency, which is at most 1.",
            gained,
        )


@dataclass(frozen=True, slots=True)
class Life:
    """What Maat saw of one attempt that trains, and what its agent timed.

    `held_seconds`: since it has had its GPUs, until its last report. `ran_seconds`: since the first
    step that it timed, the same: what a script prepares before counts for nothing.
    """

    gpu_type: str
    held_seconds: float
    ran_seconds: float
    timed: Timed


@dataclass(frozen=True)
class Account:
    """What is known of a job, to compare what is believed of it with what was seen.

    Attributes:
        lives: Its attempts that trained and reported.
        progress: Effective samples, as last reported.
        fastest: By GPU type, the most samples per second that its steps were timed at.
        named_work: The least work that its agent ever named, effective samples; None for none.
        declared_work: The work that its owner declared.
        finished: Whether it says that all is done.
        samples, of_kind: By GPU type, its samples, and those of every job of its kind, its own too.
    """

    lives: Sequence[Life]
    progress: float = 0.0
    fastest: Mapping[str, float] = field(default_factory=dict)
    named_work: float | None = None
    declared_work: float | None = None
    finished: bool = False
    samples: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    of_kind: Mapping[str, OfKind] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is unlikely: what was said, and what was seen or is usual instead, in `unit`."""

    kind: Doubted
    said: float
    seen: float
    unit: str

    @property
    def sentence(self) -> str:
        """Say what was said and what was seen, for the page, the API and the CLI alike."""
        return _WORDS[self.kind].format(said=f"{self.said:.3g}", seen=f"{self.seen:.3g}")


_WORDS = {
    Doubted.SPEED: "Its steps are said to take {said} s each, and one came every {seen} s.",
    Doubted.PACE: "It reports {said} effective samples of progress; in all the time that it held "
    "GPUs its fastest steps make about {seen}.",
    Doubted.KIND: "Its steps are said to take {said} s; of other jobs of its model on such GPUs "
    "they usually take {seen} s.",
    Doubted.WORK: "{said} effective samples were named as all of its work, and it reports {seen}.",
    Doubted.END: "It says that it has finished, after {seen} of {said} effective samples.",
}


def doubts_of(account: Account) -> Iterator[Doubt]:
    """Yield what is unlikely of a job; each kind once, the farthest off."""
    for doubts in (_of_speed, _of_pace, _of_kind, _of_work, _of_end):
        found = list(doubts(account))
        if found:
            yield max(found, key=lambda doubt: (_apart(doubt), doubt.unit))


def slowed_by(lives: Sequence[Life]) -> float:
    """Return how many times longer steps took than was said, if nothing else took time.

    By the attempt that shows it most; at least 1.
    """
    shown = (life.ran_seconds / life.timed.seconds for life in lives if _may_judge(life))
    return max([1.0, *shown])


def doubted_samples(
    samples: Sequence[Sample], of_others: OfKind, *, slower: float = 1.0
) -> tuple[Sample, ...]:
    """Return what is believed of a flagged job: what is usual of its kind, whatever it says.

    `of_others`: the samples of every other job of its model on the GPU type; the median over their
    tenants of the medians over each one's jobs counts. If there is none, its steps count `slower`
    times as long as it says, and more GPUs bring it nothing.
    """
    by_tenant: dict[tuple[int, int, int], dict[str, list[Sample]]] = defaultdict(dict)
    for tenant, of_job in of_others:
        for sample in of_job:
            by_tenant[sample[:3]].setdefault(tenant, []).append(sample)
    if by_tenant:
        return tuple(
            _median([_median(mine) for mine in by_tenant[key].values()])
            for key in sorted(by_tenant)
        )
    return tuple(_without_scaling(sample, slower) for sample in samples)


def _median(samples: Sequence[Sample]) -> Sample:
    """Return the median of samples of one configuration; of two the slower."""
    sync = statistics.median_high(sample.sync_seconds for sample in samples)
    alone = statistics.median_high(alone_seconds(sample) for sample in samples)
    weight = max(sample.weight for sample in samples)
    return samples[0]._replace(step_seconds=alone + sync, sync_seconds=sync, weight=weight)


def _without_scaling(sample: Sample, slower: float) -> Sample:
    """Return the sample as if all its replicas together did what one does."""
    alone = alone_seconds(sample) * slower
    sync = (sample.replica_count - 1) * alone
    return sample._replace(step_seconds=alone + sync, sync_seconds=sync)


def _of_speed(account: Account) -> Iterator[Doubt]:
    """A step is believed to be short, and the steps leave most of the time unexplained."""
    for life in account.lives:
        if _may_judge(life) and life.timed.seconds < LEAST_TIMED * life.ran_seconds:
            steps = life.timed.steps
            yield Doubt(
                Doubted.SPEED, life.timed.seconds / steps, life.ran_seconds / steps, "s a step"
            )


def _of_pace(account: Account) -> Iterator[Doubt]:
    """Progress that the fastest steps cannot have made in all the time that it held GPUs."""
    if not account.lives or any(life.gpu_type not in account.fastest for life in account.lives):
        return  # what was measured there is forgotten
    most = sum(
        account.fastest[life.gpu_type] * (life.held_seconds * CLOCKS_DIFFER + LATE_SECONDS)
        for life in account.lives
    )
    if account.progress > MOST_PACE * most:
        yield Doubt(Doubted.PACE, account.progress, most, "effective samples")


def _of_kind(account: Account) -> Iterator[Doubt]:
    for gpu_type, samples in account.samples.items():
        for sample in samples:
            usual = usual_seconds(sample.per_gpu_batch_size, account.of_kind.get(gpu_type, ()))
            if alone_seconds(sample) * MUCH_FASTER < usual:
                yield Doubt(Doubted.KIND, alone_seconds(sample), usual, "s a step")


def _of_work(account: Account) -> Iterator[Doubt]:
    named, tolerance = account.named_work, MOST_WORK
    if named is None:
        named, tolerance = account.declared_work, MOST_DECLARED_WORK
    if named is not None and account.progress > tolerance * named:
        yield Doubt(Doubted.WORK, named, account.progress, "effective samples")


def _of_end(account: Account) -> Iterator[Doubt]:
    named = account.declared_work if account.named_work is None else account.named_work
    if account.finished and named is not None and account.progress < LEAST_DONE * named:
        yield Doubt(Doubted.END, named, account.progress, "effective samples")


def _may_judge(life: Life) -> bool:
    is_long = life.ran_seconds >= JUDGED_SECONDS and life.timed.steps >= JUDGED_STEPS
    return is_long and life.timed.seconds > 0


def _apart(doubt: Doubt) -> float:
    lower, upper = sorted((doubt.said, doubt.seen))
    return upper / lower if lower > 0 else float("inf")
