"""The loop of training: steps by the batch plan, agreed on before each, saved at their end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

import torch

from maat.agent.checkpoint import Checkpoints
from maat.agent.data import Shares, pass_sizes, shared_loader
from maat.agent.ledger import Ledger
from maat.agent.noise import Meter
from maat.agent.optimiser import AdaptiveOptimiser
from maat.agent.replicas import Replicas
from maat.agent.scaling import AdaptiveScaler
from maat.agent.script import ScriptError
from maat.agent.split import Split
from maat.agent.steps import Inbox, Parts, Steps
from maat.agent.words import say


class Training(Steps):
    """The steps of one replica, in the script's own loop.

    Attributes:
        split: What keeps the passes of a step from the script.
        has_begun: The script has begun to loop over the loader.
        left_early: Why a loop that the script has left may have trained too little; else None.
    """

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
        self.split = Split(
            model,
            optimiser,
            self._rate_factor,
            replicas=replicas.count,
            dataset=parts.loader.dataset,
        )
        self.optimiser: AdaptiveOptimiser = self.split.optimiser
        self.left_early: ScriptError | None = None
        self.has_begun = False
        self._meter.watch(model, optimiser)
        self._meter.complete = self.split.gradients.complete
        self.split.gradients.when_whole = self._meter.take_whole
        self._epochs: int | None = None
        self._is_repeated = False
        self._note()

    @property
    def steps(self) -> int:
        """Return how many steps the job has taken, with one that was just taken."""
        self.split.passes.are_counted = True
        return self.state.step + self._is_step_taken

    @property
    def steps_in_epoch(self) -> int:
        """Return how many steps an epoch has, if each sample counts as one."""
        return -(-self.state.epoch_samples // self._plan.samples(self._replicas.count))

    @property
    def batches_in_epoch(self) -> int:
        """Return how often the loader gives a batch in an epoch, if each sample counts as one."""
        samples = self._plan.samples(self._replicas.count)
        whole, rest = divmod(self.state.epoch_samples, samples)
        of_rest = len(pass_sizes(rest, self._plan, self._replicas.count)) if rest else 0
        return whole * self._plan.passes + of_rest

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
            if self.split.passes.is_under_way:  # the script still has the loader's iterator
                self._leave_early(self._plan.samples(self._replicas.count))
                self.split.leave()
            if self.left_early is not None:
                raise self.left_early
            if not state.epoch_is_over:
                state.position.start_again()
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
        if self._epoch_is_over:
            raise ScriptError(
                "all batches of this epoch were given already: loop once over the loader in each "
                "epoch of `for epoch in job.epochs(n)`, and over the script's own DataLoader for "
                "all else."
            )
        self.has_begun = True
        self.split.begin_loop()
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
        plan, state, split = self._plan, self.state, self.split
        samples = plan.samples(self._replicas.count)
        taken = min(samples, state.position.size - state.position.at)
        self._meter.begin(plan, is_due=taken == samples and state.step % self._every == 0)
        self._is_repeated = self.optimiser.has_stepped = False
        sizes = pass_sizes(taken, plan, self._replicas.count)
        split.begin_step(sizes, due=self._steps_worth(taken))
        try:
            for index in range(len(sizes)):
                batch = next(batches)
                is_apart = self._replicas.count > 1 and index < len(sizes) - 1
                with self.model.no_sync() if is_apart else nullcontext():
                    split.begin_pass(index)
                    yield batch
                self._meter.end_pass()
                if self._is_repeated:
                    self._meter.drop()
                    split.drop_step()
                    return
                split.end_pass()
        except GeneratorExit:
            self._leave_early(samples)
            raise
        finally:
            self._meter.end_pass()
            split.leave()
        self._end_step(samples)

    def _end_step(self, samples: int) -> None:
        self._unmeasured += self.state.advance(samples, self._initial)
        self._learn_noise()
        self._note()

    @property
    def _is_step_taken(self) -> bool:
        """Return whether the script is still at the last batch of a step that it has taken."""
        passes = self.split.passes
        return passes.is_under_way and passes.is_last and passes.has_stepped

    def _leave_early(self, samples: int) -> None:
        """Note that the script has left the loop at a batch; with several passes, it may not."""
        passes = self.split.passes
        is_counted, is_taken = passes.are_counted, self._is_step_taken
        if passes.are_several and not (is_taken and is_counted):
            self.left_early = passes.error(
                "the loop over the loader ends before the epoch does: a number of batches counts "
                "passes. End it after an optimiser.step(), by job.steps: the steps taken so far."
            )
        elif is_taken:
            self._end_step(samples)

    def _steps_worth(self, taken: int) -> int:
        """Return how many steps at the initial batch size the next one is worth, in whole ones."""
        state, initial = self.state, self._initial
        gained = state.worth(taken, initial, in_epoch=state.in_epoch)
        before, after = (
            math.ceil(samples / initial - 1e-9)
            for samples in (state.in_epoch, state.in_epoch + gained)
        )
        return after - before

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
