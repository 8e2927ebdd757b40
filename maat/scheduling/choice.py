"""Why a job has this GPU type and count, in words made of the evidence of its grant.

Says only what the policy's pass has left: policies without a programme know no values, and some no
goodput.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """A configuration that a job has or could have.

    `value`, `price`: in the policy's objective, of the job and of the GPUs. `limit`: what kept the
    job from it. `free_gpus`: of its type after the round. `pays_after_seconds`: of a move to it
    from what the job has; None if it never pays, or nothing is known of its pace (`compared`).
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

    @property
    def name(self) -> str:
        return f"{self.gpu_count} {self.gpu_type}"


@dataclass(frozen=True)
class Choice:
    """What a job has, the next best, and the best if it were alone; None where not known.

    `restart_seconds`: of one move. `remaining_seconds`: at the present goodput. `by_request`: the
    policy gives jobs the counts that they ask for. `weight`: of the job, where the policy weighed
    it and it is not 1.
    """

    chosen: Option
    runner_up: Option | None
    alone: Option | None
    restart_seconds: float | None
    remaining_seconds: float | None
    by_request: bool
    weight: float | None

    @property
    def sentences(self) -> list[str]:
        """Say why it has this, what came second, and what a move would bring."""
        told = [self._why(), self._weighed(), self._second(), self._by_itself()]
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
        if other.name == self.name:
            return "It would have the same if it were alone."
        return f"If it were alone, it would have {other.name}{self._because(other)}."

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
            "reservation": f"{gpu_type} are reserved for others",
            "priority": "jobs of a higher class come first",
        }
        return f": {words.get(kind, 'the nodes have no room for it')}"

    def _move(self, other: Option) -> str:
        if not other.compared or self.restart_seconds is None:
            return ""
        cost = f"Moving to {other.name} would cost a restart of {_time(self.restart_seconds)}"
        if other.pays_after_seconds is None:
            return f"{cost} and never pay: it would be no faster there."
        pays = f"would pay after {_time(other.pays_after_seconds)}"
        if self.remaining_seconds is None:
            return f"{cost}; it {pays}."
        left = f"by its model it has {_time(self.remaining_seconds)} left"
        joint = "but " if other.pays_after_seconds > self.remaining_seconds else ""
        return f"{cost}; it {pays}, {joint}{left}."


def choice_of(evidence: Mapping[str, Any]) -> Choice | None:
    """Return what the evidence of a grant says of the choice; None if it names no GPUs."""
    chosen = _option(evidence, "")
    if chosen is None:
        return None
    return Choice(
        chosen,
        _option(evidence, "runner_up_"),
        _option(evidence, "alone_"),
        evidence.get("restart_seconds"),
        evidence.get("remaining_seconds"),
        bool(evidence.get("by_request")),
        evidence.get("weight"),
    )


def _option(evidence: Mapping[str, Any], prefix: str) -> Option | None:
    gpu_type, gpu_count = evidence.get(f"{prefix}gpu_type"), evidence.get(f"{prefix}gpu_count")
    if not isinstance(gpu_type, str) or not isinstance(gpu_count, int):
        return None
    return Option(
        gpu_type,
        gpu_count,
        evidence.get(f"{prefix}goodput_samples_per_second"),
        evidence.get(f"{prefix}value"),
        evidence.get(f"{prefix}price"),
        evidence.get(f"{prefix}limit"),
        evidence.get(f"{prefix}free_gpus"),
        evidence.get(f"{prefix}pays_after_seconds"),
        f"{prefix}pays_after_seconds" in evidence,
    )


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
