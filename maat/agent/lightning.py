"""The agent in a Trainer of Lightning (docs/adaptive-script.md).

job = maat.agent.start()
adapt = maat.agent.lightning.Adapt(job, loader, max_batch_size=512)
trainer = Trainer(max_epochs=3, callbacks=[adapt], **adapt.placement())
trainer.fit(module, adapt.loader, ckpt_path=adapt.latest())
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback
from lightning.pytorch.plugins.environments import ClusterEnvironment

from maat.agent.environment import BatchPlan
from maat.agent.environment import Environment as Place
from maat.agent.following import Paced
from maat.agent.job import Job, check_model
from maat.agent.optimiser import torch_optimiser
from maat.agent.rates import Rule

_LIBRARY = "lightning"
_KEPT = "trainer.ckpt"
_PROGRESS = "epoch_loop.batch_progress"


class Environment(ClusterEnvironment):
    """Tells Lightning of the replicas that Maat has started, and that are joined already."""

    def __init__(self, place: Place) -> None:
        self._place = place

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        raise RuntimeError("The replicas are joined already.")

    @property
    def main_port(self) -> int:
        raise RuntimeError("The replicas are joined already.")

    @staticmethod
    def detect() -> bool:
        return False

    def world_size(self) -> int:
        return self._place.world_size

    def set_world_size(self, size: int) -> None:
        """Ignore what Lightning makes of devices and nodes: nodes may differ."""

    def global_rank(self) -> int:
        return self._place.rank

    def set_global_rank(self, rank: int) -> None:
        """Ignore what Lightning makes of node and local rank: nodes may differ."""

    def local_rank(self) -> int:
        return self._place.local_rank

    def node_rank(self) -> int:
        return self._place.rank // max(self._place.gpus_by_node.values())


class Adapt(Callback):
    """Has a Trainer run as an adaptive job: reports steps, follows batch plans, stops when told.

    Attributes:
        loader: What the Trainer is to read instead of the script's loader.
    """

    def __init__(
        self,
        job: Job,
        loader: Any,
        *,
        accumulate_grad_batches: int = 1,
        max_batch_size: int | None = None,
        rule: str | Rule = "auto",
    ) -> None:
        """Take over a loader, whose batches are those of all replicas together.

        Args:
            accumulate_grad_batches: Batches of the loader in a step. A step of so many is what the
                learning rate was chosen for.
            max_batch_size: The largest batch size of a step that the script allows; None leaves it
                at that.
            rule: How the learning rate follows the batch size (maat/agent/rates.py).
        """
        self._job = job
        self._previous_handler = signal.getsignal(signal.SIGTERM)
        self._following = job.follow(
            loader, passes=accumulate_grad_batches, max_batch_size=max_batch_size, rule=rule
        )
        self._following.on_plan = self._follow_plan
        self._passes = accumulate_grad_batches
        self._trainer: Any = None
        self._is_save_due = False
        self.loader = self._following.loader

    def placement(self) -> dict[str, Any]:
        """Return the Trainer's arguments that say where it computes, and with whom."""
        place = self._job.environment
        is_cuda, count = self._job.device.type == "cuda", place.world_size
        each = torch.cuda.device_count() if is_cuda else max(place.gpus_by_node.values())
        return {
            "accelerator": "gpu" if is_cuda else "cpu",
            "devices": each if count > 1 else [self._job.device.index] if is_cuda else 1,
            "num_nodes": len(place.gpus_by_node),
            "strategy": "ddp" if count > 1 else "auto",
            "plugins": [Environment(place)],
        }

    def latest(self) -> str | None:
        """Return the checkpoint to go on from; None for the start."""
        start = time.monotonic()
        found = self._job.newest()
        if found is None:
            return None
        self._following.restore(found, library=_LIBRARY)
        self._job.say_restored(self._following.state, seconds=time.monotonic() - start)
        return str(found.folder / _KEPT)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Raise ValueError or TypeError for a Trainer that cannot run as an adaptive job."""
        if stage != "fit":
            return
        if not pl_module.automatic_optimization:
            raise TypeError("The module steps by itself: automatic_optimization must be True.")
        if trainer.limit_train_batches != 1.0 or trainer.overfit_batches != 0:
            raise ValueError(
                "limit_train_batches and overfit_batches cut epochs short: leave them out, and "
                "give a smaller data set."
            )
        check_model(pl_module)
        self._trainer = trainer
        trainer.accumulate_grad_batches = self._passes

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Set the number of batches done in this epoch to 0: the rest may be of another size."""
        progress = checkpoint["loops"]["fit_loop"][_PROGRESS]["current"]
        begun = progress["ready"]
        progress.update({name: count - begun for name, count in progress.items()})

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self._hear_term()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._hear_term()
        following = self._following
        if len(trainer.optimizers) != 1:
            raise TypeError(
                f"The module has {len(trainer.optimizers)} optimisers: maat.agent knows one."
            )
        optimiser = trainer.optimizers[0]
        meant = [math.inf]
        if trainer.max_epochs is not None and trainer.max_epochs >= 0:
            meant.append(trainer.max_epochs * following.steps_in_epoch)
        if trainer.max_steps >= 0:
            meant.append(trainer.max_steps)
        following.begin(trainer.strategy.model, optimiser, steps_meant=min(meant))
        torch_optimiser(optimiser).register_step_post_hook(lambda *_: following.after_step())
        for each in trainer.strategy.lr_scheduler_configs:
            if each.interval == "step" and not each.reduce_on_plateau:
                each.scheduler = Paced(each.scheduler, lambda: following.steps_due)

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx % self._passes == 0:
            self._following.begin_step()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._following.raise_rates()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        following = self._following
        if (batch_idx + 1) % self._passes:
            following.end_pass()
            return
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None:
            following.log(loss.detach() * self._passes)
        agreed = following.end_step()
        if agreed.abandon:
            following.stop(None, library=_LIBRARY)
        if following.is_done:
            trainer.should_stop = True
        elif agreed.stop and not following.has_ended_epoch:  # or what ends an epoch is left out
            following.stop(self._written(trainer), library=_LIBRARY)
        elif self._is_save_due and not following.has_ended_epoch:
            self._save(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        # Lightning itself goes on best from the middle of an epoch: after the next one's first step
        self._is_save_due = True
        self._following.pause()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._following.pause()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._save(trainer)
        self._following.finish()

    def _follow_plan(self, plan: BatchPlan) -> None:
        self._passes = plan.passes
        if self._trainer is not None:
            self._trainer.accumulate_grad_batches = plan.passes

    def _hear_term(self) -> None:
        """Hear SIGTERM by the job's handler: Lightning's ends without a checkpoint."""
        signal.signal(signal.SIGTERM, self._previous_handler)

    def _save(self, trainer: Any) -> None:
        self._is_save_due = False
        self._following.pause()
        written = self._written(trainer)
        if written is not None:
            self._following.save(written, library=_LIBRARY)

    def _written(self, trainer: Any) -> Callable[[Path], object] | None:
        """Have Lightning write a checkpoint, which takes all replicas; None if there is no place.

        Returns what moves it into a folder.
        """
        around = self._following.checkpoint_folder
        if around is None:
            return None
        path = around / ".lightning.ckpt"
        try:
            trainer.save_checkpoint(path)
        except (OSError, RuntimeError) as error:
            failed = error
            path.unlink(missing_ok=True)
            trainer.strategy.barrier("Trainer.save_checkpoint")  # the others are there
        else:
            return lambda folder: path.replace(folder / _KEPT)

        def keep(_: Path) -> None:
            raise OSError(f"Lightning could not save: {failed}") from failed

        return keep
