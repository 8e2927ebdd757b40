"""What a script's loop carries from batch to batch: stopped where it changes the training only."""

from __future__ import annotations

import linecache
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from loops import Script, loss_of

from maat.agent.script import ScriptError

pytestmark = pytest.mark.needs_torch

# Names that all of these have: see _run. `train` is the usual three calls, of a function.
TRAINS: dict[str, str] = {
    "logs by a number of batches": """
        running, correct, seen = 0.0, 0, 0
        for epoch in epochs:
            for i, (x, y) in enumerate(loader):
                model.train()
                optimiser.zero_grad()
                loss = loss_of(model, x, y)
                loss.backward()
                optimiser.step()
                running += loss.item()
                seen += len(x)
                correct += (model(x).sign() == y.sign()).sum().item()
                if (i + 1) % 2 == 0 or i == len(loader) - 1:
                    said.append(f"{epoch} {i} {running / seen:.3f} {correct / seen}")
                    running = 0.0
    """,
    "evaluates and saves the best by a number of batches": """
        def evaluate(model, data):
            model.eval()
            total = 0.0
            with torch.no_grad():
                for x, y in data:
                    total += loss_of(model, x[None], y[None]).item()
            model.train()
            return total / len(data)

        best, step, kept = 1e9, 0, None
        for epoch in epochs:
            for x, y in loader:
                train(x, y)
                step += 1
                if step % 2 == 0:
                    found = evaluate(model, some)
                    if found < best:
                        best, kept = found, copy.deepcopy(model.state_dict())
                    said.append((step, best))
    """,
    "keeps its numbers in objects": """
        class Meter:
            def __init__(self):
                self.total = self.count = 0

            def update(self, value, n=1):
                self.total += value * n
                self.count += n

            @property
            def mean(self):
                return self.total / max(self.count, 1)

        class Trainer:
            def __init__(self):
                self.global_step, self.meter, self.model = 0, Meter(), model
                self.history = {"loss": [], "n": 0}

            def train_step(self, x, y):
                optimiser.zero_grad()
                loss = self.loss(x, y)
                loss.backward()
                optimiser.step()
                return loss.detach()

            def loss(self, x, y):
                return loss_of(self.model, x, y)

            def run(self, loader):
                for x, y in loader:
                    loss = self.train_step(x, y)
                    self.global_step += 1
                    self.meter.update(loss.item(), len(x))
                    self.history["loss"].append(loss.item())
                    self.history["n"] += 1
                    if self.global_step % 2 == 0:
                        self.log()

            def log(self):
                said.append((self.global_step, self.meter.mean, self.history["loss"][-1]))

        trainer = Trainer()
        for epoch in epochs:
            trainer.run(loader)
    """,
    "accumulates over one batch": """
        args = types.SimpleNamespace(accumulation=1, warmup=0, log_every=2)
        for epoch in epochs:
            for i, batch in enumerate(loader):
                if args.warmup and i < args.warmup:
                    optimiser.param_groups[0]["lr"] = 0.1
                loss = loss_of(model, *batch) / args.accumulation
                loss.backward()
                if (i + 1) % args.accumulation == 0 or i + 1 == len(loader):
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimiser.step()
                    optimiser.zero_grad()
                if args.log_every and i % args.log_every == 0:
                    said.append(loss.item())
    """,
    "times its batches": """
        import time
        end = time.time()
        for epoch in epochs:
            for batch in loader:
                waited = time.time() - end
                train(*batch)
                with torch.profiler.record_function(f"step {len(said)}"):
                    said.append(waited)
                end = time.time()
    """,
    "keeps what a module has computed once": """
        class Cached(torch.nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner, self.mask, self.seen, self.table = inner, None, 0, {}

            def forward(self, x):
                if self.mask is None:
                    self.mask = torch.ones(1, x.shape[1])
                if x.shape[1] > self.seen:
                    self.seen = x.shape[1]
                if x.shape[1] not in self.table:
                    self.table[x.shape[1]] = torch.ones(x.shape[1])
                self.last = self.inner(x * self.mask * self.table[x.shape[1]])
                return self.last

        cached = Cached(model)
        for epoch in epochs:
            for x, y in loader:
                optimiser.zero_grad()
                loss_of(cached, x, y).backward()
                optimiser.step()
    """,
    "asks for batches by itself": """
        batches = iter(loader)
        for epoch in epochs:
            batches = iter(loader)
            while True:
                try:
                    x, y = next(batches)
                except StopIteration:
                    break
                train(x, y)
    """,
    "gets its batches from a generator": """
        def moved(loader):
            for count, (x, y) in enumerate(loader):
                said.append(count)
                yield x.float(), y.float()

        for epoch in epochs:
            for i, (x, y) in enumerate(moved(loader)):
                train(x, y)
                said.append(i)
    """,
    "makes a new batch of each": """
        for epoch in epochs:
            for batch in loader:
                batch = dict(zip("xy", batch))
                batch = {name: each.float() for name, each in batch.items()}
                batch["x"] = batch["x"] * 1.0
                losses = []
                for at in range(2):
                    losses.append(loss_of(model, batch["x"], batch["y"]))
                total = 0.0
                for at, each in enumerate(losses):
                    total = total + each * (at + 1)
                optimiser.zero_grad()
                total.backward()
                optimiser.step()
    """,
    "is built as the examples of torchvision": """
        import math, random, time

        class SmoothedValue:
            def __init__(self, window=3):
                self.deque, self.total, self.count = collections.deque(maxlen=window), 0.0, 0

            def update(self, value, n=1):
                self.deque.append(value)
                self.count += n
                self.total += value * n

            @property
            def median(self):
                return torch.tensor(list(self.deque)).median().item()

        class MetricLogger:
            def __init__(self):
                self.meters = collections.defaultdict(SmoothedValue)

            def update(self, **numbers):
                for name, value in numbers.items():
                    if isinstance(value, torch.Tensor):
                        value = value.item()
                    self.meters[name].update(value)

            def __getattr__(self, name):
                return self.__dict__["meters"][name]

            def log_every(self, iterable, every):
                i, end = 0, time.time()
                for each in iterable:
                    self.meters["data"].update(time.time() - end)
                    yield each
                    if i % every == 0:
                        said.append((i, self.meters["data"].median))
                    i += 1
                    end = time.time()

        def accuracy(output, target):
            with torch.inference_mode():
                return (output.sign() == target.sign()).float().mean()

        def train_one_epoch(model, criterion, optimiser, data_loader, epoch, logger):
            model.train()
            for i, (image, target) in enumerate(logger.log_every(data_loader, 2)):
                start = time.time()
                image, target = image.to("cpu"), target.to("cpu")
                output = model(image)
                loss = criterion(output, target)
                optimiser.zero_grad()
                loss.backward()
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                if not math.isfinite(loss.item()):
                    raise SystemExit(1)
                optimiser.step()
                logger.update(loss=loss.item(), lr=optimiser.param_groups[0]["lr"], norm=norm)
                logger.meters["accuracy"].update(accuracy(output, target).item(), n=len(image))
                logger.meters["pace"].update(len(image) / (time.time() - start))

        def main():
            logger = MetricLogger()
            for epoch in epochs:
                train_one_epoch(model, torch.nn.MSELoss(), optimiser, loader, epoch, logger)

        main()
    """,
    "trains in a class of steps, with a context and a schedule": """
        import contextlib, dataclasses, math

        @dataclasses.dataclass
        class State:
            step: int = 0
            loss: float = math.inf
            best: float = math.inf
            history: list = dataclasses.field(default_factory=list)

        @contextlib.contextmanager
        def timed(name):
            yield
            said.append(name)

        class Trainer:
            def __init__(self, model, optimiser):
                self.model, self.optimiser, self.state = model, optimiser, State()
                self.callbacks = [self.on_step]

            def on_step(self, state):
                if state.step % 3 == 0:
                    state.best = min(state.best, state.loss)
                    state.history.append(state.best)

            def forward_backward(self, batch):
                x, y = batch
                with timed("forward"), torch.autocast("cpu", enabled=False):
                    loss = loss_of(self.model, x, y)
                if loss.item() > 1e9:
                    return None
                loss.backward()
                return loss.detach()

            def fit(self, loader):
                iterator = iter(loader)
                while (batch := next(iterator, None)) is not None:
                    self.optimiser.zero_grad(set_to_none=True)
                    loss = self.forward_backward(batch)
                    if loss is not None:
                        self.optimiser.step()
                        self.state.loss = loss.item()
                    self.state.step += 1
                    for each in self.callbacks:
                        each(self.state)

        trainer = Trainer(model, optimiser)
        for epoch in epochs:
            trainer.fit(loader)
    """,
    "looks at weights and gradients": """
        before = None
        norms = collections.deque(maxlen=4)
        for epoch in epochs:
            for i, (x, y) in enumerate(loader):
                optimiser.zero_grad()
                loss_of(model, x, y).backward()
                norms.append(sum(p.grad.norm() ** 2 for p in model.parameters()) ** 0.5)
                rate = optimiser.param_groups[0]["lr"]
                optimiser.step()
                if i % 2 == 0:
                    said.append((rate, max(norms), [p.norm().item() for p in model.parameters()]))
                    for name, p in model.named_parameters():
                        said.append((name, p.grad.abs().mean().item()))
    """,
}

