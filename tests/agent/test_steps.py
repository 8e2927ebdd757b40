"""One replica in this process: shares of data, batch plans, learning rates, what is kept."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler

from maat.agent.data import Position, Shares
from maat.agent.environment import BatchPlan, Environment
from maat.agent.job import Job
from maat.agent.rates import Batch, Legw, rule_of
from maat.agent.replicas import Replicas
from maat.agent.timing import MOST_EVERY, Budget, Times
from maat.agent.training import Inbox

pytestmark = pytest.mark.needs_torch


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


def test_a_batch_size_may_be_rounded_up_to_equal_shares() -> None:
    assert not BatchPlan(1, 102, 34, 0).exceeds(100, 3)
    assert BatchPlan(1, 105, 35, 0).exceeds(100, 3)


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
    [("none", 1.0), ("linear", 4.0), ("sqrt", 2.0), ("adascale", 3.0), ("legw", 1.0)],
)
def test_rules(rule: str, factor: float) -> None:
    batch = Batch(scale=4.0, gain=3.0, epochs=2.0, adaptive=False)
    assert rule_of(rule)(batch) == factor
    assert rule_of("adascale")(batch._replace(gain=9.0, adaptive=True)) == 3.0
    assert Legw(0.0)(batch) == Legw(0.5)(batch) == 2.0


def test_a_rule_of_ones_own_and_an_unknown_one() -> None:
    assert rule_of(lambda batch: batch.scale / 2)(Batch(4.0, 1.0, 0.0, False)) == 2.0
    with pytest.raises(ValueError, match=r"rule is 'cubic': give one of none, linear, sqrt"):
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
    assert budget.every == 20, "10 ms in a second"
    for _ in range(500):
        budget.add_cost(10.0)
    assert budget.every == MOST_EVERY
    for _ in range(500):
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


def test_a_script_by_hand_stops_and_saves_when_told(tmp_path: Path) -> None:
    inbox = Inbox(stop=True)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        _train(_job(inbox, checkpoint_directory=tmp_path), _task())
    assert ended.value.code == 143
    assert (tmp_path / "step-000000000" / "DONE").exists()
    assert signal.getsignal(signal.SIGTERM) == before
