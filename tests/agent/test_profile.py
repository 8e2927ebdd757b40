"""Profiles: a few steps at several batch sizes, then the end, and nothing kept but the times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from report_server import Server
from training_runs import Run

from maat.agent.profile import Profile


@dataclass
class Hand:
    """A clock that a test moves."""

    seconds: float = 100.0

    def __call__(self) -> float:
        return self.seconds


def step_through(profile: Profile, clock: Hand, step: Callable[[int], float]) -> dict[int, int]:
    """Step until it is over; return the steps at each size."""
    made: dict[int, int] = {}
    profile.begin()
    while not profile.is_over:
        size = profile.plan.per_gpu
        made[size] = made.get(size, 0) + 1
        clock.seconds += step(size)
        profile.end_step()
    return made


def test_fast_steps_are_enough_before_the_time_is_over() -> None:
    clock = Hand()
    profile = Profile(20.0, [32, 8, 64], now=clock)
    assert profile.stepping_seconds == 0.0
    assert step_through(profile, clock, lambda size: 0.01) == {32: 31, 8: 31, 64: 31}
    assert profile.stepping_seconds == pytest.approx(0.93)


def test_slow_steps_share_the_time() -> None:
    clock = Hand()
    made = step_through(Profile(20.0, [32, 8, 64], now=clock), clock, lambda size: size / 32)
    assert list(made) == [32, 8, 64]
    assert made[32] == 7
    assert made[8] > 20
    assert 118.0 <= clock.seconds <= 120.0


@examples(max_examples=100)
@given(
    fixed=st.floats(0.0, 15.0),
    per_sample=st.floats(1e-5, 1.0),
    sizes=st.lists(st.integers(1, 64), min_size=1, max_size=6, unique=True),
)
def test_the_time_is_kept_but_for_the_two_steps_without_which_nothing_is_measured(
    fixed: float, per_sample: float, sizes: list[int]
) -> None:
    clock = Hand()
    profile = Profile(20.0, sizes, now=clock)
    made = step_through(profile, clock, lambda size: fixed + per_sample * size)
    assert sum(made.values()) >= min(2, 20.0 / (fixed + per_sample * sizes[0]))
    assert profile.stepping_seconds <= 20.0 or sum(made.values()) <= 2


def test_every_size_has_its_own_plan() -> None:
    clock = Hand()
    profile = Profile(20.0, [32, 8], now=clock)
    profile.begin()
    first = profile.plan
    clock.seconds += 15.0
    profile.end_step()
    assert profile.plan == first, "one step alone is not timed"
    clock.seconds += 1.0
    profile.end_step()
    assert (profile.plan.number, profile.plan.total, profile.plan.accumulation) == (2, 8, 0)


def test_sizes_beyond_what_the_script_allows_are_left_out() -> None:
    asked = {"seconds": 1.0, "batch_sizes": [32, 64, 128]}
    assert Profile.from_json(asked, most=64).plan.per_gpu == 32
    assert Profile.from_json(asked, most=16).plan.per_gpu == 16


@examples(max_examples=100)
@given(
    steps=st.lists(st.floats(1e-3, 30.0), min_size=1, max_size=5),
    seconds=st.floats(0.1, 60.0),
)
def test_a_profile_ends_with_the_step_in_which_its_time_is_over(
    steps: list[float], seconds: float
) -> None:
    clock = Hand()
    sizes = [2**index for index in range(len(steps))]
    profile = Profile(seconds, sizes, now=clock)
    step_through(profile, clock, lambda size: steps[sizes.index(size)])
    assert profile.stepping_seconds <= seconds + max(steps) + 1e-6


@pytest.mark.needs_torch
def test_a_profile_of_a_real_script_measures_all_sizes_and_keeps_nothing(
    new_run: Callable[..., Run],
) -> None:
    with Server() as server:
        run = new_run(server=server.url)
        profile = {"seconds": 20.0, "batch_sizes": [64, 16, 128, 2048]}
        assert run.attempt(1, profile=profile, epochs=1) == {"0": 0}, run.logs()
    assert "done" not in run.logs(), "the script went on to what follows its training"
    assert not run.checkpoints.exists() or not list(run.checkpoints.glob("step-*"))
    assert not server.malformed
    steps: dict[int, int] = {}
    for body in server.taken:
        for each in body.passes:
            steps[each.per_gpu_batch_size] = steps.get(each.per_gpu_batch_size, 0) + each.steps
    assert set(steps) == {64, 16, 128}, "2048 is more than the script allows"
    assert min(steps.values()) >= 10
    last = server.taken[-1]
    assert last.kind == "bye"
    assert not last.finished
    assert last.checkpoint is None
    assert last.stepping_seconds is not None
    assert 0.0 < last.stepping_seconds <= 21.0
