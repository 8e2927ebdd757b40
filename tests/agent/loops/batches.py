"""Loops that count batches or steps: for weights of losses, for a log, for an end."""

from __future__ import annotations

import copy
import math
from functools import partial

import torch
from torch.optim import lr_scheduler
from torch.utils.data import (
    DataLoader,
)

from loops.script import EPOCHS, STEPS_IN_EPOCH, Rows, Script, add_row, loss_of

ROWS: Rows = {}
row = partial(add_row, ROWS)


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
