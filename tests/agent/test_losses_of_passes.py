"""Losses whose mean over passes is another loss: each is stopped, or told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from loops.script import Script

from maat.agent.script import ScriptError

pytestmark = pytest.mark.needs_torch

Loss = Callable[[Any, Any], Any]
NO_MEANS: dict[str, Loss] = {
    "norm": lambda out, y: torch.norm(out - y),
    "log1p": lambda out, y: ((out - y) ** 2).mean().log1p(),
    "max": lambda out, y: (out - y).abs().max(),
    "pow": lambda out, y: (out - y).abs().mean() ** 2,
    "a product": lambda out, y: (out - y).abs().mean() * (out - y).pow(2).mean(),
    "a quotient": lambda out, y: 1 - 2 * (out * y).sum() / ((out**2).sum() + (y**2).sum()),
}


def train(loss: Loss) -> None:
    model, optimiser, loader, epochs = Script(2).begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            loss(model(x), y).backward()
            optimiser.step()


@pytest.mark.parametrize("what", NO_MEANS)
def test_what_is_no_mean_over_samples_stops_the_loop(what: str) -> None:
    with pytest.raises(ScriptError, match=f"this loss takes {what} over the samples of a batch"):
        train(NO_MEANS[what])


def test_a_scalar_product_over_samples_is_a_sum() -> None:
    with pytest.raises(ScriptError, match="a sum over the samples of a batch"):
        train(lambda out, y: torch.dot((out - y).flatten(), (out - y).flatten()))


def test_a_mean_over_some_of_the_samples_is_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    train(lambda out, y: ((out - y) ** 2)[y > 0.5].mean())
    written = capfd.readouterr()
    assert (written.out + written.err).count("a mean over a number that differs") == 1