STOPPED: dict[str, tuple[str, str]] = {
    "a method's loss by a counter of its object": (
        "self.loss(x, y).backward()",
        """
        class Trainer:
            step = 0

            def loss(self, x, y):
                self.step += 1
                return loss_of(model, x, y) * min(1.0, self.step / 8)

            def run(self):
                for x, y in loader:
                    optimiser.zero_grad()
                    self.loss(x, y).backward()
                    optimiser.step()

        for epoch in epochs:
            Trainer().run()
    """,
    ),
    "a counter in a module": (
        ".backward()",
        """
        class Warm(torch.nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner
                self.register_buffer("count", torch.zeros(()))

            def forward(self, x):
                self.count += 1
                return self.inner(x) * torch.clamp(self.count / 8, max=1.0)

        warm = torch.nn.Sequential(Warm(model))
        for epoch in epochs:
            for x, y in loader:
                optimiser.zero_grad()
                loss_of(warm, x, y).backward()
                optimiser.step()
    """,
    ),
    "a counter of a function": (
        ".backward()",
        """
        count = itertools.count()
        for epoch in epochs:
            for x, y in loader:
                beta = min(1.0, next(count) / 8)
                optimiser.zero_grad()
                (beta * loss_of(model, x, y)).backward()
                optimiser.step()
    """,
    ),
    "a global name of a function": (
        ".backward()",
        """
        def beta():
            global counted
            counted += 1
            return min(1.0, counted / 8)

        for epoch in epochs:
            for x, y in loader:
                optimiser.zero_grad()
                (beta() * loss_of(model, x, y)).backward()
                optimiser.step()
    """,
    ),
    "a dictionary": (
        "sum().backward()",
        """
        state = {"n": 0}
        for epoch in epochs:
            for x, y in loader:
                state["n"] += 1
                optimiser.zero_grad()
                loss = loss_of(model, x, y)
                torch.stack([loss, loss * state["n"]]).sum().backward()
                optimiser.step()
    """,
    ),
    "what a generator of the script counts": (
        ".backward()",
        """
        def numbered(loader):
            n = 0
            for x, y in loader:
                n += 1
                yield n, x, y

        for epoch in epochs:
            for n, x, y in numbered(loader):
                optimiser.zero_grad()
                (n * loss_of(model, x, y)).backward()
                optimiser.step()
    """,
    ),
    "a range beside the loader": (
        ".backward()",
        """
        for epoch in epochs:
            for (x, y), n in zip(loader, range(100)):
                optimiser.zero_grad()
                (n * loss_of(model, x, y)).backward()
                optimiser.step()
    """,
    ),
    "another loader's batches": (
        ".backward()",
        """
        for epoch in epochs:
            other = iter(DataLoader(script.data, 5))
            for x, y in loader:
                more = next(other)
                optimiser.zero_grad()
                (loss_of(model, x, y) + loss_of(model, *more)).backward()
                optimiser.step()
    """,
    ),
    "a hidden state": (
        ".backward()",
        """
        hidden = torch.zeros(1)
        for epoch in epochs:
            for x, y in loader:
                out = model(x) + hidden
                hidden = out.detach().mean()
                optimiser.zero_grad()
                ((out - y) ** 2).mean().backward()
                optimiser.step()
    """,
    ),
    "the first batch": (
        "if first:",
        """
        first = True
        for epoch in epochs:
            for x, y in loader:
                if first:
                    model[0].bias.requires_grad_(False)
                    first = False
                optimiser.zero_grad()
                loss_of(model, x, y).backward()
                optimiser.step()
    """,
    ),
    "a mode by a number of batches": (
        "model.eval()",
        """
        for epoch in epochs:
            for i, (x, y) in enumerate(loader):
                if i > 2:
                    model.eval()
                train(x, y)
    """,
    ),
    "batches that are left out two at a time": (
        "if i // 2 == 1:",
        """
        for epoch in epochs:
            for i, (x, y) in enumerate(loader):
                if i // 2 == 1:
                    continue
                train(x, y)
    """,
    ),
    "an average that an object keeps": (
        "self.shadow[name]",
        """
        class Average:
            def __init__(self):
                self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

            def update(self):
                for name, p in model.named_parameters():
                    self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p.detach().cpu()

        average = Average()
        for epoch in epochs:
            for x, y in loader:
                train(x, y)
                average.update()
    """,
    ),
    "a number that decides over a call": (
        "if n % 4 == 0:",
        """
        def noise():
            for p in model.parameters():
                p.data.add_(0.1)

        n = 0
        for epoch in epochs:
            for x, y in loader:
                train(x, y)
                n += 1
                if n % 4 == 0:
                    noise()
    """,
    ),
    "a setting of a loss": (
        ".backward()",
        """
        class Loss(torch.nn.Module):
            scale = 1.0

            def forward(self, out, y):
                return self.scale * ((out - y) ** 2).mean()

        criterion = Loss()
        for epoch in epochs:
            for i, (x, y) in enumerate(loader):
                criterion.scale = i / 10
                optimiser.zero_grad()
                criterion(model(x), y).backward()
                optimiser.step()
    """,
    ),
}


