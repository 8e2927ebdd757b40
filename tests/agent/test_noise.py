"""The gradient noise scale against closed forms and exact gradients, at fixed weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: maat[agent]")

from training_runs import ROOT, Run

from benchmarks.agent.noise import BATCH, followed_ratios, ratios
from maat.agent import noise, timing
from maat.agent.environment import BatchPlan, Environment
from maat.agent.job import Job
from maat.agent.noise import NoiseScale, Norms
from maat.agent.replicas import Replicas
from maat.agent.steps import Inbox

pytestmark = pytest.mark.needs_torch


@pytest.fixture
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what ratios() sets."""
    monkeypatch.setattr(noise, "_SHARE_REMEMBERED", noise._SHARE_REMEMBERED)
    monkeypatch.setattr(noise, "_LONGEST_MEMORY", noise._LONGEST_MEMORY)
    monkeypatch.setattr(timing, "MOST_EVERY", timing.MOST_EVERY)


def _one_replica(plan: BatchPlan | None = None) -> Job:
    around, device = Environment(plan=plan), torch.device("cpu")
    return Job(around, device, Replicas(around, device), Inbox())


@pytest.mark.parametrize(
    ("kind", "plan"),
    [
        ("sgd", None),
        ("adamw", None),
        pytest.param("sgd", BatchPlan(1, BATCH, BATCH // 4, 3), marks=pytest.mark.long),
        ("adamw", BatchPlan(1, BATCH, BATCH // 4, 3)),
    ],
)
def test_one_replica_measures_the_noise_that_there_is(
    as_it_was: None, kind: str, plan: BatchPlan | None
) -> None:
    found = ratios(_one_replica(plan), kind)
    print(kind, plan, found)
    assert found["count"] > 500
    assert found["variance"] == pytest.approx(1, abs=0.03)
    assert found["phi"] == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    ("kind", "passes"), [("sgd", 1), pytest.param("sgd", 4, marks=pytest.mark.long), ("adamw", 4)]
)
def test_the_loop_of_a_library_is_measured_before_it_clips(
    as_it_was: None, kind: str, passes: int
) -> None:
    found = followed_ratios(_one_replica(), kind, passes=passes)
    assert found["count"] > 500
    assert found["variance"] == pytest.approx(1, abs=0.03)
    assert found["phi"] == pytest.approx(1, abs=0.15)


@pytest.mark.long
def test_two_replicas_measure_the_noise_that_there_is(new_run: Callable[..., Run]) -> None:
    run = new_run(script=ROOT / "benchmarks/agent/noise.py")
    assert run.attempt(2) == {"0": 0, "1": 0}, run.logs()
    print(run.logs())
    by_kind = json.loads(run.attempts[-1].text("rank-0.log"))
    for found in by_kind.values():
        assert found["count"] > 700
        assert found["variance"] == pytest.approx(1, abs=0.03)
        assert found["phi"] == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("small", [8, 32])
def test_linear_regression_has_the_noise_that_algebra_gives_it(small: int) -> None:
    """One sample's gradient is x (x.D - e): its trace is (d + 1) |D|^2 + d s^2."""
    dimensions, noise_variance, large = 20, 1.0, 64
    chance = torch.Generator().manual_seed(3)
    apart = torch.randn(dimensions, generator=chance, dtype=torch.float64)
    scale = NoiseScale(data_size=10**9)
    for _ in range(3000):
        x = torch.randn(large, dimensions, generator=chance, dtype=torch.float64)
        error = torch.randn(large, generator=chance, dtype=torch.float64) * noise_variance**0.5
        each = x * (x @ apart - error)[:, None]
        parts = each.reshape(large // small, small, dimensions).mean(1)
        norms = Norms(
            float((parts**2).sum(1).mean()), float((each.mean(0) ** 2).sum()), small, large
        )
        scale.add(norms, share_of_job=0.0)
    square = float((apart**2).sum())
    trace = (dimensions + 1) * square + dimensions * noise_variance
    assert scale.square == pytest.approx(square, rel=0.03)
    assert scale.trace == pytest.approx(trace, rel=0.03)
    assert scale.phi(64) == pytest.approx(trace / square, rel=0.05)


def test_a_step_of_the_initial_batch_size_is_worth_one() -> None:
    scale = NoiseScale(1000)
    assert scale.gain(64, 64) == 1
    assert scale.gain(256, 64) == pytest.approx(1), "nothing is known: more samples teach no more"
    for _ in range(timing.TRUSTED_AFTER):
        scale.add(Norms(2.0, 1.0, 32, 64), share_of_job=0.01)
    assert scale.gain(64, 64) == 1
    assert 1 < scale.gain(256, 64) < 4
    assert 1 / 4 < scale.gain(16, 64) < 1


def test_noise_alone_gives_a_large_phi_and_silence_none() -> None:
    loud, silent = NoiseScale(10**9), NoiseScale(10**9)
    for _ in range(timing.TRUSTED_AFTER):
        loud.add(Norms(4.0, 1.0, 16, 64), share_of_job=0.01)
        silent.add(Norms(1.0, 1.0, 16, 64), share_of_job=0.01)
    assert loud.square < 1e-6
    assert math.isfinite(loud.phi(64))
    assert loud.gain(256, 64) == pytest.approx(4, rel=1e-3)
    assert silent.phi(64) == 0


def test_old_gradients_are_forgotten_as_the_job_goes_on() -> None:
    scale = NoiseScale(10**9)
    for _ in range(1000):
        scale.add(Norms(2.0, 1.5, 32, 64), share_of_job=0.001)
    for _ in range(200):
        scale.add(Norms(0.2, 0.15, 32, 64), share_of_job=0.001)
    assert scale.square == pytest.approx(0.1, rel=0.02)
