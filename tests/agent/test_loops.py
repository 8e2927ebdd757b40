"""What a script's loop does in several passes a step: as in one pass, or it is stopped."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from loops import BATCH, ROWS, Script
from training_runs import Run

from maat.agent.script import ScriptError

pytestmark = pytest.mark.needs_torch

PAGE = Path(__file__).resolve().parents[2] / "docs/adaptive-script.md"
SAME = [words for words, (_, says) in ROWS.items() if says is None]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
STOPPED = [words for words, (_, says) in ROWS.items() if says is not None]


def _rows_of_page() -> dict[str, str]:
    """Return the rows of the page's table of loops."""
    table = PAGE.read_text().partition("| what the loop does |")[2].partition("\n\n")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines()[2:]]
    return {words.strip(): outcome.strip() for words, outcome in rows}


def test_the_pages_table_has_a_test_for_each_row_and_says_how_it_ends() -> None:
    found = _rows_of_page()
    assert list(found) == list(ROWS)
    for words, (_, says) in ROWS.items():
        assert found[words].startswith("as in one pass" if says is None else "stops"), words


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("words", SAME)
def test_a_loop_in_several_passes_comes_to_the_weights_of_one(words: str, device: str) -> None:
    loop, _ = ROWS[words]
    plain = Script(None, device=device)
    loop(plain)
    for passes in (1, 2, 4, 5):
        script = Script(passes, device=device)
        loop(script)
        assert torch.allclose(script.weights(), plain.weights(), rtol=0.0, atol=1e-6), passes


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("words", STOPPED)
@pytest.mark.parametrize("passes", [2, 3, 4])
def test_a_loop_that_passes_would_change_is_stopped_before_it_takes_a_step(
    words: str, passes: int, device: str
) -> None:
    loop, says = ROWS[words]
    script = Script(passes, device=device)
    with pytest.raises(ScriptError, match=re.escape(says or "")) as stopped:
        loop(script)
    its_file = Path(loop.__code__.co_filename).stem
    assert re.match(rf"({its_file}|script)\.py:\d+ `.+`: ", str(stopped.value))


@pytest.mark.parametrize("words", [each for each in STOPPED if "next(" in each or "break" in each])
def test_in_one_pass_a_loop_may_count_batches(words: str) -> None:
    plain, script = Script(None), Script(1)
    for each in (plain, script):
        ROWS[words][0](each)
    assert torch.allclose(script.weights(), plain.weights(), rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(
    "words",
    [each for each in SAME if "clip" in each]
    + [pytest.param(each, marks=pytest.mark.long) for each in SAME if "`model." in each],
)
def test_a_loop_on_two_replicas_in_several_passes_comes_to_the_weights_of_one(
    words: str, new_run: Callable[..., Run]
) -> None:
    plain = Script(None)
    ROWS[words][0](plain)
    run = new_run(script=Path(__file__).with_name("run_loop.py"), asked={"row": words})
    plan = {
        "number": 1,
        "total_batch_size": BATCH,
        "per_gpu_batch_size": BATCH // 4,
        "accumulation_steps": 1,
    }
    assert run.attempt(2, plan=plan) == {"0": 0, "1": 0}, run.logs()
    weights = torch.tensor(json.loads((run.folder / "out.jsonl").read_text()))
    assert torch.allclose(weights, plain.weights(), rtol=0.0, atol=1e-6)


PAST_THE_COPY = """
import maat.agent, torch
from torch.utils.data import DataLoader, TensorDataset

job = maat.agent.start()
model = torch.nn.Linear(1, 1)
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(80, 1)), 20)
_, optimiser, loader = job.adapt(model, optimiser, loader)
for _ in job.epochs(1):
    for (x,) in loader:
        optimiser.zero_grad()
        model(x).square().mean().backward()
        optimiser.step()
"""


def test_replicas_whose_gradients_are_not_averaged_are_stopped(
    tmp_path: Path, new_run: Callable[..., Run]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(PAST_THE_COPY)
    run = new_run(script=script)
    assert run.attempt(2) == {"0": 1, "1": 1}
    assert re.search(r"train\.py:\d+ `optimiser\.step\(\)`: .* call the model that", run.logs())


LEAVES = """
import maat.agent, torch
from torch.utils.data import DataLoader, TensorDataset

def train():
    for epoch in job.epochs(2):
        for index, (x,) in enumerate(loader):
            optimiser.zero_grad()
            model(x).square().mean().backward()
            optimiser.step()
            if index == 3:
                return

job = maat.agent.start()
model = torch.nn.Linear(1, 1)
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(80, 1)), 20)
model, optimiser, loader = job.adapt(model, optimiser, loader)
train()
print("trained")
"""


@pytest.mark.parametrize(("passes", "code"), [pytest.param(1, 0, marks=pytest.mark.long), (2, 1)])
def test_a_script_that_ends_after_a_number_of_batches_has_failed(
    tmp_path: Path, passes: int, code: int
) -> None:
    plan = {
        "number": 1,
        "total_batch_size": 20,
        "per_gpu_batch_size": 20 // passes,
        "accumulation_steps": passes - 1,
    }
    (tmp_path / "spec.json").write_text(json.dumps({"plan": plan}))
    (tmp_path / "train.py").write_text(LEAVES)
    done = subprocess.run(
        [sys.executable, tmp_path / "train.py"],
        env={**os.environ, "PYTHONPATH": str(PAGE.parents[1]), "MAAT_ATTEMPT_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "trained\n")
    found = re.search(r"train\.py:\d+ `return`: .* by job\.steps", done.stderr)
    assert (found is not None) == (code == 1), done.stderr


def test_a_model_with_batch_normalisation_is_told_what_passes_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = Script(2)
    script.model.insert(1, torch.nn.BatchNorm1d(8))
    loop, _ = ROWS["`model.zero_grad()`"]
    loop(script)
    assert capsys.readouterr().out.count("the model has batch normalisation") == 1


@pytest.mark.parametrize("kind", ["mask", "padding"])
def test_a_mean_over_a_part_of_the_samples_is_told_what_passes_change(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Script(2)
    model, optimiser, loader, epochs = script.begin()
    for _ in epochs:
        for x, y in loader:
            optimiser.zero_grad()
            if kind == "mask":
                mask = x[:, :1] > 0
                loss = ((model(x) - y) ** 2 * mask).sum() / mask.sum()
            else:
                labels = torch.where(x[:, 0] > 0, 0, -100)
                both = torch.cat([model(x), -model(x)], 1)
                loss = torch.nn.functional.cross_entropy(both, labels)
            loss.backward()
            optimiser.step()
    assert capsys.readouterr().out.count("the loss is a mean over a number that differs") == 1


def _by_nothing(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).sum()


def _by_a_share(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).sum() * 0.01


def _by_a_steps_samples(model: Any, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean() * len(x) / BATCH


@pytest.mark.parametrize("loss", [_by_nothing, _by_a_share, _by_a_steps_samples])
def test_a_sum_over_samples_is_stopped_whatever_it_is_divided_by(loss: Any) -> None:
    def train(script: Script) -> None:
        model, optimiser, loader, epochs = script.begin()
        for _ in epochs:
            for x, y in loader:
                optimiser.zero_grad()
                loss(model, x, y).backward()
                optimiser.step()

    with pytest.raises(ScriptError, match="give a mean over the samples of the batch"):
        train(Script(2))
    assert torch.autograd.backward.__module__ == "torch.autograd"