def _run(text: str, passes: int | None, folder: Path) -> Any:
    """Run a script; return the weights."""
    script = Script(passes)
    head = """
import collections, copy, itertools, types
import torch
from torch.utils.data import DataLoader

model, optimiser, loader, epochs = script.begin()
some, said, counted = [script.data[i] for i in range(3)], [], 0

def train(x, y):
    optimiser.zero_grad()
    loss_of(model, x, y).backward()
    optimiser.step()

"""
    path = folder / "train.py"
    path.write_text(head + textwrap.dedent(text))
    linecache.checkcache(str(path))
    names = {"__name__": "__main__", "script": script, "loss_of": loss_of}
    exec(compile(path.read_text(), str(path), "exec"), names)  # noqa: S102
    return script.weights()


@pytest.mark.parametrize("words", TRAINS)
def test_a_loop_that_counts_batches_for_its_log_trains_as_in_one_pass(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain").mkdir()
    plain = _run(TRAINS[words], None, tmp_path / "plain")
    weights = _run(TRAINS[words], 2, tmp_path)
    assert torch.allclose(weights, plain, rtol=0.0, atol=1e-6)
    assert "was not read" not in capsys.readouterr().out


def test_a_script_without_a_source_is_told_once_what_is_not_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = Script(2)
    text = """
model, optimiser, loader, epochs = script.begin()
for epoch in epochs:
    for i, (x, y) in enumerate(loader):
        optimiser.zero_grad()
        (loss_of(model, x, y) * (i + 1)).backward()
        optimiser.step()
"""
    exec(compile(text, "nowhere/train.py", "exec"), {"script": script, "loss_of": loss_of})  # noqa: S102
    out = capsys.readouterr().out
    assert out.count("the loop of the script was not read") == 1
    assert "count steps by job.steps" in out


def test_in_one_pass_no_loop_is_read(tmp_path: Path) -> None:
    for _, text in STOPPED.values():
        plain = _run(text, None, tmp_path)
        assert torch.allclose(_run(text, 1, tmp_path), plain, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("words", STOPPED)
def test_a_loop_whose_training_depends_on_a_number_of_batches_is_stopped_at_its_line(
    words: str, tmp_path: Path
) -> None:
    line, text = STOPPED[words]
    with pytest.raises(ScriptError) as stopped:
        _run(text, 2, tmp_path)
    found = re.match(r"train\.py:\d+ `(.+?)`: ", str(stopped.value))
    assert found is not None
    assert line in found[1]
    assert "job.steps" in str(stopped.value) or "register_step_post_hook" in str(stopped.value)
