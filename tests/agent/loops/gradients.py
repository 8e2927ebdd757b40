"""Loops that clear, clip, scale and read gradients, and that add losses up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.optim import lr_scheduler

from loops.script import BATCH, EPOCHS, STEPS_IN_EPOCH, Rows, Script, add_row, loss_of

ROWS: Rows = {}
row = partial(add_row, ROWS)


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


@row(
    "a loss that is no mean over samples: a root or a logarithm of one, a norm, a maximum, Dice",
    "this loss takes sqrt over the samples of a batch",
)
def takes_a_root(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            torch.sqrt(loss_of(model, x, y)).backward()
            optimiser.step()


@row(
    "norms and roots of each sample by itself; norms of weights; a mean times `exp(-s)` of a weight"
)
def takes_norms_of_each(script: Script) -> None:
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            error = model(x) - y
            own = sum((each.norm() for each in error), torch.zeros(())) / len(x)
            first, bias = model[0].weight, model[0].bias
            penalty = torch.sqrt((first**2).sum()) + (first.T @ first - torch.eye(4)).norm()
            learnt = (error**2).mean() * torch.exp(-bias[0]) + bias[0]
            loss = learnt + own + (error**2 + 1).sqrt().mean() + 0.01 * penalty
            loss.backward()
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
