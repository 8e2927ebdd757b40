"""Loops that average weights, or change them by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from loops.script import Rows, Script, add_row, loss_of

ROWS: Rows = {}
row = partial(add_row, ROWS)


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
