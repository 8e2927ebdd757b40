"""Jobs that change their own batch size between epochs (Accordion, GNS).

Their declaration, and ranges of epochs at one batch size. A policy predicts what comes next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from maat.scheduling.errors import JobError


@dataclass(frozen=True, slots=True)
class Regime:
    """A range of `epochs` epochs at one total batch size, samples."""

    batch_size: int
    epochs: int


@dataclass(frozen=True, slots=True)
class DeclaredRegimes:
    """What the owner declares beforehand of a job that changes its batch size.

    `epoch_work`: effective samples of an epoch. `batch_sizes`: the total batch sizes it may use,
    ascending. Which it uses when is seen only as it runs. Raises JobError if the values are
    impossible.
    """

    epoch_work: float
    batch_sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 < self.epoch_work < float("inf"):
            raise JobError(
                "is not an amount of work above zero",
                field="epoch_work",
                value=self.epoch_work,
                remedy="Give effective samples.",
            )
        sizes = self.batch_sizes
        if not sizes or sizes[0] < 1 or any(a >= b for a, b in pairwise(sizes)):
            raise JobError(
                "are not ascending sizes from 1 up",
                field="batch_sizes",
                value=sizes,
                remedy="Give for example 32, 64, 128.",
            )


def batch_size_at(regimes: Sequence[Regime], epoch: int) -> int:
    """Return the total batch size of an epoch, numbered from 0.

    Beyond the last range, its size.

    Raises:
        ValueError: There are no regimes.
    """
    if not regimes:
        raise ValueError("a job without regimes has no batch size of its own")
    for regime in regimes:
        if epoch < regime.epochs:
            return regime.batch_size
        epoch -= regime.epochs
    return regimes[-1].batch_size


def epochs_begun(regimes: Sequence[Regime], epoch: int) -> Mapping[int, int]:
    """Return how many of the epochs 0 to `epoch` have which batch size."""
    begun: dict[int, int] = {}
    left = epoch + 1
    for regime in regimes:
        many = min(left, regime.epochs)
        if many > 0:
            begun[regime.batch_size] = begun.get(regime.batch_size, 0) + many
        left -= many
    return begun
