"""What every loop of steps needs, the agent's own and those of libraries: plans, reports, stops.

Knows neither how batches are made nor what a library keeps in a checkpoint.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from maat.agent.checkpoint import Checkpoints, Fenced
from maat.agent.environment import BatchPlan
from maat.agent.ledger import Gradient, Ledger
from maat.agent.memory import MemoryLimits
from maat.agent.noise import Meter
from maat.agent.profile import Profile
from maat.agent.rates import Batch, Rule
from maat.agent.replicas import Replicas, Wish
from maat.agent.report import Answer
from maat.agent.state import State
from maat.agent.timing import TRUSTED_AFTER, Times
from maat.agent.words import say

STOPPED, PROFILED = 143, 0
CANNOT_SAVE = 74  # EX_IOERR
RETRY_SECONDS = 60.0
_COMPARED_EVERY = 100  # steps: ranks then tell each other how long their own part of one takes
_AGREED_WITHIN = 0.3  # seconds: what one replica is told, all know by then, or after one step
_LONGEST_PAUSE = 16  # steps: they may suddenly take longer
_NEWEST = 8  # steps


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
    """What a loop works with.

    Attributes:
        initial: The batch size of a step that the learning rate was chosen for.
        most: The largest batch size of a step that the script allows.
    """

    loader: Any
    state: State
    plan: BatchPlan
    rule: Rule
    initial: int
    most: int
    checkpoints: Checkpoints | None
    memory: MemoryLimits
    profile: Profile | None = None


class Steps:
    """What one replica does around each step: plans, agreement, reports, checkpoints.

    The step itself is the caller's: the agent's own loop, or that of a library.
    """

    def __init__(
        self, parts: Parts, meter: Meter, replicas: Replicas, ledger: Ledger, inbox: Inbox
    ) -> None:
        self._replicas, self._ledger, self._inbox, self._meter = replicas, ledger, inbox, meter
        self._loader, self.state = parts.loader, parts.state
        self._memory = parts.memory
        self._plan = parts.memory.within(parts.plan)
        self._initial, self._most, self._rule = parts.initial, parts.most, parts.rule
        self._checkpoints, self._profile = parts.checkpoints, parts.profile
        self._every, self._refused = 1, 0
        self._own = Times()
        self._newest: deque[float] = deque(maxlen=_NEWEST)  # seconds of steps by this plan
        self._unmeasured = 0.0  # effective samples since the last measurement
        self._total: float | None = None  # effective samples of the job
        self._save_again_at = math.inf
        self.is_finished = False

    @property
    def measured_every(self) -> int:
        return self._every

    def out_of_memory(self) -> None:
        """Remember, and report, that the device has no room for this plan."""
        self._memory.add(self._plan.per_gpu)
        self._ledger.set(memory={"out_of_memory_at": self._plan.per_gpu})

    def _agree(self) -> Wish:
        """Return what the replicas agreed on; end if that is to end."""
        agreed = self._replicas.agree(self._wish())
        self._every = agreed.every
        return agreed

    def _wish(self) -> Wish:
        inbox, profile = self._inbox, self._profile
        plan = inbox.plan if profile is None else profile.plan
        if plan is not None and plan.exceeds(self._most, self._replicas.count):
            if plan.number != self._refused:
                say(
                    f"plan {plan.number} is not followed: its batch size is {plan.total}, "
                    f"and the script allows {self._most}"
                )
            self._refused, plan = plan.number, None
        stop = inbox.stop or (profile is not None and profile.is_over)
        wish = Wish(
            stop=stop,
            abandon=inbox.is_stale,
            every=self._meter.budget.every,
            pause=self._pause(),
        )
        if plan is None:
            return wish
        return wish._replace(
            number=plan.number,
            total=plan.total,
            per_gpu=plan.per_gpu,
            accumulation=plan.accumulation,
        )

    def _pause(self) -> int:
        """Return before how many steps in a row nothing need be said."""
        if self._profile is not None or len(self._newest) < _NEWEST:
            return 0
        steps = int(_AGREED_WITHIN / max(statistics.median(self._newest), 1e-9))
        return min(max(steps - 1, 0), _LONGEST_PAUSE)

    def _take_plan(self, agreed: Wish) -> bool:
        """Take the plan that was agreed on; return whether it is a new one."""
        if agreed.number <= self._plan.number:
            return False
        plan = BatchPlan(agreed.number, agreed.total, agreed.per_gpu, agreed.accumulation)
        self._plan = self._memory.within(plan)
        self._newest.clear()
        self._replicas.end_pause()
        self._ledger.set(plan_number=agreed.number)
        return True

    def _rate_factor(self) -> float:
        """Return the factor of the learning rate for this step."""
        samples = self._plan.samples(self._replicas.count)
        return self._rule(
            Batch(
                scale=samples / self._initial,
                gain=self.state.noise.gain(samples, self._initial),
                epochs=self.state.effective_samples / self.state.epoch_samples,
                adaptive=self._meter.is_adaptive,
            )
        )

    def _learn_noise(self) -> None:
        """End the measurement of a step; add what was measured at an earlier one."""
        norms = self._meter.end()
        if norms is not None and self._total is not None:
            self.state.noise.add(norms, share_of_job=self._unmeasured / self._total)
            self._unmeasured = 0.0

    def _time(self, seconds: float) -> None:
        self._meter.budget.add_step(seconds)
        self._newest.append(seconds)
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
        if self._profile is not None:
            self._ledger.set(stepping_seconds=self._profile.stepping_seconds)
        self._ledger.set_progress(
            effective_samples=float(state.effective_samples),
            steps=state.step,
            epoch=state.epoch,
            total_effective_samples=self._total,
            processed_samples=float(state.processed_samples),
            gained_samples=float(state.gained_samples),
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

    def _save(self, write: Callable[[Checkpoints], int]) -> bool:
        """Write a checkpoint; return whether it is there, or none is wanted.

        `write` returns its size in bytes.
        """
        self._save_again_at = math.inf
        if self._checkpoints is None:
            return True
        start = time.monotonic()
        try:
            size = write(self._checkpoints)
        except Fenced as error:
            say(f"nothing is saved: {error}")
            self._inbox.is_stale = True
            return True
        except (OSError, RuntimeError) as error:  # torch wraps a full disk in a RuntimeError
            say(f"no checkpoint was written: {error}")
            self._ledger.set_trouble(
                f"No checkpoint could be written: {_without_path(error)}. Look for room on the "
                f"disk of {self._checkpoints.folder}: training goes on, and tries again after "
                f"{RETRY_SECONDS:.0f} s."
            )
            self._save_again_at = time.monotonic() + RETRY_SECONDS
            return False
        seconds = time.monotonic() - start
        step = self.state.step
        self._ledger.set(checkpoint={"step": step, "seconds": seconds, "bytes": size})
        self._ledger.set_trouble(None)
        return True

    def _end(self, save: Callable[[Checkpoints], int] | None) -> NoReturn:
        """End this process, once rank 0 has saved. All replicas are here, after the same step."""
        code = STOPPED if self._profile is None or self._inbox.stop else PROFILED
        if self._replicas.is_first:
            if save is not None and not self._save(save):
                code = CANNOT_SAVE
            self._replicas.say_saved()
        else:
            self._replicas.wait_until_saved()
        sys.exit(code)


def _without_path(error: Exception) -> str:
    """Return an error's words without the file: each new text would make another event."""
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    return str(error).partition("\n")[0][:200].rstrip(".")
