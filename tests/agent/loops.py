"""Loops of training scripts, one for each row of the table in docs/adaptive-script.md.

Each is run without the agent, and with it in one pass and in several passes a step. As a script:
runs the one that ASKED names; rank 0 writes the weights into OUT.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import maat.agent
from maat.agent.environment import BatchPlan, Environment
from maat.agent.job import Job
from maat.agent.replicas import Replicas
from maat.agent.steps import Inbox

SIZE, BATCH, EPOCHS = 90, 20, 3
STEPS_IN_EPOCH = math.ceil(SIZE / BATCH)


class Script:
    """What a script has before its loop, and how it begins one."""

    def __init__(self, passes: int | None, job: Job | None = None, *, device: str = "cpu") -> None:
        """`passes`: of each step; None for a script without the agent, or with its job."""
        torch.manual_seed(0)
        self.device = device
        x = torch.randn(SIZE, 4)
        y = x @ torch.tensor([[1.0], [2.0], [-1.0], [0.5]]) + 0.5
        self.data = TensorDataset(x.to(device), y.to(device))
        self.model: Any = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        ).to(device)
        self.optimiser: Any = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.5)
        self.average: Any = None
        self._steps = 0
        self.job: Any = job
        if passes is not None:
            plan = BatchPlan(1, BATCH, -(-BATCH // passes), passes - 1)
            around = Environment(plan=plan)
            place = torch.device(device)
            self.job = Job(around, place, Replicas(around, place), Inbox())

    def loader(self, **options: Any) -> DataLoader[Any]:
        return DataLoader(self.data, **{"batch_size": BATCH, **options})

    def begin(
        self, scheduler: Any = None, loader: Any = None
    ) -> tuple[Any, Any, Any, Iterable[int]]:
        """Return model, optimiser, loader and epochs."""
        loader = self.loader() if loader is None else loader
        if self.job is None:
            self.optimiser.register_step_post_hook(self._count)
            return self.model, self.optimiser, loader, range(EPOCHS)
        adapted = self.job.adapt(
            self.model, self.optimiser, loader, scheduler, max_batch_size=4 * BATCH, rule="none"
        )
        return *adapted, self.job.epochs(EPOCHS)

    @property
    def steps(self) -> int:
        """Return the steps taken so far, as `job.steps`."""
        return self._steps if self.job is None else self.job.steps

    def _count(self, *_: Any) -> None:
        self._steps += 1

    def step_hook(self, optimiser: Any, call: Callable[[], object]) -> None:
        optimiser.register_step_post_hook(lambda *_: call())

    def weights(self) -> Any:
        parts = [self.model] if self.average is None else [self.model, self.average]
        return torch.cat([p.detach().flatten() for part in parts for p in part.parameters()])


def loss_of(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


Loop = Callable[[Script], None]
ROWS: dict[str, tuple[Loop, str | None]] = {}
"""By the words of the table: the loop, and what the agent says if it stops it."""


def row(words: str, says: str | None = None) -> Callable[[Loop], Loop]:
    def add(loop: Loop) -> Loop:
        ROWS[words] = (loop, says)
        return loop

    return add


def trains(script: Script, clear: Callable[[Any, Any], object], *, after: bool = False) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            if not after:
                clear(model, optimiser)
            loss_of(model, x, y).backward()
            optimiser.step()
            if after:
                clear(model, optimiser)


@row("`optimiser.zero_grad()` before the backward pass, or behind `optimiser.step()`")
def clears_by_the_optimiser(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for epoch in epochs:
        for x, y in loader:
            if epoch % 2:
                optimiser.zero_grad(set_to_none=False)
            loss_of(model, x, y).backward()
            optimiser.step()
            if not epoch % 2:
                optimiser.zero_grad()


@row("`model.zero_grad()`")
def clears_by_the_model(script: Script) -> None:
    trains(script, lambda model, _: model.zero_grad())


@row("`model.zero_grad()` between forward and backward pass")
def clears_late(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            loss = loss_of(model, x, y)
            model.zero_grad(set_to_none=False)
            loss.backward()
            optimiser.step()


@row("`p.grad = None`, `p.grad.zero_()`, `p.grad.data.zero_()`")
def clears_by_hand(script: Script) -> None:
    def clear(model: Any, _: Any) -> None:
        ways = [
            lambda p: setattr(p, "grad", None),
            lambda p: p.grad is None or p.grad.zero_(),
            lambda p: p.grad is None or p.grad.data.zero_(),
            lambda p: p.grad is None or (p.grad.detach_(), p.grad.zero_()),
        ]
        for parameter, way in zip(model.parameters(), ways, strict=True):
            way(parameter)

    trains(script, clear)


@row("gradients that are never cleared, and add up over steps")
def never_clears(script: Script) -> None:
    script.optimiser.param_groups[0]["lr"] = 0.002
    trains(script, lambda *_: None)


@row("`clip_grad_norm_`, `clip_grad_value_`, or `p.grad.clamp_()` by hand")
def clips(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for epoch in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            if epoch == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            elif epoch == 1:
                torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
            else:
                for parameter in model.parameters():
                    parameter.grad.data.clamp_(-0.03, 0.03)
            optimiser.step()


@row("clipping behind `scaler.unscale_(optimiser)`, with the scaler of `job.scaler()`")
def clips_scaled(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    scaler = torch.amp.GradScaler(script.device, init_scale=8.0, growth_interval=3)
    if script.job is not None:
        scaler = script.job.scaler(scaler)
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            with torch.autocast(script.device, enabled=False):
                loss = loss_of(model, x, y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimiser)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scaler.step(optimiser)
            scaler.update()


@row("a step that the scaler leaves out, and the scheduler's with it")
def overflows(script: Script) -> None:
    scheduler = lr_scheduler.ExponentialLR(script.optimiser, 0.9)
    model, optimiser, loader, epochs = script.begin(scheduler)
    scaler = torch.amp.GradScaler(script.device, init_scale=2.0**127, backoff_factor=2.0**-60)
    if script.job is not None:
        scaler = script.job.scaler(scaler)
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            scaler.scale(loss_of(model, x, y)).backward()
            scaler.step(optimiser)
            before = scaler.get_scale()
            scaler.update()
            if scaler.get_scale() >= before:
                scheduler.step()
    assert scheduler.last_epoch == EPOCHS * STEPS_IN_EPOCH - 1


@row("a `GradScaler` of the script's own", "take the one that job.scaler")
def scales_by_itself(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    scaler = torch.amp.GradScaler(script.device, init_scale=8.0)
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            scaler.scale(loss_of(model, x, y)).backward()
            scaler.step(optimiser)
            scaler.update()


@row(
    "a loss that is a sum over samples, also over a fixed number: `reduction='sum'`, `/ 20`",
    "give a mean over the samples of the batch",
)
def sums_losses(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            (torch.nn.functional.mse_loss(model(x), y, reduction="sum") / BATCH).backward()
            optimiser.step()


@row("a mean by hand: `loss.sum() / len(x)`; penalties on weights; sums of such losses")
def divides_by_samples(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            error = (model(x) - y) ** 2
            penalty = sum((each**2).sum() for each in model.parameters())
            both = torch.stack([error.sum() / len(x), 0.5 * error.sum() / error.numel()])
            (both.sum() + 0.001 * penalty + error.abs().mean(1).sum() * (1 / len(x))).backward()
            optimiser.step()


@row("several losses, several `backward()` for one batch")
def adds_losses(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            (0.1 * model(x).abs().mean()).backward()
            optimiser.step()


@row(
    "a gradient that is cleared or changed between two `backward()` of one batch",
    "call backward() once",
)
def projects(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            first = [parameter.grad.clone() for parameter in model.parameters()]
            optimiser.zero_grad()
            model(x).abs().mean().backward()
            for parameter, gradient in zip(model.parameters(), first, strict=True):
                parameter.grad.add_(gradient.sign())
            optimiser.step()


@row("a penalty by `torch.autograd.grad(..., create_graph=True)`, added to the loss")
def penalises(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            x = x.requires_grad_()
            loss = loss_of(model, x, y)
            (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
            torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
            optimiser.zero_grad()
            (loss + 0.1 * (slope**2).sum(1).mean()).backward()
            optimiser.step()


@row("gradients of `torch.autograd.grad` put into `p.grad`", "call loss.backward()")
def assigns(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            parameters = list(model.parameters())
            found = torch.autograd.grad(loss_of(model, x, y), parameters)
            for parameter, gradient in zip(parameters, found, strict=True):
                parameter.grad = gradient
            optimiser.step()


@row("a hook on a weight that reads its gradient, as trackers register")
def reads_by_hooks(script: Script) -> None:
    for each in script.model.parameters():
        each.register_hook(lambda gradient: None)
    trains(script, lambda _, optimiser: optimiser.zero_grad())


@row(
    "a hook on a weight that changes its gradient: `p.register_hook(clamp)`",
    "in optimiser.register_step_pre_hook",
)
def clips_by_hooks(script: Script) -> None:
    for each in script.model.parameters():
        each.register_hook(lambda gradient: gradient.clamp(-0.05, 0.05))
    trains(script, lambda _, optimiser: optimiser.zero_grad())


@row("`torch.utils.checkpoint`, reentrant or not")
def checkpoints(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for epoch in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            x.requires_grad_()
            for part in model:
                x = checkpoint(part, x, use_reentrant=epoch % 2 == 0)
            ((x - y) ** 2).mean().backward()
            optimiser.step()


@row("weights that some samples use alone, frozen weights, weights that are unfrozen later")
def unfreezes(script: Script) -> None:
    first, rare = script.model[0], torch.nn.Linear(4, 1)
    script.average = rare
    script.optimiser.add_param_group({"params": list(rare.parameters())})
    first.requires_grad_(False)
    model, optimiser, loader, epochs = script.begin()
    for epoch in epochs:
        first.requires_grad_(epoch > 0)
        for x, y in loader:
            optimiser.zero_grad()
            out, is_rare = model(x), x[:, 0] > 1.0
            if is_rare.any():
                out = out.masked_scatter(is_rare[:, None], out[is_rare] + rare(x[is_rare]))
            ((out - y) ** 2).mean().backward()
            optimiser.step()


@row("weights that are frozen, and unfrozen, after a number of steps, by `job.steps`")
def freezes_by_steps(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            script.model[0].requires_grad_(not 4 <= script.steps < 8)
            script.model[2].bias.requires_grad_(script.steps < 11)
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


@row("several groups of weights, and weights that are not the model's")
def has_groups(script: Script) -> None:
    offset = torch.nn.Parameter(torch.zeros(1, device=script.device))
    script.average = torch.nn.ParameterList([offset])
    model = script.model
    script.optimiser = torch.optim.AdamW(
        [
            {"params": model[0].parameters(), "lr": 0.02},
            {"params": model[2].parameters(), "lr": 0.01, "weight_decay": 0.1},
            {"params": [offset], "lr": 0.03},
        ]
    )
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            ((model(x) + offset - y) ** 2).mean().backward()
            optimiser.step()


@row("a second optimiser", "give one optimiser to adapt()")
def has_two_optimisers(script: Script) -> None:
    script.optimiser = torch.optim.SGD(script.model[0].parameters(), lr=0.05)
    second = torch.optim.Adam(script.model[2].parameters(), lr=0.05)
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            model.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            second.step()


@row(
    "`step()` of the optimiser that `adapt` was given", "call that of the one that adapt() returns"
)
def steps_past(script: Script) -> None:
    model, _, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            script.optimiser.zero_grad()
            loss_of(model, x, y).backward()
            script.optimiser.step()


@row("two `optimiser.step()` for one batch", "after optimiser.step() for the same batch")
def steps_twice(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            for _ in range(2):
                optimiser.zero_grad()
                loss_of(model, x, y).backward()
                optimiser.step()


@row("`optimiser.step(closure)`, as L-BFGS needs", "step() takes no closure here")
def has_a_closure(script: Script) -> None:
    script.optimiser = torch.optim.LBFGS(script.model.parameters(), lr=0.05, max_iter=2)
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:

            def closure(x: Any = x, y: Any = y) -> Any:
                optimiser.zero_grad()
                loss = loss_of(model, x, y)
                loss.backward()
                return loss

            optimiser.step(closure)


@row(
    "the script's own accumulation by `if (i + 1) % k == 0: optimiser.step()`",
    "the DataLoader the batch size of a whole step",
)
def accumulates(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for index, (x, y) in enumerate(loader):
            (loss_of(model, x, y) / 2).backward()
            if (index + 1) % 2 == 0:
                optimiser.step()
                optimiser.zero_grad()


@row(
    "the script's own accumulation by `if i % k == 0: optimiser.step()`",
    "the DataLoader the batch size of a whole step",
)
def accumulates_from_the_first(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for index, (x, y) in enumerate(loader):
            (loss_of(model, x, y) / 4).backward()
            if index % 4 == 0:
                optimiser.step()
                optimiser.zero_grad()


@row("a batch that is left out by its loss or its number", "Leave no batch out")
def leaves_out(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for index, (x, y) in enumerate(loader):
            if index == 1:
                continue
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


@row("a scheduler given to `adapt`, stepped for each batch")
def schedules_by_steps(script: Script) -> None:
    total = EPOCHS * STEPS_IN_EPOCH
    scheduler = lr_scheduler.OneCycleLR(script.optimiser, max_lr=0.06, total_steps=total)
    _schedules(script, scheduler)
    assert scheduler.last_epoch == total


def _schedules(script: Script, scheduler: Any, *, adapted: bool = True) -> None:
    model, optimiser, loader, epochs = script.begin(scheduler if adapted else None)
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            scheduler.step()


@row(
    "so with cosine, `LambdaLR`, `CyclicLR`, a warm-up by `SequentialLR`, Hugging Face's schedules"
)
def schedules_of_many_kinds(script: Script) -> None:
    made = script.optimiser
    total = EPOCHS * STEPS_IN_EPOCH

    def ramp(step: int) -> float:  # as transformers.get_linear_schedule_with_warmup
        return min(step / 4, max(0.0, (total - step) / (total - 4)))

    kinds: list[Callable[[Any], Any]] = [
        lambda of: lr_scheduler.CosineAnnealingLR(of, total),
        lambda of: lr_scheduler.CosineAnnealingWarmRestarts(of, 4),
        lambda of: lr_scheduler.StepLR(of, 4, 0.5),
        lambda of: lr_scheduler.LambdaLR(of, ramp),
        lambda of: lr_scheduler.CyclicLR(of, 0.01, 0.1, step_size_up=3),
        lambda of: lr_scheduler.SequentialLR(
            of,
            [lr_scheduler.LinearLR(of, 0.1, 1.0, 4), lr_scheduler.CosineAnnealingLR(of, total)],
            [4],
        ),
        lambda of: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(of, 0.5, 3), lr_scheduler.ExponentialLR(of, 0.9)]
        ),
    ]
    weights = []
    passes = None if script.job is None else script.job.environment.plan.passes
    for kind in kinds:
        each = Script(passes, device=script.device)
        _schedules(each, kind(each.optimiser))
        weights.append(each.weights())
    script.average = torch.nn.ParameterList([torch.nn.Parameter(torch.cat(weights))])
    assert made is script.optimiser


@row("a scheduler stepped for each epoch, with a value too (`ReduceLROnPlateau`)")
def schedules_by_epochs(script: Script) -> None:
    scheduler = lr_scheduler.StepLR(script.optimiser, 1, 0.7)
    plateau = lr_scheduler.ReduceLROnPlateau(
        script.optimiser, factor=0.5, patience=0, threshold=0.9
    )
    model, optimiser, loader, epochs = script.begin(scheduler)
    if script.job is not None:
        script.job.keep("plateau", plateau)
    for _ in epochs:
        losses = []
        for x, y in loader:
            optimiser.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item() * len(x))
        scheduler.step()
        plateau.step(sum(losses) / SIZE)


@row("a second scheduler, given to `job.keep`")
def keeps_a_scheduler(script: Script) -> None:
    total = EPOCHS * STEPS_IN_EPOCH
    warm = lr_scheduler.LinearLR(script.optimiser, 0.1, 1.0, 6)
    cosine = lr_scheduler.CosineAnnealingLR(script.optimiser, total)
    if script.job is not None:
        script.job.keep("warm", warm)
    model, optimiser, loader, epochs = script.begin(cosine)
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            warm.step()
            cosine.step()


@row(
    "a scheduler that the agent was not given, stepped for each batch",
    "make it before adapt(), and give it",
)
def hides_a_scheduler(script: Script) -> None:
    # Its rate stays the same for many steps: only its calls show it.
    _schedules(script, lr_scheduler.StepLR(script.optimiser, 1000), adapted=False)


@row("a scheduler stepped for some batches only", "count steps by job.steps")
def schedules_at_times(script: Script) -> None:
    scheduler = lr_scheduler.ExponentialLR(script.optimiser, 0.9)
    model, optimiser, loader, epochs = script.begin(scheduler)
    for _ in epochs:
        for index, (x, y) in enumerate(loader):
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            if index < 4:
                scheduler.step()


@row(
    "a scheduler stepped by a number for each batch: `step(epoch + i / n)`, `step(loss)`",
    "call step() without arguments",
)
def schedules_by_fractions(script: Script) -> None:
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(script.optimiser, 4)
    model, optimiser, loader, epochs = script.begin(scheduler)
    for epoch in epochs:
        for index, (x, y) in enumerate(loader):
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            scheduler.step(epoch + index / STEPS_IN_EPOCH)


@row(
    "`param_groups[0]['lr'] = ...` for each batch, by hand or by another library",
    "the loop has changed the optimiser's lr by itself",
)
def sets_rates(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for epoch in epochs:
        for index, (x, y) in enumerate(loader):
            for group in optimiser.param_groups:
                group["lr"] = 0.05 * (epoch * STEPS_IN_EPOCH + index + 1) / 20
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


@row("an average of weights in `optimiser.register_step_post_hook`")
def averages_in_a_hook(script: Script) -> None:
    script.average = AveragedModel(script.model, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    model, optimiser, loader, epochs = script.begin()
    script.step_hook(optimiser, lambda: script.average.update_parameters(script.model))
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


@row("an average of weights by epochs")
def averages_by_epochs(script: Script) -> None:
    script.average = AveragedModel(script.model)
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
        script.average.update_parameters(model)


def _averages(script: Script, update: Callable[[Any], object]) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            update(model)


@row("`AveragedModel.update_parameters` for each batch", "optimiser.register_step_post_hook")
def averages(script: Script) -> None:
    script.average = AveragedModel(script.model)
    _averages(script, script.average.update_parameters)


@row("an average of weights by hand for each batch, in place", "optimiser.register_step_post_hook")
def averages_by_hand(script: Script) -> None:
    script.average = copy.deepcopy(script.model)

    def update(model: Any) -> None:
        for one, other in zip(script.average.parameters(), model.parameters(), strict=True):
            one.data.mul_(0.9).add_(other.data, alpha=0.1)

    _averages(script, update)


@row(
    "an average of weights by hand for each batch, into new tensors",
    "optimiser.register_step_post_hook",
)
def averages_anew(script: Script) -> None:
    shadow = {name: each.clone() for name, each in script.model.state_dict().items()}

    def update(model: Any) -> None:
        for name, each in model.state_dict().items():
            shadow[name] = 0.9 * shadow[name] + 0.1 * each

    _averages(script, update)


@row(
    "an average of weights by hand for each batch, through numpy",
    "optimiser.register_step_post_hook",
)
def averages_by_numpy(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    mean = [each.detach().cpu().numpy().copy() for each in model.parameters()]
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            weights = [each.detach().cpu().numpy() for each in model.parameters()]
            mean = [0.9 * one + 0.1 * other for one, other in zip(mean, weights, strict=True)]


@row(
    "weights that are pulled back, or averaged, after each k-th batch, as in Lookahead",
    "optimiser.register_step_post_hook",
)
def looks_ahead(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    slow = [each.detach().clone() for each in model.parameters()]
    count = 0
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            count += 1
            if count % 4 == 0:
                with torch.no_grad():
                    for fast, each in zip(model.parameters(), slow, strict=True):
                        each.add_(fast - each, alpha=0.5)
                        fast.copy_(each)


@row(
    "weights that the loop changes by itself behind a step: decay, noise, clipping",
    "the loop changes weights",
)
def clips_weights(script: Script) -> None:
    def update(model: Any) -> None:
        for each in model.parameters():
            each.data.mul_(0.99)

    _averages(script, update)


@row(
    "weights that the loop changes by itself before the backward pass, by `p.data` too",
    "the loop has changed the model's weights by itself",
)
def decays_weights_first(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            for each in model.parameters():
                each.data.mul_(0.99)
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


@row(
    "a loss by `job.steps`: a weight that grows, another loss after a number of steps",
)
def weighs_by_steps(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss = loss_of(model, x, y) if script.steps < 6 else (model(x) - y).abs().mean()
            penalty = sum((each**2).sum() for each in model.parameters())
            (loss + min(1.0, script.steps / 8) * 0.1 * penalty).backward()
            optimiser.step()


@row(
    "a loss by a number of batches: a weight that grows, another loss later",
    "the loss, or what is done with it, depends on `index`",
)
def weighs_by_batches(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for index, (x, y) in enumerate(loader):
            optimiser.zero_grad()
            weight = min(1.0, index / 8)
            (loss_of(model, x, y) * weight).backward()
            optimiser.step()


@row(
    "a loss by what earlier batches have left: a running mean, a list's length, a hidden state",
    "the loss, or what is done with it, depends on `mean`",
)
def weighs_by_the_past(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    mean = 1.0
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss = loss_of(model, x, y)
            mean = 0.9 * mean + 0.1 * loss.item()
            (loss / mean).backward()
            optimiser.step()


@row("gradients by a number of batches, as in a warm-up by hand", "depends on `count`")
def warms_up_by_batches(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    count = 0
    for _ in epochs:
        for x, y in loader:
            count += 1
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            for each in model.parameters():
                each.grad.mul_(min(1.0, count / 6))
            optimiser.step()


@row(
    "weights that are frozen, or set back, after a number of batches; the optimiser's state, too",
    "`count`, which goes from batch to batch, decides what is trained",
)
def clears_state_by_batches(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    count = 0
    for _ in epochs:
        for x, y in loader:
            count += 1
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            if count == 5:
                optimiser.state.clear()


@row("batches of another loader beside this one's", "depends on `next(others)`")
def takes_other_batches(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        others = iter(DataLoader(script.data, 10))
        for x, y in loader:
            more = next(others)
            optimiser.zero_grad()
            (loss_of(model, x, y) + 0.1 * loss_of(model, *more)).backward()
            optimiser.step()


@row("numbers of batches for a log: running means, `if i % 100 == 0:` print, evaluate or save")
def counts_for_a_log(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    running, lines, best = 0.0, [], math.inf
    for _ in epochs:
        for index, (x, y) in enumerate(loader):
            optimiser.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            optimiser.step()
            running = 0.9 * running + 0.1 * loss.item()
            if index % 2 == 0:
                lines.append(f"{len(lines)} {running}")
                model.eval()
                with torch.no_grad():
                    best = min(best, loss_of(model, *script.data[:30]).item())
                model.train()


@row("`break` after a number of batches", "by job.steps: the steps taken so far")
def breaks(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for index, (x, y) in enumerate(loader):
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            if index + 1 == 4:
                break


@row("`next(iterator)` a number of times", "by job.steps: the steps taken so far")
def asks_for_batches(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        batches = iter(loader)
        for _ in range(STEPS_IN_EPOCH):
            x, y = next(batches)
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


@row("`break` after a number of steps, by `job.steps`")
def breaks_by_steps(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    steps = 0
    for epoch in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            steps = steps + 1 if script.job is None else script.job.steps
            if steps == 3 * (epoch + 1):
                break


@row("a second loop over the loader in one epoch", "all batches of this epoch were given already")
def loops_twice(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
        sum(loss_of(model, x, y).item() for x, y in loader)


@row("`len(loader)` before the loop, in steps, as a scheduler counts")
def counts_steps(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    total = EPOCHS * len(loader)
    scheduler = lr_scheduler.OneCycleLR(optimiser, max_lr=0.06, total_steps=total)
    if script.job is not None:
        script.job.keep("schedule", scheduler)
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            scheduler.step()


@row("`len(loader)` in and after the loop, in batches, as a mean of losses counts")
def counts_batches(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        given = 0
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()
            given += 1
        assert given == len(loader)


@row("losses and norms for a log: `loss.item()`, `p.norm()`, copies of weights")
def logs(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for index, (x, y) in enumerate(loader):
            optimiser.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            sum(float(each.grad.norm()) for each in model.parameters())
            optimiser.step()
            if index % 3 == 0:
                loss.item()
                sum(float(each.norm()) for each in model.parameters())
                copy.deepcopy(model.state_dict())
                model.eval()
                with torch.no_grad():
                    loss_of(model, *script.data[:30])
                model.train()


@row("`drop_last=True`")
def drops_the_last(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin(loader=script.loader(drop_last=True))
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


@row("a part of the data by `torch.utils.data.Subset`")
def takes_a_subset(script: Script) -> None:
    part = DataLoader(Subset(script.data, range(10, 60)), BATCH)
    model, optimiser, loader, epochs = script.begin(loader=part)
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(model, x, y).backward()
            optimiser.step()


NO_SAMPLER = "no sampler of your own"


def _samples(words: str, says: str, make: Callable[[Script], Any]) -> None:
    def loop(script: Script) -> None:
        script.begin(loader=make(script))

    ROWS[words] = (loop, says)


class _Own(RandomSampler):
    """Takes the first half alone."""

    def __iter__(self) -> Any:
        return iter(range(SIZE // 2))


class _OwnLoader(DataLoader[Any]):
    def __iter__(self) -> Any:
        yield from list(super().__iter__())[:2]


class _Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(SIZE))


def _by(sampler: Callable[[Any], Any]) -> Callable[[Script], Any]:
    return lambda script: script.loader(sampler=sampler(script.data))


_samples(
    "`RandomSampler(data, num_samples=n)`",
    "loader takes its samples by RandomSampler, 30 of 90",
    _by(lambda data: RandomSampler(data, num_samples=30)),
)
_samples(
    "`RandomSampler(data, replacement=True)`",
    "loader takes its samples by RandomSampler with a replacement",
    _by(lambda data: RandomSampler(data, replacement=True)),
)
_samples(
    "`WeightedRandomSampler`, `SubsetRandomSampler`",
    NO_SAMPLER,
    _by(lambda data: WeightedRandomSampler([1.0] * SIZE, SIZE)),
)
_samples("a subclass of a sampler", "loader takes its samples by _Own", _by(_Own))
_samples(
    "a sampler of other data than the loader's",
    "SequentialSampler, 10 of 90",
    _by(lambda data: SequentialSampler(range(10))),
)
_samples(
    "`batch_sampler=`",
    NO_SAMPLER,
    lambda script: DataLoader(
        script.data, batch_sampler=BatchSampler(SubsetRandomSampler(range(9)), 3, False)
    ),
)
_samples(
    "an `IterableDataset`",
    "loader reads an IterableDataset",
    lambda _: DataLoader(_Stream(), BATCH),
)
_samples(
    "a subclass of `DataLoader` that makes its batches by itself",
    "which makes its batches by itself",
    lambda script: _OwnLoader(script.data, BATCH),
)


def main() -> None:
    job = maat.agent.start()
    script = Script(None, job)
    ROWS[json.loads(os.environ["ASKED"])["row"]][0](script)
    if job.is_first:
        Path(os.environ["OUT"]).write_text(json.dumps(script.weights().tolist()))


if __name__ == "__main__":
    main()
