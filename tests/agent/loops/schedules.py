"""Loops that set the learning rate: by a scheduler, by several, by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.optim import lr_scheduler

from loops.script import EPOCHS, SIZE, STEPS_IN_EPOCH, Rows, Script, add_row, loss_of

ROWS: Rows = {}
row = partial(add_row, ROWS)


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
