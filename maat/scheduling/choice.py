"""Why a job has this GPU type and count, in words made of the evidence of its grant.

Says only what the policy's pass has left: policies without a programme know no values, and some no
goodput.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maat.scheduling.move_worth import BatchPace, measured_goodput
from maat.scheduling.moving import pays_after

NOTABLE = 0.1
"""Relative difference between a believed and a measured goodput from which both are told."""

Place = tuple[str, int]
"""A GPU type, and how many GPUs of it."""


@dataclass(frozen=True)
class Measured:
    """What was measured of a job: `paces` by place, and what it does now on the GPUs it holds.

    `goodput`: effective samples/s; `batch_size`: in all, samples; `remaining_seconds`: at that
    goodput. None where nothing is known: a job that has just moved does nothing there yet.
    """

    paces: Mapping[Place, Sequence[BatchPace]] = field(default_factory=dict)
    goodput: float | None = None
    batch_size: int | None = None
    remaining_seconds: float | None = None


@dataclass(frozen=True)
class Option:
    """A configuration that a job has or could have.

    `value`, `price`: in the policy's objective, of the job and of the GPUs. `limit`: what kept the
    job from it. `free_gpus`: of its type after the round. `pays_after_seconds`: of a move to it
    from what the job has, as believed; None if it never pays, or nothing is known of its pace
    (`compared`). `measured`: goodput that was measured there, at the noise scale of the round.
    """

    gpu_type: str
    gpu_count: int
    goodput: float | None
    value: float | None
    price: float | None
    limit: str | None
    free_gpus: int | None
    pays_after_seconds: float | None
    compared: bool
    measured: float | None = None

    @property
    def name(self) -> str:
        return f"{self.gpu_count} {self.gpu_type}"

    @property
    def differs(self) -> bool:
        """Whether what was measured there is notably more or less than what is believed."""
        return _differ(self.goodput, self.measured)


@dataclass(frozen=True)
class Choice:
    """What a job has, the next best, and the best if it were alone; None where not known.

    `restart_seconds`: of one move. `remaining_seconds`: at the goodput `now`, or else at what was
    measured there, or else as believed.
    `now`: what it does, in effective samples/s; `batch_size`: with which it does that, and
    `best_batch_size`: for which the round believed its goodput, in samples. `by_request`: the
    policy gives jobs the counts that they ask for. `weight`: of the job, where the policy weighed
    it and it is not 1. `noise_scale`: at which the round believed, in samples; 0 before gradients
    are measured. `initial_batch_size`: samples. `decided_by_round`: that gave it the GPUs that it
    keeps, and believed this then.
    """

    chosen: Option
    runner_up: Option | None
    alone: Option | None
    restart_seconds: float | None
    remaining_seconds: float | None
    by_request: bool
    weight: float | None
    now: float | None = None
    batch_size: int | None = None
    best_batch_size: int | None = None
    noise_scale: float | None = None
    decided_by_round: int | None = None
    initial_batch_size: int | None = None

    @property
    def sentences(self) -> list[str]:
        """Say why it has this, what it does there, what came second, what a move would bring."""
        told = [self._why(), self._does(), self._weighed(), self._second(), self._by_itself()]
        targets = {option.name: option for option in (self.runner_up, self.alone) if option}
        told += [self._move(option) for option in targets.values() if option.name != self.name]
        return [sentence for sentence in told if sentence]

    @property
    def name(self) -> str:
        return self.chosen.name

    def _why(self) -> str:
        if self.chosen.value is not None:
            return (
                f"It has {self.name}: of all that it could have, this adds most to the policy's "
                "objective, less what its GPUs are worth to others."
            )
        if self.by_request:
            return f"It has {self.name}: the policy gives jobs as many GPUs as they ask for."
        return f"It has {self.name}."

    def pays_after_seconds(self, other: Option) -> float | None:
        """Return when a move to another configuration would have paid; None if never.

        By what was measured on both, if it was; what is believed of one and measured on the other
        cannot be compared.
        """
        here, there = self.chosen.measured, other.measured
        if here and there is not None and self.restart_seconds is not None:
            return pays_after(here, there, self.restart_seconds)
        return other.pays_after_seconds

    def is_measured(self, other: Option) -> bool:
        """Whether a move to another configuration is told by what was measured on both."""
        return bool(self.chosen.measured) and other.measured is not None

    def _does(self) -> str:
        """Say by how much what it does differs from what the round believed, and why."""
        believed, now = self.chosen.goodput, self.now
        if believed is None or now is None or not _differ(believed, now):
            return ""
        by = "the round"
        if self.decided_by_round is not None:
            by = f"round {self.decided_by_round}, which decided on these GPUs,"
        return (
            f"It does {_rate(now)} effective samples/s there now; {by} believed "
            f"{_rate(believed)}{self._why_it_differs()}."
        )

    def _why_it_differs(self) -> str:
        """Name a reason that can explain a difference of this direction, or none."""
        does_more = (self.now or 0.0) > (self.chosen.goodput or 0.0)
        best, runs, initial = self.best_batch_size, self.batch_size, self.initial_batch_size
        is_larger = runs is not None and initial is not None and runs > initial
        if does_more and self.noise_scale == 0.0 and is_larger:
            return (
                ": its gradients were not measured yet, so that samples beyond its initial batch "
                "size counted for nothing"
            )
        if does_more and self.decided_by_round is not None:
            return ", by what was known of it then"
        if does_more:
            return ", by its model and by the noise of its gradients as they were known then"
        steps_alone = (
            "what is believed counts steps alone, by a model of their times, and not what comes "
            "between them (data, checkpoints, other jobs on its nodes)"
        )
        if self.decided_by_round is not None:
            return f", by what was known of it then; and {steps_alone}"
        if _differ(best, runs):
            return (
                f", at its best batch size of {_count(best)} samples: it runs {_count(runs)} until "
                f"its agent chooses again, and {steps_alone}"
            )
        return f": {steps_alone}"

    def _weighed(self) -> str:
        return "" if self.weight is None else f"By its weight it counts as {self.weight:g} jobs."

    def _second(self) -> str:
        other = self.runner_up
        if other is None:
            return ""
        if other.value is None or self.chosen.value is None:
            if other.free_gpus is None:
                return f"The next step would be {other.name}."
            return f"Its next type is {other.name}: {_are_free(other.free_gpus)}."
        if other.value <= self.chosen.value:
            return f"Next best was {other.name}, which is worth less to it."
        if _costs(other) > _costs(self.chosen):
            return (
                f"Next best was {other.name}: worth more to it, but its GPUs cost more"
                f"{self._because(other)}."
            )
        return f"Next best was {other.name}."

    def _by_itself(self) -> str:
        other = self.alone
        if other is None:
            return ""
        by = "this round would have given it"
        if self.decided_by_round is not None:
            by = f"round {self.decided_by_round} would have given it"
        if other.name == self.name:
            return f"Alone, {by} the same."
        return f"Alone, {by} {other.name}{self._because(other)}."

    def _because(self, other: Option) -> str:
        """`: others give more for t4`, by the limit that kept the job from it."""
        if other.limit is None:
            return ""
        kind, _, rest = other.limit.partition(":")
        gpu_type = rest.partition(":")[0]
        priced = other.value is not None
        words = {
            "capacity": f"others give more for {gpu_type}" if priced else "others hold those GPUs",
            "quota": "its tenant's quota does not leave them",
            "ceiling": "its tenant's quota does not allow them",
            "reservation": f"{gpu_type} are reserved for others",
            "priority": "jobs of a higher class come first",
        }
        return f": {words.get(kind, 'the nodes have no room for it')}"

    def _move(self, other: Option) -> str:
        if not other.compared or self.restart_seconds is None:
            return ""
        cost = f"Moving to {other.name} would cost a restart of {_time(self.restart_seconds)}"
        after, how = self.pays_after_seconds(other), self._by_what(other)
        if after is None:
            return f"{cost} and never pay: it would be no faster there{how}."
        pays = f"would pay after {_time(after)}"
        if self.remaining_seconds is None:
            return f"{cost}; it {pays}{how}."
        left = f"{self._by_which_pace()} it has {_time(self.remaining_seconds)} left"
        joint = "but " if after > self.remaining_seconds else ""
        return f"{cost}; it {pays}{how}, {joint}{left}."

    def _by_which_pace(self) -> str:
        """Say what the time left is worked out from."""
        if self.now is not None:
            return "at its present pace"
        return "at what was measured of it here" if self.chosen.measured else "by its model"

    def _by_what(self, other: Option) -> str:
        """`(measured: 9 684 there, 4 842 here; the round believed 4 439 there)`."""
        if not self.is_measured(other):
            return ""
        figures = f"{_rate(other.measured)} there, {_rate(self.chosen.measured)} here"
        beliefs = f"; the round believed {_rate(other.goodput)} there" if other.differs else ""
        return f" (measured, in effective samples/s at that round's noise: {figures}{beliefs})"


def choice_of(evidence: Mapping[str, Any], measured: Measured | None = None) -> Choice | None:
    """Return what the evidence of a grant says of the choice; None if it names no GPUs.

    `measured`: of the job, beside what the round believed.
    """
    known = Measured() if measured is None else measured
    chosen = _option(evidence, "", known)
    if chosen is None:
        return None
    return Choice(
        chosen,
        _option(evidence, "runner_up_", known),
        _option(evidence, "alone_", known),
        evidence.get("restart_seconds"),
        _remaining_seconds(evidence, known, chosen),
        bool(evidence.get("by_request")),
        evidence.get("weight"),
        known.goodput,
        known.batch_size,
        evidence.get("best_batch_size"),
        evidence.get("noise_scale"),
        evidence.get("decided_by_round"),
        evidence.get("initial_batch_size"),
    )


def _remaining_seconds(
    evidence: Mapping[str, Any], known: Measured, chosen: Option
) -> float | None:
    """Return the seconds left at what the job does now, or did there, or else as believed."""
    if known.goodput is not None:
        return known.remaining_seconds
    left, believed = evidence.get("remaining_seconds"), chosen.goodput
    if left is None or not believed or not chosen.measured:
        return left
    return float(left * believed / chosen.measured)


def _option(evidence: Mapping[str, Any], prefix: str, known: Measured) -> Option | None:
    gpu_type, gpu_count = evidence.get(f"{prefix}gpu_type"), evidence.get(f"{prefix}gpu_count")
    if not isinstance(gpu_type, str) or not isinstance(gpu_count, int):
        return None
    return Option(
        gpu_type,
        gpu_count,
        evidence.get(f"{prefix}goodput_samples_per_second"),
        evidence.get(f"{prefix}value"),
        evidence.get(f"{prefix}price"),
        None if prefix and _is_chosen(evidence, prefix) else evidence.get(f"{prefix}limit"),
        evidence.get(f"{prefix}free_gpus"),
        evidence.get(f"{prefix}pays_after_seconds"),
        f"{prefix}pays_after_seconds" in evidence,
        _measured(evidence, known.paces.get((gpu_type, gpu_count), ())),
    )


def _is_chosen(evidence: Mapping[str, Any], prefix: str) -> bool:
    """Whether an option is what the job has: no limit keeps it from that."""
    return all(
        evidence.get(f"{prefix}{of}") == evidence.get(of) for of in ("gpu_type", "gpu_count")
    )


def _measured(evidence: Mapping[str, Any], paces: Sequence[BatchPace]) -> float | None:
    """Return the goodput of these paces at the noise scale of the round that gave the evidence."""
    phi, initial = evidence.get("noise_scale"), evidence.get("initial_batch_size")
    if phi is None or initial is None:
        return None
    return measured_goodput(paces, noise_scale=phi, initial_batch_size=initial)


def _differ(believed: float | None, measured: float | None) -> bool:
    if not believed or measured is None:
        return False
    return abs(measured / believed - 1.0) > NOTABLE


def _costs(option: Option) -> float:
    return option.price or 0.0


def _are_free(count: int) -> str:
    if not count:
        return "none of its GPUs are left free"
    return "1 of its GPUs is left free" if count == 1 else f"{count} of its GPUs are left free"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:,.0f} days".replace(",", " ")


def _rate(value: float | None) -> str:
    if value is None:
        return "unknown"
    return _count(round(value)) if abs(value) >= 100 else f"{value:.3g}"


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}".replace(",", " ")
