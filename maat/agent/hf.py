"""The agent in a Trainer of Hugging Face transformers (docs/adaptive-script.md).

job = maat.agent.start()
trainer = Trainer(model, TrainingArguments(...), train_dataset=...)
trainer.train(resume_from_checkpoint=maat.agent.hf.adapt(job, trainer, max_batch_size=512))
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, RandomSampler
from transformers import Trainer, TrainerCallback

from maat.agent.environment import BatchPlan
from maat.agent.following import Following, Paced
from maat.agent.job import Job, check_model
from maat.agent.rates import Rule

_LIBRARY = "transformers"
_KEPT = "trainer"


def adapt(
    job: Job,
    trainer: Trainer,
    *,
    max_batch_size: int | None = None,
    rule: str | Rule = "auto",
) -> str | None:
    """Have a Trainer run as an adaptive job; return what to resume from, None for the start.

    `per_device_train_batch_size` times `gradient_accumulation_steps` is the batch size of a step in
    all, over any number of replicas, and what the learning rate was chosen for. The job must have
    been started before the TrainingArguments were made.

    Args:
        max_batch_size: The largest batch size of a step that the script allows; None leaves it at
            the Trainer's.
        rule: How the learning rate follows the batch size (maat/agent/rates.py).

    Raises:
        TypeError: For a model that is sharded, and for data that cannot be shared out.
        ValueError: For a limit below the Trainer's batch size.
    """
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        raise TypeError(
            "The Trainer shards its model (FSDP or DeepSpeed): maat.agent trains whole copies. "
            "Leave fsdp and deepspeed out, or submit the job as rigid, without the agent."
        )
    check_model(trainer.model)
    args = trainer.args
    start = time.monotonic()
    following = job.follow(
        _loader_of(trainer),
        passes=args.gradient_accumulation_steps,
        max_batch_size=max_batch_size,
        rule=rule,
    )
    if args.max_steps <= 0:
        args.max_steps = math.ceil(args.num_train_epochs * following.steps_in_epoch)
    args.ignore_data_skip = True  # the loader goes on by itself
    trainer.get_train_dataloader = lambda: following.loader

    def follow_plan(plan: BatchPlan) -> None:
        args.gradient_accumulation_steps = plan.passes

    following.on_plan = follow_plan
    adapter = _Adapt(following, trainer)
    trainer.add_callback(adapter)
    trainer._save_checkpoint = adapter.saves(trainer._save_checkpoint)
    found = job.newest()
    if found is None:
        return None
    following.restore(found, library=_LIBRARY)
    job.say_restored(following.state, seconds=time.monotonic() - start)
    return str(found.folder / _KEPT)


class _Adapt(TrainerCallback):
    """Tells what follows the job of each step; keeps the Trainer's checkpoints."""

    def __init__(self, following: Following, trainer: Trainer) -> None:
        self._following, self._trainer = following, trainer
        self._is_stopping = self._is_asked = False
        self._kept_step = -1
        self._error: Exception | None = None

    def saves(self, save: Callable[..., None]) -> Callable[..., None]:
        """Return a Trainer's way to save that does not end the training if there is no room.

        on_save comes behind it, and says so.
        """

        def attempt(*arguments: Any, **named: Any) -> None:
            self._error = None
            try:
                save(*arguments, **named)
            except (OSError, RuntimeError, SafetensorError) as error:
                self._error = error

        return attempt

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        trainer, following = self._trainer, self._following
        following.begin(trainer.model_wrapped, trainer.optimizer, steps_meant=state.max_steps)
        if not isinstance(trainer.lr_scheduler, ReduceLROnPlateau):
            trainer.lr_scheduler = Paced(trainer.lr_scheduler, lambda: following.steps_due)
        control.should_training_stop = following.is_done

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._following.begin_step()

    def on_substep_end(self, *_: Any, **__: Any) -> None:
        self._following.end_pass()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._following.raise_rates()

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._following.after_step()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        following = self._following
        agreed = following.end_step()
        state.epoch = following.epochs_done
        if agreed.abandon:
            following.stop(None, library=_LIBRARY)
        is_done = following.is_done
        self._is_stopping = bool(agreed.stop) and not is_done
        self._is_asked = control.should_save
        if self._is_stopping:
            control.should_evaluate = False
        if following.has_ended_epoch or is_done or self._is_stopping:
            control.should_epoch_stop = control.should_save = True
        control.should_training_stop = control.should_training_stop or is_done or self._is_stopping

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        following = self._following
        following.pause()
        following.meet()  # each replica has written its random generators
        wrote, failed = Path(args.output_dir, f"checkpoint-{state.global_step}"), self._error

        def keep(folder: Path) -> None:
            if failed is not None:
                raise OSError(f"The Trainer could not save: {failed}") from failed
            shutil.copytree(wrote, folder / _KEPT)

        try:
            if self._is_stopping:
                following.stop(keep, library=_LIBRARY)
            if self._kept_step != state.global_step:
                self._kept_step = state.global_step
                following.save(keep, library=_LIBRARY)
        finally:
            # Only the agent wanted it, or it is no checkpoint.
            if following.is_first and (not self._is_asked or failed is not None):
                shutil.rmtree(wrote, ignore_errors=True)
            self._is_asked = True

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        self._following.pause()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if "loss" in (logs or {}):
            self._following.log(logs["loss"])

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._following.finish()


def _loader_of(trainer: Trainer) -> DataLoader[Any]:
    """Return the Trainer's loader as it is for one replica."""
    made = trainer.get_train_dataloader()
    batches = made.batch_sampler
    while hasattr(batches, "batch_sampler"):  # Accelerate shares batches out
        batches = batches.batch_sampler
    sampler = getattr(batches, "sampler", None)
    is_shuffled = isinstance(sampler, RandomSampler)
    return DataLoader(
        made.dataset,
        batch_size=trainer.args.per_device_train_batch_size,
        shuffle=is_shuffled,
        sampler=None if is_shuffled else sampler,
        drop_last=trainer.args.dataloader_drop_last,
        num_workers=made.num_workers,
        collate_fn=made.collate_fn,
        pin_memory=made.pin_memory,
        worker_init_fn=made.worker_init_fn,
        multiprocessing_context=made.multiprocessing_context,
        prefetch_factor=made.prefetch_factor,
    )
