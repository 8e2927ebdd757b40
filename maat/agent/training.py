"""The loop of training: steps by the batch plan, agreed on before each, saved at their end."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

from maat.agent.checkpoint import Checkpoints, Fenced
from maat.agent.data import Shares, shared_loader
from maat.agent.environment import BatchPlan
from maat.agent.ledger import Gradient, Ledger
from maat.agent.noise import TRUSTED_AFTER, Meter
from maat.agent.optimiser import AdaptiveOptimiser
from maat.agent.rates import Batch, Rule
from maat.agent.replicas import Replicas, Wish
from maat.agent.report import Answer
from maat.agent.state import State
from maat.agent.timing import Times

STOPPED = 143
CANNOT_SAVE = 74  # EX_IOERR
RETRY_SECONDS = 60.0
_COMPARED_EVERY = 100  # steps: ranks then tell each other how long their own part of one takes


@dataclass
class Inbox:
    """What this process was told: by signals, and by the reporter's thread."""

    stop: bool = False
    is_stale: bool = False
    plan: BatchPlan | None = None

    def hear(self, answer: Answer) -> None:
        self.stop = self.stop or answer.stop
        self.is_stale = self.is_stale or answer.is_stale
        self.plan = answer.plan or self.plan


@dataclass
class Parts:
    """What the loop works with: made by Job.adapt()."""

    model: Any
    optimiser: Any
    loader: Any
    state: State
    plan: BatchPlan
    rule: Rule
    most: int
    checkpoints: Checkpoints | None


