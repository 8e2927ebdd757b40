"""Rules for the learning rate at another batch size than the one it was chosen for.

A rule is a function from a Batch to the factor of the learning rate, so a script can pass its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Batch(NamedTuple):
    """What a rule may go by.

    Attributes:
        scale: The batch size over the initial one.
        gain: Steps at the initial batch size that one step is worth, from the noise measured.
        epochs: Epochs done, by effective samples.
        adaptive: The optimiser divides gradients by their size, as Adam does.
    """

    scale: float
    gain: float
    epochs: float
    adaptive: bool


Rule = Callable[[Batch], float]


def none(_: Batch) -> float:
    """Leave the learning rate as it is."""
    return 1.0


def linear(batch: Batch) -> float:
    """Goyal et al. 2017."""
    return batch.scale


def square_root(batch: Batch) -> float:
    """Krizhevsky 2014; for Adam, Malladi et al. 2022."""
    return math.sqrt(batch.scale)


def adascale(batch: Batch) -> float:
    """Johnson et al. 2020, for SGD; for Adam and its like, the square root of the gain."""
    return math.sqrt(batch.gain) if batch.adaptive else batch.gain


def by_optimiser(batch: Batch) -> float:
    """AdaScale for SGD, the square root of k for Adam and its like: as Pollux and Sia train."""
    return square_root(batch) if batch.adaptive else adascale(batch)


@dataclass(frozen=True)
class Legw:
    """You et al. 2019: the square root, after a warm-up of so many epochs times the scale."""

    warmup_epochs: float = 1.0

    def __call__(self, batch: Batch) -> float:
        warm = self.warmup_epochs * batch.scale
        return math.sqrt(batch.scale) * min((batch.epochs / warm) if warm > 0 else 1.0, 1.0)


_BY_NAME: Mapping[str, Rule] = {
    "auto": by_optimiser,
    "none": none,
    "linear": linear,
    "sqrt": square_root,
    "adascale": adascale,
    "legw": Legw(),
}


def rule_of(rule: str | Rule) -> Rule:
    """Return a rule by its name, or the caller's own. Raises ValueError."""
    if not isinstance(rule, str):
        return rule
    if rule not in _BY_NAME:
        raise ValueError(
            f"rule is {rule!r}: give one of {', '.join(_BY_NAME)}, or a function of a Batch."
        )
    return _BY_NAME[rule]
