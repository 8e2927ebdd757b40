"""The job as a training script sees it."""

from __future__ import annotations

import atexit
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from maat.agent.checkpoint import Checkpoints, check_plain
from maat.agent.data import check_loader, position_of
from maat.agent.environment import BatchPlan, Environment
from maat.agent.ledger import Ledger
from maat.agent.noise import NoiseScale
from maat.agent.profile import Profile
from maat.agent.rates import Rule, rule_of
from maat.agent.replicas import Replicas
from maat.agent.report import Reporter
from maat.agent.state import State
from maat.agent.training import Inbox, Parts, Training


class AdaptiveLoader:
    """Stands for the script's loader: gives this replica's batches, by the batch plan."""

    def __init__(self, training: Training, loader: Any) -> None:
        self._training, self.dataset = training, loader.dataset

    def __iter__(self) -> Iterator[Any]:
        return self._training.batches()

    def __len__(self) -> int:
        return self._training.steps_in_epoch


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
        self._reporter: Reporter | None = None

    @property
    def is_profile(self) -> bool:
        """Return whether this only measures step times: nothing of it is kept, and it ends soon.

        A script need not look at it, but may leave out what it would write beside checkpoints.
        """
        return self._environment.profile is not None

    @classmethod
    def started(cls) -> Job:
        """Join the other replicas. Raises ValueError for an environment that cannot be."""
        environment, inbox = Environment.read(), Inbox()

        def told(*_: object) -> None:
            inbox.stop = True

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, told)
            # Python drops handlers before it ends, and ranks that end are told to once more.
            atexit.register(signal.signal, signal.SIGTERM, signal.SIG_IGN)
        device = torch.device("cpu")
        if torch.cuda.is_available():
            device = torch.device("cuda", environment.local_rank)
            torch.cuda.set_device(device)
        return cls(environment, device, Replicas(environment, device), inbox)

    @property
    def is_first(self) -> bool:
        """Return whether this is the one replica that prints, and writes what is written once."""
        return self._replicas.is_first

    def adapt(
        self,
        model: Any,
        optimiser: Any,
        loader: Any,
        scheduler: Any = None,
        max_batch_size: int | None = None,
        rule: str | Rule = "adascale",
    ) -> tuple[Any, Any, Any]:
        """Return model, optimiser and loader for any number of replicas; go on from a checkpoint.

        The loader's batch size is that of a step in all, and what the learning rate was chosen for.

        Args:
            scheduler: Of the learning rate, made for `optimiser`: it is saved with the job.
            max_batch_size: The largest batch size of a step that the script allows; None leaves it
                at the loader's.
            rule: How the learning rate follows the batch size: adascale, sqrt, linear, legw, none,
                or a function of a Batch (maat/agent/rates.py).
        """
        if self._training is not None:
            raise RuntimeError("adapt() was called already: a job trains one model.")
        check_loader(loader)
        chosen, initial = rule_of(rule), loader.batch_size
        if max_batch_size is not None and max_batch_size < initial:
            raise ValueError(
                f"max_batch_size is {max_batch_size}: it must be at least the loader's batch size, "
                f"{initial}."
            )
        most = max_batch_size or initial
        told = self._environment.profile
        timed = min(most, max(len(loader.dataset) // 2, 1))  # two steps in a row, and one is timed
        profile = None if told is None else Profile.from_json(told, most=timed)
        state = self._restored(model, optimiser, loader, scheduler)
        training = Training(
            Parts(
                model=self._replicated(model),
                optimiser=optimiser,
                loader=loader,
                state=state,
                plan=self._first_plan(initial, most) if profile is None else profile.plan,
                rule=chosen,
                most=most,
                checkpoints=self._checkpoints(),
                profile=profile,
            ),
            self._replicas,
            self._ledger,
            self._inbox,
        )
        for name, part in self._kept.items():
            state.keep(name, part)
        self._training = training
        if self.is_first and self._environment.attempt_directory is not None:
            self._reporter = Reporter(self._ledger, self._inbox.hear)
            self._reporter.start()
        atexit.register(self._end)
        return training.model, training.optimiser, AdaptiveLoader(training, loader)

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the numbers of the epochs that are left of `count`."""
        if self._training is None:
            raise RuntimeError("epochs() needs adapt() to be called before it.")
        return self._training.epochs(count)

    def keep(self, name: str, part: Any) -> None:
        """Save a part with the job, and give it back: what has state_dict and load_state_dict."""
        if self._training is not None:
            self._training.state.keep(name, part)
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

    def _end(self) -> None:
        if self._reporter is not None:
            self._reporter.end()
        if self._training is not None and self._training.is_finished:
            self._replicas.close()

    def _replicated(self, model: Any) -> Any:
        if self._replicas.count == 1:
            return model
        devices = [self.device] if self.device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=devices)

    def _first_plan(self, initial: int, most: int) -> BatchPlan:
        plan, count = self._environment.plan, self._replicas.count
        if plan is not None and plan.exceeds(most, count):
            print(f"maat: the batch size is {initial}: the script allows {most}, not {plan.total}")
            plan = None
        plan = plan or BatchPlan(0, initial, max(initial // count, 1), 0)
        self._ledger.set(plan_number=plan.number)
        return plan

    def _checkpoints(self) -> Checkpoints | None:
        folder = self._environment.checkpoint_directory
        return (
            None
            if folder is None or self.is_profile
            else Checkpoints(folder, self._environment.number)
        )

    def _restored(self, model: Any, optimiser: Any, loader: Any, scheduler: Any) -> State:
        """Return the state of the newest checkpoint, which rank 0 chooses for all."""
        first, replicas = self.is_first, self._replicas
        seed = replicas.from_first("seed", str(torch.initial_seed()) if first else None)
        position = position_of(loader, int(seed))
        size, initial = position.size, loader.batch_size
        state = State(
            {},
            position,
            NoiseScale(size),
            epoch_samples=size - size % initial if position.drop_last else size,
        )
        parts = {"model": model, "optimiser": optimiser, "scheduler": scheduler}
        for name, part in parts.items():
            if part is not None:
                check_plain(part.state_dict(), name)
                state.parts[name] = part
        checkpoints = self._checkpoints()
        if checkpoints is None:
            return state
        start = time.monotonic()
        found = checkpoints.newest() if first else None
        name = replicas.from_first("checkpoint", (found.name if found else "") if first else None)
        if name and found is None:
            found = checkpoints.read(name)
        if found is not None:
            state.restore(found, rank=replicas.rank)
            self._ledger.set(
                restore_seconds=time.monotonic() - start,
                checkpoint={"step": state.step},
            )
        return state
