"""Jobs that change their own batch size between epochs (Accordion, GNS): what they declare of it, and stretches of epochs at one size.

Not responsible for predicting what comes next: that is a policy's belief.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from maat.scheduling.errors import JobError


@dataclass(frozen=True, slots=True)
class Regime:
    """A stretch of `epochs` epochs at one total batch size, samples."""

    batch_size: int
    epochs: int


@dataclass(frozen=True, slots=True)
class DeclaredRegimes:
    """What the owner of such a job says beforehand: effective samples of an epoch, and the total batch sizes it may use, ascending.

    When it uses which, it shows by running. Raises JobError where that cannot be.
    """

    epoch_work: float
    batch_sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 < self.epoch_work < float("inf"):
            raise JobError(
                "is no amount of work above zero",
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
    """The total batch size of an epoch, numbered from 0; beyond the last stretch, its size. Raises ValueError where there are none."""
    if not regimes:
        raise ValueError("a job without regimes has no batch size of its own")
    for regime in regimes:
        if epoch < regime.epochs:
            return regime.batch_size
        epoch -= regime.epochs
    return regimes[-1].batch_size


def epochs_begun(regimes: Sequence[Regime], epoch: int) -> Mapping[int, int]:
    """How many of the epochs 0 to `epoch` have which batch size."""
    begun: dict[int, int] = {}
    left = epoch + 1
    for regime in regimes:
        many = min(left, regime.epochs)
        if many > 0:
            begun[regime.batch_size] = begun.get(regime.batch_size, 0) + many
        left -= many
    return begun
