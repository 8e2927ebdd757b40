"""The job as a training script sees it."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LRScheduler

from maat.agent.checkpoint import Checkpoint, Checkpoints
from maat.agent.data import check_loader, position_of
from maat.agent.ending import end_quickly
from maat.agent.environment import BatchPlan, Environment
from maat.agent.following import Following
from maat.agent.ledger import Ledger
from maat.agent.memory import MemoryLimits
from maat.agent.noise import NoiseScale
from maat.agent.profile import Profile
from maat.agent.rates import Rule, rule_of
from maat.agent.replicas import Replicas
from maat.agent.report import Reporter
from maat.agent.script import ScriptTypeError
from maat.agent.state import State
from maat.agent.steps import Inbox, Parts, Steps
from maat.agent.training import Training
from maat.agent.words import say

_SHARDED = {"FullyShardedDataParallel", "FSDPModule"}
_PLACES = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


class AdaptiveLoader:
    """Stands for the script's loader: gives this replica's batches, by the batch plan."""

    def __init__(self, training: Training, loader: Any) -> None:
        self._training, self.dataset = training, loader.dataset

    def __iter__(self) -> Iterator[Any]:
        return self._training.batches()

    def __len__(self) -> int:
        """Return the steps of an epoch before the first, as schedules count; then its batches."""
        training = self._training
        return training.batches_in_epoch if training.has_begun else training.steps_in_epoch


class Job:
    """A training job, in one of its replicas.

    Attributes:
        device: Where this replica computes.
    """

    def __init__(
        self, environment: Environment, device: torch.device, replicas: Replicas, inbox: Inbox
    ) -> None:
        self.device = device
        self._environment, self._replicas, self._inbox = environment, replicas, inbox
        self._ledger = Ledger(environment)
        self._kept: dict[str, Any] = {}
        self._training: Training | None = None
        self._steps: Steps | None = None
        self._reporter: Reporter | None = None
        self._has_fallen = False

    @classmethod
    def started(cls) -> Job:
        """Join the other replicas. Raises ValueError for an environment that cannot be."""
        environment, inbox = Environment.read(), Inbox()
        environment.show_agent()
        atexit.register(end_quickly)  # first: it runs after all that is registered later

        def told(*_: object) -> None:
            inbox.stop = True

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, told)
            # Python drops handlers before it ends, and ranks that end are told to once more.
            atexit.register(signal.signal, signal.SIGTERM, signal.SIG_IGN)
        if environment.world_size == 1:
            for name in _PLACES:  # libraries would take them for those of a distributed job
                os.environ.pop(name, None)
        device = torch.device("cpu")
        if torch.cuda.is_available():
            device = torch.device("cuda", environment.local_rank)
            torch.cuda.set_device(device)
        job = cls(environment, device, Replicas(environment, device), inbox)
        then = sys.excepthook

        def fallen(kind: Any, error: Any, trace: Any) -> None:
            job._has_fallen = True
            if isinstance(error, torch.OutOfMemoryError) and job._steps is not None:
                job._steps.out_of_memory()
            then(kind, error, trace)

        sys.excepthook = fallen
        atexit.register(job._end_as_failed)
        return job

    @property
    def is_profile(self) -> bool:
        """Return whether this only measures step times: nothing of it is kept, and it ends soon.

        A script need not look at it, but may leave out what it would write beside checkpoints.
        """
        return self._environment.profile is not None

    @property
    def environment(self) -> Environment:
        return self._environment

    @property
    def is_first(self) -> bool:
        """Return whether this is the one replica that prints, and writes what is written once."""
        return self._replicas.is_first

    @property
    def steps(self) -> int:
        """Return how many steps the job has taken, in all attempts; passes are not counted."""
        if self._training is None:
            raise RuntimeError("steps needs adapt() to be called before it.")
        return self._training.steps

    @property
    def measured_every(self) -> int:
        """Return k: the gradient's noise is measured at every k-th step."""
        return 1 if self._steps is None else self._steps.measured_every

    def adapt(
        self,
        model: Any,
        optimiser: Any,
        loader: Any,
        scheduler: Any = None,
        max_batch_size: int | None = None,
        rule: str | Rule = "auto",
    ) -> tuple[Any, Any, Any]:
        """Return model, optimiser and loader for any number of replicas; go on from a checkpoint.

        The loader's batch size is that of a step in all, and what the learning rate was chosen for.

        Args:
            scheduler: Of the learning rate, made for `optimiser`: it is saved with the job.
            max_batch_size: The largest batch size of a step that the script allows; None leaves it
                at the loader's.
            rule: How the learning rate follows the batch size: auto, adascale, sqrt, linear, legw,
                none, or a function of a Batch (maat/agent/rates.py).
        """
        check_loader(loader)
        check_model(model)
        if type(scheduler).__module__.startswith("accelerate."):
            raise ScriptTypeError(
                "scheduler steps once for each replica: give the scheduler itself, and leave it "
                "out of accelerator.prepare()."
            )
        if getattr(getattr(optimiser, "gradient_state", None), "num_steps", 1) > 1:
            raise ScriptTypeError(
                "the Accelerator accumulates batches by itself: leave gradient_accumulation_steps "
                "out, and give the DataLoader the batch size of a whole step."
            )
        parts = self._parts(loader, loader.batch_size, max_batch_size, rule, passes=1)
        if parts.profile is not None:
            parts.plan = parts.profile.plan
        copy = model.module if isinstance(model, DistributedDataParallel) else model
        named = {"model": copy, "optimiser": optimiser, "scheduler": scheduler}
        for name, part in named.items():
            if part is not None:
                parts.state.keep(name, part)
        start = time.monotonic()
        found = self.newest()
        if found is not None:
            found.check_writer(None)
            parts.state.restore(found, rank=self._replicas.rank)
            self.say_restored(parts.state, seconds=time.monotonic() - start)
        training = Training(
            self._replicated(model), optimiser, parts, self._replicas, self._ledger, self._inbox
        )
        self._training = training
        if scheduler is not None:
            training.split.schedules.add(scheduler)
        for name, part in self._kept.items():
            self.keep(name, part)
        self._begin(training)
        return training.model, training.optimiser, AdaptiveLoader(training, loader)

    def follow(
        self,
        loader: Any,
        *,
        passes: int,
        max_batch_size: int | None,
        rule: str | Rule,
    ) -> Following:
        """Return what follows a library's loop, which its callbacks tell of each step.

        Args:
            loader: The library's, as for one replica; a step of it has `passes` batches.
        """
        check_loader(loader)
        initial = loader.batch_size * passes
        parts = self._parts(loader, initial, max_batch_size, rule, passes=passes)
        if parts.profile is not None:  # a library takes another batch size at the next epoch only
            parts.profile = parts.profile.of_one_size(initial)
        following = Following(parts, self._replicas, self._ledger, self._inbox)
        self._begin(following)
        return following

    def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that is whole, which rank 0 chooses for all."""
        checkpoints, first = self._checkpoints(), self.is_first
        if checkpoints is None:
            return None
        found = checkpoints.newest() if first else None
        if checkpoints.damaged is not None:
            self._ledger.set_trouble(checkpoints.damaged)
        name = self._replicas.from_first(
            "checkpoint", (found.folder.name if found else "") if first else None
        )
        return checkpoints.read(name) if name and found is None else found

    def say_restored(self, state: State, *, seconds: float) -> None:
        """Report that the job goes on from a checkpoint."""
        self._ledger.set(restore_seconds=seconds, checkpoint={"step": state.step})

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the numbers of the epochs that are left of `count`."""
        if self._training is None:
            raise RuntimeError("epochs() needs adapt() to be called before it.")
        return self._training.epochs(count)

    def scaler(self, scaler: Any) -> Any:
        """Return a torch.amp.GradScaler for steps of several passes; it is saved with the job."""
        if self._training is None:
            raise RuntimeError("scaler() needs adapt() to be called before it.")
        return self._training.scaler(scaler)

    def guard(self) -> AbstractContextManager[None]:
        """Return what a step is taken in, so that it is repeated if it runs out of memory."""
        if self._training is None:
            raise RuntimeError("guard() needs adapt() to be called before it.")
        return self._training.guard()

    def keep(self, name: str, part: Any) -> None:
        """Save a part with the job, and give it back: what has state_dict and load_state_dict."""
        if self._training is not None:
            self._training.state.keep(name, part)
            if isinstance(part, LRScheduler):
                self._training.split.schedules.add(part)
        else:
            self._kept[name] = part

    def log(self, *, loss: Any) -> None:
        """Show a loss in Maat: a number, or a tensor of one. Raises ValueError for more."""
        if not isinstance(loss, torch.Tensor):
            loss = float(loss)
        elif loss.numel() != 1:
            raise ValueError(f"loss has {loss.numel()} numbers: give one, such as its mean.")
        else:
            loss = loss.detach()  # read when it is reported: now would hold a GPU up
        self._ledger.set_loss(loss)

    def _begin(self, steps: Steps) -> None:
        self._steps = steps
        if self.is_first and self._environment.attempt_directory is not None:
            self._reporter = Reporter(self._ledger, self._inbox.hear)
            self._reporter.start()
        atexit.register(self._end)

    def _end(self) -> None:
        if self._reporter is not None:
            self._reporter.end()
        if self._steps is not None and self._steps.is_finished:
            self._replicas.close()

    def _end_as_failed(self) -> None:
        """End with exit code 1 if the script ends well, though it has left a loop too early.

        A generator that is closed has no other way to say so: Python drops what it raises then.
        """
        error = None if self._training is None else self._training.left_early
        if error is None or self._has_fallen:
            return
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        end_quickly()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(1)

    def _replicated(self, model: Any) -> Any:
        if self._replicas.count == 1 or isinstance(model, DistributedDataParallel):
            return model
        devices = [self.device] if self.device.type == "cuda" else None
        # As views, gradients are not copied into the buckets and back: more than measuring costs.
        return DistributedDataParallel(model, device_ids=devices, gradient_as_bucket_view=True)

    def _parts(
        self,
        loader: Any,
        initial: int,
        max_batch_size: int | None,
        rule: str | Rule,
        *,
        passes: int,
    ) -> Parts:
        """Return what a loop works with, at the start of the job. Raises ValueError."""
        if self._steps is not None:
            raise RuntimeError("adapt() was called already: a job trains one model.")
        if max_batch_size is not None and max_batch_size < initial:
            raise ValueError(
                f"max_batch_size is {max_batch_size}: it must be at least the loader's batch size, "
                f"{initial}."
            )
        most = max_batch_size or initial
        told = self._environment.profile
        timed = min(most, max(len(loader.dataset) // 2, 1))  # two steps in a row, and one is timed
        return Parts(
            loader=loader,
            state=self._first_state(loader, initial),
            plan=self._first_plan(initial, most, passes),
            rule=rule_of(rule),
            initial=initial,
            most=most,
            checkpoints=self._checkpoints(),
            memory=MemoryLimits(self._environment),
            profile=None if told is None else Profile.from_json(told, most=timed),
        )

    def _first_plan(self, initial: int, most: int, passes: int) -> BatchPlan:
        plan, count = self._environment.plan, self._replicas.count
        if plan is not None and plan.exceeds(most, count):
            say(f"the batch size is {initial}: the script allows {most}, not {plan.total}")
            plan = None
        plan = plan or BatchPlan(0, initial, max(initial // passes // count, 1), passes - 1)
        self._ledger.set(plan_number=plan.number)
        return plan

    def _first_state(self, loader: Any, initial: int) -> State:
        first = self.is_first
        seed = self._replicas.from_first("seed", str(torch.initial_seed()) if first else None)
        position = position_of(loader, int(seed))
        size = position.size
        samples = size - size % initial if position.drop_last and size >= initial else size
        return State({}, position, NoiseScale(size), epoch_samples=samples)

    def _checkpoints(self) -> Checkpoints | None:
        folder = self._environment.checkpoint_directory
        if folder is None or self.is_profile:
            return None
        return Checkpoints(folder, self._environment.number)


def check_model(model: Any) -> None:
    """Raise TypeError for a model whose weights are spread over the replicas."""
    for module in model.modules():
        if _SHARDED & {each.__name__ for each in type(module).__mro__}:
            raise TypeError(
                f"model is sharded over the replicas ({type(module).__name__}), and maat.agent "
                "trains whole copies: give the model as it was before, or submit the job as "
                "rigid, without the agent."
            )
