"""One replica in this process: shares of data, batch plans, learning rates, what is kept."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler

from maat.agent import timing
from maat.agent.data import Position, Shares
from maat.agent.environment import BatchPlan, Environment
from maat.agent.job import Job
from maat.agent.rates import Batch, Legw, rule_of
from maat.agent.replicas import Replicas
from maat.agent.steps import Inbox
from maat.agent.timing import MOST_EVERY, Budget, Times

pytestmark = pytest.mark.needs_torch

ROOT = Path(__file__).resolve().parents[2]


def _job(inbox: Inbox | None = None, **fields: Any) -> Job:
    around, device = Environment(**fields), torch.device("cpu")
    return Job(around, device, Replicas(around, device), inbox or Inbox())


def _task(size: int = 64, batch: int = 8, lr: float = 0.1) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    x = torch.randn(size, 4)
    model = torch.nn.Linear(4, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    return model, optimiser, DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch)


def _train(job: Job, task: tuple[Any, Any, Any], epochs: int = 1, **options: Any) -> list[int]:
    """Train; return the size of each batch."""
    model, optimiser, loader = job.adapt(*task, **options)
    sizes = []
    for _ in job.epochs(epochs):
        for x, y in loader:
            optimiser.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimiser.step()
            sizes.append(len(x))
    return sizes


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("accumulation", [0, 1])
def test_replicas_share_each_sample_of_a_pass_once(replicas: int, accumulation: int) -> None:
    position = Position(size=60, shuffle=True, drop_last=False, seed=5, at=12)
    plan = BatchPlan(1, 12, 12 // replicas // (accumulation + 1), accumulation)
    found = [
        sample
        for rank in range(replicas)
        for batch in Shares(position, plan, rank=rank, replicas=replicas)
        for sample in batch
    ]
    assert sorted(found) == sorted(position.order()[12:])


def test_the_rest_of_a_pass_is_filled_up_to_equal_shares() -> None:
    position = Position(size=10, shuffle=False, drop_last=False, seed=0)
    plan = BatchPlan(0, 8, 4, 0)
    shares = [list(Shares(position, plan, rank=rank, replicas=2)) for rank in (0, 1)]
    assert shares == [[[0, 1, 2, 3], [8]], [[4, 5, 6, 7], [9]]]
    odd = replace(position, size=9)
    assert list(Shares(odd, plan, rank=1, replicas=2))[-1] == [0]


def test_a_split_into_passes_changes_no_weight() -> None:
    whole, split = _task(), _task()
    assert _train(_job(), whole, rule="none") == [8] * 8
    assert _train(_job(plan=BatchPlan(1, 8, 2, 3)), split, rule="none") == [2] * 32
    for one, other in zip(whole[0].parameters(), split[0].parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_an_epoch_is_over_when_effective_samples_are_as_many_as_the_data() -> None:
    # Nothing is known of the noise: 32 samples teach as much as 8, so that an epoch has 8 steps.
    job = _job(plan=BatchPlan(1, 32, 32, 0))
    assert _train(job, _task(), epochs=2, max_batch_size=32) == [32] * 16
    state = job._training.state
    assert (state.step, state.effective_samples) == (16, 128)
    assert (state.position.pass_number, state.position.at) == (8, 0)


def test_a_plan_above_the_scripts_limit_is_not_followed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    inbox = Inbox(plan=BatchPlan(3, 64, 64, 0))
    assert set(_train(_job(inbox), _task(), max_batch_size=32)) == {8}
    assert "plan 3 is not followed: its batch size is 64" in capsys.readouterr().out
    assert set(_train(_job(plan=BatchPlan(1, 64, 64, 0)), _task(), max_batch_size=32)) == {8}
    assert "the script allows 32, not 64" in capsys.readouterr().out


def test_equal_shares_are_rounded_down_where_they_would_exceed_the_limit() -> None:
    assert BatchPlan(1, 102, 34, 0).exceeds(100, 3)
    assert not BatchPlan(1, 99, 33, 0).exceeds(100, 3)
    assert not BatchPlan(1, 255, 85, 0).in_passes(2).exceeds(256, 3)


def test_a_loss_is_one_number() -> None:
    with pytest.raises(ValueError, match="loss has 2 numbers: give one"):
        _job().log(loss=torch.zeros(2))


def test_the_rate_follows_the_rule_and_the_scheduler_sees_only_its_own() -> None:
    model, optimiser, loader = _task()
    rates: list[float] = []
    optimiser.register_step_pre_hook(lambda *_: rates.append(optimiser.param_groups[0]["lr"]))
    job = _job(plan=BatchPlan(1, 16, 16, 0))
    _train(job, (model, optimiser, loader), rule="linear", max_batch_size=16)
    assert set(rates) == {0.2}
    assert optimiser.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize(
    ("rule", "factor"),
    [
        ("none", 1.0),
        ("linear", 4.0),
        ("sqrt", 2.0),
        ("adascale", 3.0),
        ("legw", 1.0),
        ("auto", 3.0),
    ],
)
def test_rules(rule: str, factor: float) -> None:
    batch = Batch(scale=4.0, gain=3.0, epochs=2.0, adaptive=False)
    assert rule_of(rule)(batch) == factor
    assert rule_of("adascale")(batch._replace(gain=9.0, adaptive=True)) == 3.0
    assert Legw(0.0)(batch) == Legw(0.5)(batch) == 2.0


@pytest.mark.parametrize(
    ("kind", "rule", "factor"),
    [
        (torch.optim.AdamW, {}, 2.0),
        (torch.optim.NAdam, {}, 2.0),
        (torch.optim.SGD, {}, 1.0),
        (torch.optim.AdamW, {"rule": "adascale"}, 1.0),
        (torch.optim.AdamW, {"rule": "linear"}, 4.0),
    ],
)
def test_adam_takes_the_square_root_of_the_batch_size_and_sgd_the_gain(
    kind: Any, rule: dict[str, str], factor: float
) -> None:
    model, _, loader = _task()
    optimiser = kind(model.parameters(), lr=0.25)
    rates: list[float] = []
    optimiser.register_step_pre_hook(lambda *_: rates.append(optimiser.param_groups[0]["lr"]))
    # Nothing is known of the noise: the gain is 1.
    job = _job(plan=BatchPlan(1, 32, 32, 0))
    _train(job, (model, optimiser, loader), max_batch_size=32, **rule)
    assert set(rates) == {0.25 * factor}


def test_a_rule_of_ones_own_and_an_unknown_one() -> None:
    assert rule_of(lambda batch: batch.scale / 2)(Batch(4.0, 1.0, 0.0, False)) == 2.0
    with pytest.raises(ValueError, match=r"rule is 'cubic': give one of auto, none, linear, sqrt"):
        rule_of("cubic")


class _Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


@pytest.mark.parametrize(
    ("loader", "says"),
    [
        (DataLoader(_Stream(), 2), "IterableDataset"),
        (DataLoader([1, 2], sampler=WeightedRandomSampler([1, 1], 2)), "sampler of your own"),
        ([1, 2], "give a torch DataLoader"),
    ],
)
def test_a_loader_that_cannot_be_shared_out_is_refused(loader: Any, says: str) -> None:
    model, optimiser, _ = _task()
    with pytest.raises(TypeError, match=says):
        _job().adapt(model, optimiser, loader)


def test_a_limit_below_the_loaders_batch_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"max_batch_size is 4: it must be at least .* 8\."):
        _job().adapt(*_task(), max_batch_size=4)


class _Counter:
    def __init__(self) -> None:
        self.value = 0

    def state_dict(self) -> dict[str, int]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.value = state["value"]


@pytest.mark.parametrize("keeps_first", [True, False])
def test_what_is_kept_comes_back_with_the_scheduler_and_the_moments(
    tmp_path: Path, keeps_first: bool
) -> None:
    def started() -> tuple[Job, _Counter, Any, Any]:
        job, counter = _job(checkpoint_directory=tmp_path), _Counter()
        model, _, loader = _task()
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
        scheduler = torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.5)
        if keeps_first:
            job.keep("counter", counter)
        job.adapt(model, optimiser, loader, scheduler)
        if not keeps_first:
            job.keep("counter", counter)
        return job, counter, optimiser, scheduler

    job, counter, optimiser, scheduler = started()
    for _ in job.epochs(2):
        for _ in job._training.batches():
            optimiser.step()
        scheduler.step()
        counter.value += 21
    _, again, restored, schedule = started()
    assert again.value == 42
    assert schedule.last_epoch == 2
    assert restored.param_groups[0]["lr"] == 0.0025


def test_environment_that_cannot_be_names_its_variable() -> None:
    with pytest.raises(ValueError, match=r"WORLD_SIZE is 2, and there is no MAAT_ATTEMPT_DIR"):
        Environment.read({"WORLD_SIZE": "2"})
    with pytest.raises(ValueError, match=r"WORLD_SIZE is 'two': it must be a whole number"):
        Environment.read({"WORLD_SIZE": "two"})
    assert Environment.read({}) == Environment()


def test_measuring_is_as_rare_as_its_cost_asks() -> None:
    budget = Budget()
    assert budget.every == 1
    for _ in range(5):
        budget.add_step(0.05)
        budget.add_cost(0.01)
    assert budget.every == 40, "soon enough for the first ten"
    for _ in range(5):
        budget.add_cost(0.01)
    assert budget.every == 80, "10 ms in four seconds"
    for _ in range(500):
        budget.add_cost(10.0)
    assert budget.every == MOST_EVERY
    for _ in range(1000):
        budget.add_cost(0.0)
    assert budget.every == 1


def test_times_of_steps_have_their_mean_and_squares() -> None:
    times = Times()
    for seconds in (1.0, 2.0, 6.0):
        times.add(seconds)
    assert (times.steps, times.mean, times.m2) == (3, 3.0, 14.0)


@pytest.mark.parametrize("epochs", [1, 2])
def test_an_attempt_below_the_fence_ends_and_saves_nothing(tmp_path: Path, epochs: int) -> None:
    (tmp_path / "fence").write_text("4")
    with pytest.raises(SystemExit) as ended:
        _train(_job(number=3, checkpoint_directory=tmp_path), _task(), epochs)
    assert ended.value.code == 143
    assert [each.name for each in tmp_path.iterdir()] == ["fence"]


def test_a_stale_attempt_ends_and_saves_nothing_though_it_is_told_to_stop(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        _train(_job(Inbox(stop=True, is_stale=True), checkpoint_directory=tmp_path), _task())
    assert ended.value.code == 143
    assert not list(tmp_path.iterdir())


def test_a_stop_without_room_for_a_checkpoint_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").touch()
    with pytest.raises(SystemExit) as ended:
        _train(_job(Inbox(stop=True), checkpoint_directory=tmp_path / "full"), _task())
    assert ended.value.code == 74
    assert "no checkpoint was written" in capsys.readouterr().out


def test_training_outlives_a_log_and_checkpoints_whose_disk_is_full(tmp_path: Path) -> None:
    (tmp_path / "full").touch()
    script = Path(__file__).parent / "examples" / "adaptive.py"
    quiet = f"runpy.run_path({str(script)!r}, {{'print': id}}, '__main__')"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", f"import runpy; {quiet}"],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "MAAT_CHECKPOINT_DIR": str(tmp_path / "full"),
            },
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_the_agent_says_comes_after_what_the_script_has_printed(tmp_path: Path) -> None:
    code = "from maat.agent.words import say; print('before'); say('\\udcff said'); print('after')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "before\nmaat: ? said\nafter\n"


def test_a_script_by_hand_stops_and_saves_when_told(tmp_path: Path) -> None:
    inbox = Inbox(stop=True)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        _train(_job(inbox, checkpoint_directory=tmp_path), _task())
    assert ended.value.code == 143
    assert (tmp_path / "step-000000000" / "DONE").exists()
    assert signal.getsignal(signal.SIGTERM) == before


def _scaled(job: Job, task: tuple[Any, Any, Any], *, spoilt: int | None = None) -> list[float]:
    """Train with a gradient scaler; return its scale after each pass. `spoilt`: of the samples."""
    if spoilt is not None:
        task[2].dataset.tensors[1][spoilt] = math.inf
    model, optimiser, loader = job.adapt(*task, rule="none")
    scaler = job.scaler(torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3))
    scales = []
    for _ in job.epochs(1):
        for x, y in loader:
            optimiser.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimiser)
            scaler.step(optimiser)
            scaler.update()
            scales.append(scaler.get_scale())
    return scales


def test_a_gradient_scaler_keeps_its_scale_inside_a_step_and_changes_no_weight() -> None:
    whole, split = _task(), _task()
    _train(_job(), whole, rule="none")
    job = _job(plan=BatchPlan(1, 8, 2, 3))
    scales = _scaled(job, split)
    assert [scales[i : i + 4] for i in (8, 20)] == [[8, 8, 8, 16], [16, 16, 16, 32]]
    for one, other in zip(whole[0].parameters(), split[0].parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    assert "scaler" in job._training.state.parts


def test_a_gradient_that_is_not_finite_in_one_pass_leaves_the_step_out() -> None:
    task = _task()
    scales = _scaled(_job(plan=BatchPlan(1, 8, 2, 3)), task, spoilt=2)
    assert scales[:5] == [8, 8, 8, 4, 4]
    assert all(each.isfinite().all() for each in task[0].parameters())


@pytest.mark.parametrize("plan", [None, BatchPlan(1, 8, 2, 3)])
def test_the_noise_is_the_same_with_a_gradient_scaler(
    monkeypatch: pytest.MonkeyPatch, plan: BatchPlan | None
) -> None:
    monkeypatch.setattr(timing, "MOST_EVERY", 1)
    bare, scaled = _job(plan=plan), _job(plan=plan)
    _train(bare, _task(), rule="none")
    _scaled(scaled, _task())
    one, other = (each._training.state.noise for each in (bare, scaled))
    # A pair of gradients at two scales is not compared.
    assert other.count == pytest.approx(one.count, abs=3)
    assert other.trace == pytest.approx(one.trace, rel=0.5)


def test_a_gradient_scaler_of_the_scripts_own_is_refused() -> None:
    model, optimiser, loader = _job().adapt(*_task())
    scaler = torch.amp.GradScaler("cpu")
    x, y = next(iter(loader))
    scaler.scale(((model(x) - y) ** 2).mean()).backward()
    with pytest.raises(TypeError, match=r"take the one that job\.scaler\(scaler\) returns"):
        scaler.step(optimiser)


def test_clipping_by_the_script_does_not_change_the_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "MOST_EVERY", 1)
    plain, clipped = _job(plan=BatchPlan(1, 8, 2, 3)), _job(plan=BatchPlan(1, 8, 2, 3))
    _train(plain, _task(lr=0.0))
    model, optimiser, loader = clipped.adapt(*_task(lr=0.0))

    def clip(*_: object) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)

    optimiser.register_step_pre_hook(clip)
    for _ in clipped.epochs(1):
        for x, y in loader:
            optimiser.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimiser.step()
    one, other = (each._training.state.noise for each in (plain, clipped))
    assert one.count > 0
    assert (other.square, other.trace) == pytest.approx((one.square, one.trace))


class _Small(torch.nn.Linear):
    """A model that a device has room for up to some number of samples."""

    def __init__(self, room: int) -> None:
        torch.manual_seed(0)
        torch.randn(64, 4)
        super().__init__(4, 1)
        self.room = room

    def forward(self, x: Any) -> Any:
        if len(x) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().forward(x)


def _guarded(job: Job, model: Any) -> list[int]:
    _, _, loader = _task()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimiser, loader = job.adapt(model, optimiser, loader, rule="none")
    sizes = []
    for _ in job.epochs(1):
        for x, y in loader:
            with job.guard():
                optimiser.zero_grad()
                ((model(x) - y) ** 2).mean().backward()
                optimiser.step()
                sizes.append(len(x))
    return sizes


def test_a_step_that_runs_out_of_memory_is_repeated_in_passes(tmp_path: Path) -> None:
    roomy, small = _Small(64), _Small(4)
    assert _guarded(_job(), roomy) == [8] * 8
    job = _job(checkpoint_directory=tmp_path, gpu_type="t4")
    assert _guarded(job, small) == [4] * 16
    for one, other in zip(roomy.parameters(), small.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    assert job._ledger.take()["memory"] == {"out_of_memory_at": 8}
    # The next attempt on such a GPU knows, and one on another type does not.
    for gpu_type, sizes in (("t4", {4}), ("a100", {8})):
        for folder in tmp_path.glob("step-*"):
            shutil.rmtree(folder)
        again = _job(checkpoint_directory=tmp_path, gpu_type=gpu_type)
        assert set(_guarded(again, _Small(64))) == sizes


def test_running_out_of_memory_with_one_sample_is_an_error() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        _guarded(_job(), _Small(0))


def test_a_sharded_model_is_refused() -> None:
    class FullyShardedDataParallel(torch.nn.Linear):
        """Of the name of torch's own, which needs a process group."""

    _, optimiser, loader = _task()
    with pytest.raises(TypeError, match="model is sharded over the replicas"):
        _job().adapt(FullyShardedDataParallel(4, 1), optimiser, loader)


def test_what_was_processed_is_counted_beside_what_it_was_worth() -> None:
    job = _job(plan=BatchPlan(1, 32, 32, 0))
    sizes = _train(job, _task(batch=8), epochs=2, max_batch_size=64)
    progress = job._ledger.look()["progress"]

    assert progress["processed_samples"] == sum(sizes)
    assert progress["gained_samples"] == pytest.approx(progress["effective_samples"])
    assert 0 < progress["gained_samples"] <= progress["processed_samples"]