class Training:
    """The steps of one replica."""

    def __init__(self, parts: Parts, replicas: Replicas, ledger: Ledger, inbox: Inbox) -> None:
        self._replicas, self._ledger, self._inbox = replicas, ledger, inbox
        self._loader, self.state, self._plan = parts.loader, parts.state, parts.plan
        self._initial: int = parts.loader.batch_size
        self._most, self._rule = parts.most, parts.rule
        self._checkpoints = parts.checkpoints
        self.model = parts.model
        self.optimiser = AdaptiveOptimiser(parts.optimiser, self._before_step)
        self._meter = Meter(list(parts.model.parameters()), parts.optimiser, replicas)
        if replicas.count > 1:
            # torch asks for an argument of this name, and looks at annotations if there are any.
            self.model.register_comm_hook(None, lambda _, bucket: self._meter.on_bucket(bucket))
        self._every, self._refused = 1, 0
        self._own = Times()
        self._unmeasured = 0.0  # effective samples since the last measurement
        self._epochs: int | None = None
        self.is_finished = False
        self._save_again_at = math.inf
        self._note()

    @property
    def steps_in_epoch(self) -> int:
        """Return how often the loader gives a batch in an epoch, if each sample counts as one."""
        samples = self._plan.samples(self._replicas.count)
        return -(-self.state.epoch_samples // samples) * self._plan.passes

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the epochs that are left; save at the end of each."""
        self._epochs = count
        state = self.state
        while state.epoch < count:
            self._note()
            yield state.epoch
            state.end_epoch()
            self._note()
            if self._replicas.is_first:
                self._save()
        if self._replicas.agree_at_once(self._wish()).abandon:
            self._stop(save=False)
        self.is_finished = True
        self._ledger.set(finished=True)

    def batches(self) -> Iterator[Any]:
        """Yield this replica's batches until the epoch is over."""
        state = self.state
        while not state.epoch_is_over:
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
                if last is not None:
                    self._time(now - last)
                last = now
                if state.position.at == 0 or state.epoch_is_over:
                    break

    def _step(self, batches: Iterator[Any]) -> Iterator[Any]:
        plan, state, optimiser = self._plan, self.state, self.optimiser
        samples = plan.samples(self._replicas.count)
        is_whole = state.position.size - state.position.at >= samples
        self._meter.begin(plan, is_due=is_whole and state.step % self._every == 0)
        try:
            for index in range(plan.passes):
                optimiser.is_first_pass = index == 0
                optimiser.is_last_pass = index == plan.accumulation
                is_apart = self._replicas.count > 1 and not optimiser.is_last_pass
                with self.model.no_sync() if is_apart else nullcontext():
                    yield next(batches)
                self._meter.end_pass()
        finally:
            self._meter.end_pass()
            optimiser.is_first_pass = optimiser.is_last_pass = True
        self._unmeasured += state.advance(samples, self._initial)
        norms = self._meter.end()
        if norms is not None and self._epochs is not None:
            share = self._unmeasured / (self._epochs * state.epoch_samples)
            state.noise.add(norms, share_of_job=share)
            self._unmeasured = 0.0
        self._note()

    def _before_step(self) -> float:
        """Make the gradient that of a mean over all passes; return the learning rate's factor."""
        if self._replicas.count == 1 and self._plan.passes > 1:
            for parameter in self._meter.parameters:
                if parameter.grad is not None:
                    parameter.grad.div_(self._plan.passes)
        self._meter.before_step()
        samples = self._plan.samples(self._replicas.count)
        return self._rule(
            Batch(
                scale=samples / self._initial,
                gain=self.state.noise.gain(samples, self._initial),
                epochs=self.state.effective_samples / self.state.epoch_samples,
                adaptive=self._meter.is_adaptive,
            )
        )

    def _has_new_plan(self) -> bool:
        """Agree with the other replicas on what is to be done; stop if that is it."""
        agreed = self._replicas.agree(self._wish())
        if agreed.stop or agreed.abandon:
            self._stop(save=not agreed.abandon)
        if time.monotonic() >= self._save_again_at:
            self._save()
        self._every = agreed.every
        if agreed.number <= self._plan.number:
            return False
        self._plan = BatchPlan(agreed.number, agreed.total, agreed.per_gpu, agreed.accumulation)
        self._ledger.set(plan_number=agreed.number)
        return True

    def _wish(self) -> Wish:
        inbox = self._inbox
        plan = inbox.plan
        if plan is not None and plan.exceeds(self._most, self._replicas.count):
            if plan.number != self._refused:
                print(
                    f"maat: plan {plan.number} is not followed: its batch size is {plan.total}, "
                    f"and the script allows {self._most}",
                    flush=True,
                )
            self._refused, plan = plan.number, None
        wish = Wish(stop=inbox.stop, abandon=inbox.is_stale, every=self._meter.budget.every)
        if plan is None:
            return wish
        return wish._replace(
            number=plan.number,
            total=plan.total,
            per_gpu=plan.per_gpu,
            accumulation=plan.accumulation,
        )

    def _time(self, seconds: float) -> None:
        self._meter.budget.add_step(seconds)
        exposed = self._meter.exposed_seconds()
        self._compare(seconds - (exposed or 0.0))
        if self._replicas.is_first:
            self._ledger.add_step(self._plan, seconds)
            if exposed is not None:
                self._ledger.add_sync(self._plan, exposed)

    def _compare(self, own_seconds: float) -> None:
        """Tell the other ranks now and then how long this one computes: GPUs are not all equal."""
        if self._replicas.count == 1:
            return
        self._own.add(own_seconds)
        if self._own.steps == _COMPARED_EVERY:
            seconds = [max(each, 1e-9) for each in self._replicas.of_all(self._own.mean)]
            self._ledger.set(ranks={"compute_seconds": seconds})
            self._own = Times()

    def _note(self) -> None:
        """Tell the ledger how far training is."""
        if not self._replicas.is_first:
            return
        state, noise = self.state, self.state.noise
        total = None if self._epochs is None else float(self._epochs * state.epoch_samples)
        self._ledger.set_progress(
            effective_samples=float(state.effective_samples),
            steps=state.step,
            epoch=state.epoch,
            total_effective_samples=total,
        )
        if noise.count >= TRUSTED_AFTER:
            self._ledger.set_gradient(
                Gradient(
                    noise.square,
                    noise.trace / self._initial,
                    noise.count,
                    self._initial,
                    self._meter.is_adaptive,
                )
            )

    def _save(self) -> bool:
        """Write a checkpoint; return whether it is there, or none is wanted."""
        self._save_again_at = math.inf
        if self._checkpoints is None:
            return True
        start = time.monotonic()
        try:
            size = self._checkpoints.save(
                self.state.step, self.state.tensors(), self.state.numbers()
            )
        except Fenced as error:
            print(f"maat: nothing is saved: {error}", flush=True)
            self._inbox.is_stale = True
            return True
        except (OSError, RuntimeError) as error:  # torch wraps a full disk in a RuntimeError
            print(f"maat: no checkpoint was written: {error}", flush=True)
            self._save_again_at = time.monotonic() + RETRY_SECONDS
            return False
        self._ledger.set(
            checkpoint={
                "step": self.state.step,
                "seconds": time.monotonic() - start,
                "bytes": size,
            }
        )
        return True

    def _stop(self, *, save: bool) -> NoReturn:
        """Save, and end this process. All replicas are here, after the same step."""
        self._replicas.leave()
        code = STOPPED
        if self._replicas.is_first:
            if save and not self._save():
                code = CANNOT_SAVE
            self._replicas.say_saved()
        else:
            self._replicas.wait_until_saved()
        sys.exit(code)
