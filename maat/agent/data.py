"""Which samples each replica takes: any number of replicas goes on where another stopped."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

from maat.agent.environment import BatchPlan
from maat.agent.script import ScriptTypeError

_PR_SET_PDEATHSIG = 1


@dataclass
class Position:
    """Where in the data the job is: in which pass over all samples, and how far in it."""

    size: int
    shuffle: bool
    drop_last: bool
    seed: int
    pass_number: int = 0
    at: int = 0

    def order(self) -> list[int]:
        """Return the samples in the order of this pass, which is the same on every replica."""
        if not self.shuffle:
            return list(range(self.size))
        generator = torch.Generator().manual_seed(
            (self.seed + self.pass_number * 1_000_003) % 2**63
        )
        order: list[int] = torch.randperm(self.size, generator=generator).tolist()
        return order

    def start_again(self) -> None:
        """Leave what is left of this pass over the data out."""
        if self.at:
            self.pass_number, self.at = self.pass_number + 1, 0

    def advance(self, samples: int) -> int:
        """Go past the next step's samples; return how many there were."""
        taken = min(samples, self.size - self.at)
        self.at += taken
        left = self.size - self.at
        if left == 0 or (self.drop_last and left < samples):
            self.pass_number, self.at = self.pass_number + 1, 0
        return taken


def pass_sizes(samples: int, plan: BatchPlan, replicas: int) -> list[int]:
    """Return how many samples of a step a replica takes in each pass: all, or one more than others.

    A step of few samples, at the end of the data, has fewer passes.
    """
    share = -(-samples // replicas)
    passes = min(plan.passes, share)
    return [share // passes + (index < share % passes) for index in range(passes)]


class Shares(Sampler[list[int]]):
    """This replica's batches, from a position on to the end of the pass over the data.

    All replicas take as many samples of a step, since they are averaged as equals: the rest at the
    end of a pass is filled up with its first samples. `are_equal`: so do all passes, and each step
    has `plan.passes` of them, as a library needs that counts them by itself.
    """

    def __init__(
        self,
        position: Position,
        plan: BatchPlan,
        *,
        rank: int,
        replicas: int,
        are_equal: bool = False,
    ) -> None:
        self.position, self.plan = position, plan
        self._rank, self._replicas, self._are_equal = rank, replicas, are_equal

    def __iter__(self) -> Iterator[list[int]]:
        order, at = self.position.order(), self.position.at
        replicas, samples = self._replicas, self.plan.samples(self._replicas)
        while at < len(order):
            found = order[at : at + samples]
            if len(found) < samples and self.position.drop_last and at > self.position.at:
                return
            sizes = pass_sizes(len(found), self.plan, replicas)
            if self._are_equal:
                sizes = [-(-len(found) // (replicas * self.plan.passes))] * self.plan.passes
            found += [order[i % len(order)] for i in range(sum(sizes) * replicas - len(found))]
            start = 0
            for size in sizes:
                mine = start + self._rank * size
                yield found[mine : mine + size]
                start += size * replicas
            at += samples


@dataclass(frozen=True)
class _WorkerStart:
    """Starts a data-loader worker: it ignores TERM, which is for the rank, and dies with it."""

    then: Callable[[int], object] | None

    def __call__(self, worker: int) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if self.then is not None:
            self.then(worker)


def check_loader(loader: Any) -> None:
    """Raise ScriptTypeError for a loader whose samples no other number of ranks can divide."""
    if not isinstance(loader, DataLoader):
        raise ScriptTypeError(f"loader is a {type(loader).__name__}: give a torch DataLoader.")
    if type(loader).__iter__ is not DataLoader.__iter__:
        raise ScriptTypeError(
            f"loader is a {type(loader).__name__}, which makes its batches by itself: give a torch "
            "DataLoader, and leave it out of accelerator.prepare()."
        )
    if isinstance(loader.dataset, IterableDataset):
        raise ScriptTypeError(
            "loader reads an IterableDataset, which no replica can enter in the middle: give a "
            "dataset with __getitem__ and __len__, or submit the job as rigid, without the agent."
        )
    if (sampler := _own_sampler(loader)) is not None:
        raise ScriptTypeError(
            f"loader takes its samples by {sampler}: give one with batch_size and shuffle=True or "
            "False, and no sampler of your own. For a part of the data, give a "
            "torch.utils.data.Subset of it."
        )
    if len(loader.dataset) < 1:
        raise ValueError("loader has no samples: give a dataset that is not empty.")


def _own_sampler(loader: Any) -> str | None:
    """Return what takes other samples than all once, in words; None for nothing of the kind."""
    sampler, batches = loader.sampler, loader.batch_sampler
    if type(batches) is not BatchSampler or loader.batch_size is None:
        return type(batches or sampler).__name__
    if type(sampler) not in (RandomSampler, SequentialSampler):
        return type(sampler).__name__
    if getattr(sampler, "replacement", False):
        return f"{type(sampler).__name__} with a replacement"
    if len(sampler) != len(loader.dataset):
        return f"{type(sampler).__name__}, {len(sampler)} of {len(loader.dataset)}"
    return None


def position_of(loader: Any, seed: int) -> Position:
    """Return the start of a loader's data."""
    size = len(loader.dataset)
    return Position(
        size,
        shuffle=isinstance(loader.sampler, RandomSampler),
        drop_last=loader.drop_last and size >= loader.batch_size,
        seed=seed,
    )


def shared_loader(loader: Any, shares: Shares) -> Any:
    """Return a loader of the same data and workers that takes these shares."""
    kept = {
        name: getattr(loader, name)
        for name in (
            "num_workers",
            "collate_fn",
            "pin_memory",
            "timeout",
            "multiprocessing_context",
            "generator",
            "prefetch_factor",
        )
    }
    return DataLoader(
        loader.dataset,
        batch_sampler=shares,
        worker_init_fn=_WorkerStart(loader.worker_init_fn),
        **kept,
    )
