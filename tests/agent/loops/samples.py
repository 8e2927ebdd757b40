"""Loaders that leave samples out, repeat them or choose them by themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from loops.script import BATCH, SIZE, Rows, Script, add_row, loss_of

ROWS: Rows = {}
row = partial(add_row, ROWS)


@row("`drop_last=True`")
def drops_the_last(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin(loader=script.loader(drop_last=True))
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


@row("a part of the data by `torch.utils.data.Subset`")
def takes_a_subset(script: Script) -> None:
    part = DataLoader(Subset(script.data, range(10, 60)), BATCH)
    model, optimiser, loader, epochs = script.begin(loader=part)
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


NO_SAMPLER = "no sampler of your own"


def _samples(words: str, says: str, make: Callable[[Script], Any]) -> None:
    def loop(script: Script) -> None:
        script.begin(loader=make(script))

    ROWS[words] = (loop, says)


class _Own(RandomSampler):
    """Takes the first half alone."""

    def __iter__(self) -> Any:
        return iter(range(SIZE // 2))


class _OwnLoader(DataLoader[Any]):
    def __iter__(self) -> Any:
        yield from list(super().__iter__())[:2]


class _Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(SIZE))


def _by(sampler: Callable[[Any], Any]) -> Callable[[Script], Any]:
    return lambda script: script.loader(sampler=sampler(script.data))


_samples(
    "`RandomSampler(data, num_samples=n)`",
    "loader takes its samples by RandomSampler, 30 of 90",
    _by(lambda data: RandomSampler(data, num_samples=30)),
)
_samples(
    "`RandomSampler(data, replacement=True)`",
    "loader takes its samples by RandomSampler with a replacement",
    _by(lambda data: RandomSampler(data, replacement=True)),
)
_samples(
    "`WeightedRandomSampler`, `SubsetRandomSampler`",
    NO_SAMPLER,
    _by(lambda data: WeightedRandomSampler([1.0] * SIZE, SIZE)),
)
_samples("a subclass of a sampler", "loader takes its samples by _Own", _by(_Own))
_samples(
    "a sampler of other data than the loader's",
    "SequentialSampler, 10 of 90",
    _by(lambda data: SequentialSampler(range(10))),
)
_samples(
    "`batch_sampler=`",
    NO_SAMPLER,
    lambda script: DataLoader(
        script.data, batch_sampler=BatchSampler(SubsetRandomSampler(range(9)), 3, False)
    ),
)
_samples(
    "an `IterableDataset`",
    "loader reads an IterableDataset",
    lambda _: DataLoader(_Stream(), BATCH),
)
_samples(
    "a subclass of `DataLoader` that makes its batches by itself",
    "which makes its batches by itself",
    lambda script: _OwnLoader(script.data, BATCH),
)
