"""Loops over parts of the weights, and loops that step often, seldom or with several optimisers."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from loops.script import Rows, Script, add_row, loss_of

ROWS: Rows = {}
row = partial(add_row, ROWS)


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
