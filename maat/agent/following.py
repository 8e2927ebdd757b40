"""Follows a loop of steps that a library runs: gives it batches, and hears of each step.

A library may fetch batches ahead, so what a step is worth is settled when its first batch is made.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from torch.nn.parallel import DistributedDataParallel

from maat.agent.checkpoint import Checkpoint
from maat.agent.data import Position, Shares, shared_loader
from maat.agent.environment import BatchPlan
from maat.agent.ledger import Ledger
from maat.agent.noise import Meter
from maat.agent.optimiser import torch_optimiser
from maat.agent.replicas import Replicas, Wish
from maat.agent.steps import Inbox, Parts, Steps


class _Ahead(NamedTuple):
    """A step whose batches are made: where the data is after it, its samples, and their worth."""

    position: Position
    taken: int
    gained: float
    is_whole: bool


class Feed:
    """This replica's batches of the epoch that is under way. It has no length."""

    def __init__(self, following: Following, dataset: Any) -> None:
        self._following, self.dataset = following, dataset

    def __iter__(self) -> Iterator[Any]:
        return self._following.batches()


class Paced:
    """Stands for a scheduler of the learning rate that is made for steps of the initial batch size.

    A step that is worth four of them moves it by four.
    """

    def __init__(self, inner: Any, due: Callable[[], int]) -> None:
        self.inner, self._due, self._done = inner, due, due()

    def step(self, *arguments: Any, **named: Any) -> None:
        while self._done < self._due():
            self.inner.step(*arguments, **named)
            self._done += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Following(Steps):
    """The steps of one replica, in a library's loop.

    For each step: begin_step(), end_pass() after each pass but the last, raise_rates() before the
    optimiser's step, after_step() behind it, end_step().

    Attributes:
        on_plan: Called with the batch plan of an epoch, before its first batch.
        has_ended_epoch: The last step was the last of an epoch.
    """

    def __init__(self, parts: Parts, replicas: Replicas, ledger: Ledger, inbox: Inbox) -> None:
        super().__init__(parts, Meter(replicas, is_divided=True), replicas, ledger, inbox)
        self.loader = Feed(self, parts.loader.dataset)
        self.on_plan: Callable[[BatchPlan], object] = lambda _: None
        self.has_ended_epoch = False
        self._agreed = Wish()
        self._ahead: deque[_Ahead] = deque()
        self._optimiser: Any = None
        self._rates: list[float] | None = None
        self._is_under_way = False
        self._last: float | None = None
        self._steps_meant = math.inf

    @property
    def is_first(self) -> bool:
        return self._replicas.is_first

    @property
    def steps_in_epoch(self) -> int:
        """Return how many steps an epoch has at the initial batch size."""
        return -(-self.state.epoch_samples // self._initial)

    @property
    def steps_due(self) -> int:
        """Return how many steps at the initial batch size the work done is worth."""
        in_epoch = math.ceil(self.state.in_epoch / self._initial - 1e-9)
        return self.state.epoch * self.steps_in_epoch + in_epoch

    @property
    def epochs_done(self) -> float:
        return self.state.effective_samples / self.state.epoch_samples

    @property
    def is_done(self) -> bool:
        """Return whether all work is done."""
        return self.steps_due >= self._steps_meant

    def restore(self, found: Checkpoint, *, library: str) -> None:
        """Go on from a checkpoint. Raises ValueError if another library wrote it."""
        found.check_writer(library)
        self.state.restore_numbers(found.numbers)

    def begin(self, model: Any, optimiser: Any, *, steps_meant: float) -> None:
        """Begin to train; `steps_meant`: all steps of the job at the initial batch size."""
        if self._replicas.count > 1 and not isinstance(model, DistributedDataParallel):
            raise TypeError(
                f"The library trains a {type(model).__name__} on {self._replicas.count} replicas: "
                "maat.agent needs whole copies, by DistributedDataParallel."
            )
        self._meter.watch(model, optimiser)
        self._optimiser = torch_optimiser(optimiser)
        self._steps_meant = steps_meant
        if math.isfinite(steps_meant):
            self._total = self.state.epoch_samples * steps_meant / self.steps_in_epoch
        self._note()

    def batches(self) -> Iterator[Any]:
        """Return this replica's batches until the epoch is over, by the newest batch plan."""
        self._ahead.clear()
        self._meter.forget()
        self._take_plan(self._agreed)
        self.on_plan(self._plan)
        self._last = None  # the first step also starts workers, and is not timed
        return self._batches(self._plan)

    def begin_step(self) -> None:
        self._is_under_way, self.has_ended_epoch = True, False
        if self._profile is not None:
            self._profile.begin()
        is_due = self._ahead[0].is_whole and self.state.step % self._every == 0
        self._meter.begin(self._plan, is_due=is_due)

    def end_pass(self) -> None:
        self._meter.end_pass()

    def raise_rates(self) -> None:
        """Set the learning rate for this step. The scheduler must not see it."""
        self._meter.end_pass()
        factor = self._rate_factor()
        self._rates = [group["lr"] for group in self._optimiser.param_groups]
        for group in self._optimiser.param_groups:
            group["lr"] = group["lr"] * factor

    def after_step(self) -> None:
        """Give the learning rate back; count the step."""
        if self._rates is not None:
            for group, rate in zip(self._optimiser.param_groups, self._rates, strict=True):
                group["lr"] = rate
            self._rates = None
        if not self._is_under_way:
            return
        self._is_under_way = False
        step, state = self._ahead.popleft(), self.state
        state.position = step.position
        state.go_past(step.taken, step.gained)
        self._unmeasured += step.gained
        if state.epoch_is_over:
            state.end_epoch()
            self.has_ended_epoch = True

    def end_step(self) -> Wish:
        """End a step; return what the replicas agreed on before it."""
        self.after_step()  # a gradient scaler may have left the optimiser's out
        self._meter.end_pass()
        self._learn_noise()
        now = time.perf_counter()
        if self._last is not None:
            self._time(now - self._last)
        self._last = now
        if self._profile is not None:
            self._profile.end_step()
        self._note()
        self._agreed = self._agree()
        return self._agreed

    def pause(self) -> None:
        """Leave what the library does now out of the time of steps."""
        self._last = None

    def log(self, loss: Any) -> None:
        self._ledger.set_loss(loss)

    @property
    def checkpoint_folder(self) -> Path | None:
        """Return where checkpoints are kept; None for nowhere."""
        return None if self._checkpoints is None else self._checkpoints.folder

    def meet(self) -> None:
        """Wait until all replicas are here: what each has written is there."""
        self._replicas.meet()

    def save(self, write: Callable[[Path], object], *, library: str) -> None:
        """Have rank 0 keep what the library wrote: `write` puts it into a folder."""
        if self.is_first:
            self._save(lambda found: found.save_files(self.state.step, write, self._as(library)))

    def stop(self, write: Callable[[Path], object] | None, *, library: str) -> NoReturn:
        """Keep what the library wrote, if anything is to be, and end this process."""
        self._replicas.leave()
        if write is None:
            self._end(None)
        kept = write
        self._end(lambda found: found.save_files(self.state.step, kept, self._as(library)))

    def finish(self) -> None:
        """Report that all work is done."""
        if self._replicas.agree_at_once(self._wish()).abandon:
            self._end(None)
        self._note()
        self.is_finished = True
        self._ledger.set(finished=True)

    def _as(self, library: str) -> dict[str, Any]:
        return {**self.state.numbers(), "library": library}

    def _batches(self, plan: BatchPlan) -> Iterator[Any]:
        state, samples = self.state, plan.samples(self._replicas.count)
        at, in_epoch = replace(state.position), state.in_epoch
        while in_epoch < state.epoch_samples and not self.is_done:
            shares = Shares(
                replace(at),
                plan,
                rank=self._replicas.rank,
                replicas=self._replicas.count,
                are_equal=True,
            )
            batches = iter(shared_loader(self._loader, shares))
            is_over = False
            while not is_over:
                is_whole = at.size - at.at >= samples
                taken = at.advance(samples)
                gained = state.worth(taken, self._initial, in_epoch=in_epoch)
                in_epoch += gained
                self._ahead.append(_Ahead(replace(at), taken, gained, is_whole))
                is_over = at.at == 0 or in_epoch >= state.epoch_samples
                for _ in range(plan.passes):
                    yield next(batches)
