"""Batch sizes by epoch of jobs that adapt them, by the rules Accordion and GNS.

As the published Shockwave simulator plays them: batch sizes, and epochs at which they change, are
that simulator's figures (uw-mad-dash/shockwave). The speed of a batch size is not part of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import groupby

from maat.scheduling.regimes import Regime


class Adaptation(StrEnum):
    """The rule by which a job changes its batch size.

    STATIC: never. ACCORDION: large batches outside critical epochs. GNS: doubling as the gradient
    noise grows.
    """

    STATIC = "static"
    ACCORDION = "accordion"
    GNS = "gns"


# The largest batch per GPU of the adaptation. Models that are not named here do not adapt.
LARGEST_PER_GPU: Mapping[str, int] = {
    "ResNet-18": 256,
    "ResNet-50": 128,
    "LM": 80,
    "Recommendation": 8192,
}

# GNS, by model, first batch per GPU and GPUs: the epochs, numbered from 0, at which the batch
# doubles. Others keep their batch.
GNS_DOUBLES_AT: Mapping[tuple[str, int, int], tuple[int, ...]] = {
    ("ResNet-18", 16, 1): (31, 41, 51, 71),
    ("ResNet-18", 32, 1): (21, 31, 51),
    ("ResNet-18", 64, 1): (11, 31),
    ("ResNet-18", 128, 1): (11,),
    ("ResNet-18", 16, 2): (21, 31, 91, 111),
    ("ResNet-18", 32, 2): (11, 21, 41),
    ("ResNet-18", 64, 2): (21, 41),
    ("ResNet-18", 128, 2): (41,),
    ("ResNet-18", 16, 4): (11, 21, 81, 91),
    ("ResNet-18", 32, 4): (21, 31, 61),
    ("ResNet-18", 64, 4): (11, 61),
    ("ResNet-18", 128, 4): (11,),
    ("ResNet-50", 64, 1): (101,),
    ("ResNet-50", 32, 2): (101, 111),
    ("ResNet-50", 64, 2): (81,),
    ("ResNet-50", 32, 4): (131, 221),
    ("ResNet-50", 64, 4): (191,),
    ("LM", 5, 1): (31, 41, 61, 71),
    ("LM", 10, 1): (11, 21, 41),
    ("LM", 20, 1): (11, 41),
    ("LM", 40, 1): (11,),
    ("LM", 5, 2): (31, 51, 61, 71),
    ("LM", 10, 2): (11, 31, 41),
    ("LM", 20, 2): (31, 41),
    ("LM", 40, 2): (11,),
    ("LM", 5, 4): (11, 31, 71, 91),
    ("LM", 10, 4): (11, 31, 61),
    ("LM", 20, 4): (11, 61),
    ("LM", 40, 4): (61,),
    ("Recommendation", 512, 1): (21, 41, 71, 91),
    ("Recommendation", 1024, 1): (21, 51, 91),
    ("Recommendation", 2048, 1): (21, 41),
    ("Recommendation", 4096, 1): (41,),
}

# critical epochs at the start, by batch per GPU; 10 for the others
_RECOMMENDATION_HEAD = {512: 30, 1024: 30, 2048: 40}


def regimes_of(
    adaptation: Adaptation, model: str, *, per_gpu_batch_size: int, gpu_count: int, epochs: int
) -> tuple[Regime, ...]:
    """Return the regimes of a job: epochs at one total batch size, `epochs` in all.

    `per_gpu_batch_size`: the batch per GPU at the start.
    """
    most = max(LARGEST_PER_GPU.get(model, per_gpu_batch_size) // per_gpu_batch_size, 1)
    doubles_at = GNS_DOUBLES_AT.get((model, per_gpu_batch_size, gpu_count), ())

    def factor(epoch: int) -> int:
        """Return the batch size of an epoch over the first one."""
        match adaptation:
            case Adaptation.ACCORDION:
                return 1 if _is_critical(model, per_gpu_batch_size, epoch) else most
            case Adaptation.GNS:
                return int(min(2 ** sum(epoch >= first for first in doubles_at), most))
            case _:
                return 1

    return _stretches(factor(epoch) * per_gpu_batch_size * gpu_count for epoch in range(epochs))


def _is_critical(model: str, batch: int, epoch: int) -> bool:
    """Whether Accordion keeps the first batch size in this epoch."""
    match model:
        case "ResNet-18":
            return (
                epoch < (20 if batch == LARGEST_PER_GPU[model] else 10)
                or 150 <= epoch < 160
                or 250 <= epoch < 260
            )
        case "ResNet-50":
            return epoch % 30 < 10
        case "Recommendation":
            return epoch < _RECOMMENDATION_HEAD.get(batch, 10)
        case _:
            return epoch < 10


def _stretches(sizes: Iterable[int]) -> tuple[Regime, ...]:
    return tuple(Regime(size, sum(1 for _ in same)) for size, same in groupby(sizes))
