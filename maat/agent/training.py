"""The loop of training: steps by the batch plan, agreed on before each, saved at their end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

import torch

from maat.agent.checkpoint import Checkpoints
from maat.agent.data import Shares, shared_loader
from maat.agent.ledger import Ledger
from maat.agent.noise import Meter
from maat.agent.optimiser import AdaptiveOptimiser
from maat.agent.replicas import Replicas
from maat.agent.scaling import AdaptiveScaler
from maat.agent.steps import Inbox, Parts, Steps
from maat.agent.words import say


class Training(Steps):
    """The steps of one replica, in the script's own loop."""

    def __init__(
        self,
        model: Any,
        optimiser: Any,
        parts: Parts,
        replicas: Replicas,
        ledger: Ledger,
        inbox: Inbox,
    ) -> None:
        super().__init__(parts, Meter(replicas), replicas, ledger, inbox)
        self.model = model
        self.optimiser = AdaptiveOptimiser(optimiser, self._before_step)
        self._meter.watch(model, optimiser)
        self._epochs: int | None = None
        self._is_repeated = False
        self._note()

    @property
    def steps_in_epoch(self) -> int:
        """Return how often the loader gives a batch in an epoch, if each sample counts as one."""
        samples = self._plan.samples(self._replicas.count)
        return -(-self.state.epoch_samples // samples) * self._plan.passes

    def scaler(self, scaler: Any) -> AdaptiveScaler:
        """Return a gradient scaler that knows of passes, and is saved with the job."""
        adaptive = AdaptiveScaler(scaler, self.optimiser)
        self._meter.loss_scale = scaler.get_scale
        self.state.keep("scaler", scaler)
        return adaptive

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the epochs that are left; save at the end of each."""
        state = self.state
        self._epochs, self._total = count, float(count * state.epoch_samples)
        while state.epoch < count:
            self._note()
            yield state.epoch
            state.end_epoch()
            self._note()
            if self._replicas.is_first:
                self._save(self._write)
        if self._replicas.agree_at_once(self._wish()).abandon:
            self._stop(save=False)
        self.is_finished = True
        self._ledger.set(finished=True)

    def batches(self) -> Iterator[Any]:
        """Yield this replica's batches until the epoch is over."""
        state = self.state
        while not self._epoch_is_over:
            shares = Shares(
                state.position,
                self._plan,
                rank=self._replicas.rank,
                replicas=self._replicas.count,
            )
            batches = iter(shared_loader(self._loader, shares))
            self._meter.forget()
            last: float | None = None  # the first step also starts workers, and is not timed
            while True:
                if self._has_new_plan():
                    break
                yield from self._step(batches)
                now = time.perf_counter()
                if self._is_repeated:
                    break
                if last is not None:
                    self._time(now - last)
                last = now
                if self._profile is not None:
                    self._profile.end_step()
                if state.position.at == 0 or self._epoch_is_over:
                    break

    @property
    def _epoch_is_over(self) -> bool:
        """Return whether the script may go on to what it does between epochs: no profile does."""
        return self.state.epoch_is_over and self._profile is None

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Have a step repeated in more passes if the device has no room for it.

        Only one replica can: the others would wait for its gradients. And only until the weights
        are touched.
        """
        try:
            yield
        except torch.OutOfMemoryError:
            plan = self._plan
            if self._replicas.count > 1 or self.optimiser.has_stepped or plan.per_gpu == 1:
                raise
            self.out_of_memory()
            self._plan = plan.in_passes(max(2 * plan.passes, self._memory.within(plan).passes))
            self._is_repeated = True
            say(
                f"the device has no room for {plan.per_gpu} samples: the step is repeated "
                f"in {self._plan.passes} passes of {self._plan.per_gpu}"
            )

    def _step(self, batches: Iterator[Any]) -> Iterator[Any]:
        plan, state, optimiser = self._plan, self.state, self.optimiser
        samples = plan.samples(self._replicas.count)
        is_whole = state.position.size - state.position.at >= samples
        self._meter.begin(plan, is_due=is_whole and state.step % self._every == 0)
        self._is_repeated = optimiser.has_stepped = False
        try:
            for index in range(plan.passes):
                optimiser.is_first_pass = index == 0
                optimiser.is_last_pass = index == plan.accumulation
                is_apart = self._replicas.count > 1 and not optimiser.is_last_pass
                with self.model.no_sync() if is_apart else nullcontext():
                    yield next(batches)
                self._meter.end_pass()
                if self._is_repeated:
                    self._meter.drop()
                    optimiser.inner.zero_grad()
                    return
        finally:
            self._meter.end_pass()
            optimiser.is_first_pass = optimiser.is_last_pass = True
        self._unmeasured += state.advance(samples, self._initial)
        self._learn_noise()
        self._note()

    def _before_step(self) -> float:
        """Make the gradient that of a mean over all passes; return the learning rate's factor."""
        if self._replicas.count == 1 and self._plan.passes > 1:
            for parameter in self._meter.parameters:
                if parameter.grad is not None:
                    parameter.grad.div_(self._plan.passes)
        self._meter.before_step()
        return self._rate_factor()

    def _has_new_plan(self) -> bool:
        """Agree with the other replicas on what is to be done; stop if that is it."""
        if self._profile is not None:
            self._profile.begin()
        agreed = self._agree()
        if agreed.stop or agreed.abandon:
            self._stop(save=not agreed.abandon)
        if time.monotonic() >= self._save_again_at:
            self._save(self._write)
        return self._take_plan(agreed)

    def _write(self, checkpoints: Checkpoints) -> int:
        return checkpoints.save(self.state.step, self.state.tensors(), self.state.numbers())

    def _stop(self, *, save: bool) -> NoReturn:
        self._replicas.leave()
        self._end(self._write if save else None)
