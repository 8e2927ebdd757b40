"""Small jobs in the loops of libraries, for tests: in this process, or as a script of an attempt.

As a script: trains what ASKED names, and lets rank 0 write the weights into OUT.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import maat.agent
from maat.agent.job import Job

SIZE, BATCH, EPOCHS = 96, 16, 3
torch.set_num_threads(1)


@dataclass
class Asked:
    """What a job is to do.

    Attributes:
        told: Called with the number of steps done, after each.
    """

    folder: Path
    told: Callable[[int], object] = lambda _: None
    epochs: int = EPOCHS
    adamw: bool = False
    max_batch_size: int = 4 * BATCH


class Net(torch.nn.Module):
    """Takes and gives what a Trainer of transformers expects."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)
        )

    def forward(self, inputs: Any, labels: Any) -> dict[str, Any]:
        logits = self.layers(inputs)
        return {"loss": cross_entropy(logits, labels), "logits": logits}


def data() -> TensorDataset:
    x = torch.randn(SIZE, 16, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, x[:, :4].argmax(1))


def optimiser_of(net: Net, asked: Asked) -> Any:
    kind = torch.optim.AdamW if asked.adamw else torch.optim.SGD
    return kind(net.parameters(), lr=0.01 if asked.adamw else 0.1)


def train_hf(job: Job, asked: Asked) -> Net:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    import maat.agent.hf

    class Told(TrainerCallback):
        def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            asked.told(state.global_step + 1)

    args = TrainingArguments(
        output_dir=str(asked.folder / "out"),
        num_train_epochs=asked.epochs,
        per_device_train_batch_size=BATCH,
        max_grad_norm=0.5,
        lr_scheduler_type="linear",
        logging_steps=2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=0,
    )
    net = Net()
    items = [{"inputs": x, "labels": y} for x, y in data()]
    optimiser = optimiser_of(net, asked)
    trainer = Trainer(net, args, train_dataset=items, optimizers=(optimiser, None))
    trainer.add_callback(Told())
    latest = maat.agent.hf.adapt(job, trainer, max_batch_size=asked.max_batch_size, rule="none")
    trainer.train(resume_from_checkpoint=latest)
    return net


def train_lightning(job: Job, asked: Asked) -> Net:
    import logging

    from lightning.pytorch import LightningModule, Trainer

    import maat.agent.lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch: Any, index: int) -> Any:
            asked.told(self.trainer.global_step)
            return self.net(*batch)["loss"]

        def configure_optimizers(self) -> Any:
            optimiser = optimiser_of(self.net, asked)
            schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, 6 * asked.epochs)
            return [optimiser], [{"scheduler": schedule, "interval": "step"}]

    adapt = maat.agent.lightning.Adapt(
        job,
        DataLoader(data(), BATCH, shuffle=True),
        max_batch_size=asked.max_batch_size,
        rule="none",
    )
    module = Module()
    trainer = Trainer(
        max_epochs=asked.epochs,
        gradient_clip_val=0.5,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(asked.folder),
        callbacks=[adapt],
        **adapt.placement(),
    )
    trainer.fit(module, adapt.loader, ckpt_path=adapt.latest())
    return module.net


def train_accelerate(job: Job, asked: Asked) -> Net:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    net = Net()
    optimiser = optimiser_of(net, asked)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.7)
    model, stepping = accelerator.prepare(net, optimiser)
    model, stepping, loader = job.adapt(
        model,
        stepping,
        DataLoader(data(), BATCH, shuffle=True),
        schedule,
        max_batch_size=asked.max_batch_size,
        rule="none",
    )

    def clip(*_: Any) -> None:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)

    stepping.register_step_pre_hook(clip)
    for _ in job.epochs(asked.epochs):
        for x, y in loader:
            stepping.zero_grad()
            accelerator.backward(model(x, y)["loss"])
            stepping.step()
            asked.told(job._training.state.step + 1)
        schedule.step()
    return net


TRAIN: dict[str, Callable[[Job, Asked], Net]] = {
    "transformers": train_hf,
    "lightning": train_lightning,
    "accelerate": train_accelerate,
}


def trained(library: str, job: Job, asked: Asked) -> Net:
    torch.manual_seed(0)  # the order of samples follows from it
    return TRAIN[library](job, asked)


def main() -> None:
    asked = json.loads(os.environ["ASKED"])
    job = maat.agent.start()
    is_last = job.environment.rank == job.environment.world_size - 1

    def told(step: int) -> None:
        if is_last and step == asked.get("stop_at"):
            os.kill(os.getpid(), signal.SIGTERM)

    net = trained(asked["library"], job, Asked(Path.cwd(), told))
    if job.is_first:
        weights = [each.tolist() for each in net.state_dict().values()]
        Path(os.environ["OUT"]).write_text(json.dumps(weights))


if __name__ == "__main__":
    main()
