"""Emulated GPUs: passes take what the law says, whatever the real ones take meanwhile."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maat.demo.emulated import EmulatedGpu, emulate
from maat.demo.jobs import JOBS, Law

LAW = Law(0.05, 0.001)
REAL = st.lists(st.floats(0.0, 0.04), min_size=3, max_size=20)


class Clock:
    """Time that passes only when somebody sleeps or works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.work)

    def work(self, seconds: float) -> None:
        self.now += seconds


@given(real=REAL)
def test_passes_keep_to_the_law_beside_real_work(real: list[float]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock, gpu = Clock(monkeypatch), EmulatedGpu(LAW)
        gpu.hold(32)
        ends = [clock.now]
        for seconds in real:
            clock.work(seconds)
            gpu.hold(32)
            ends.append(clock.now)
    apart = [after - before for before, after in pairwise(ends)]
    assert apart == pytest.approx([LAW.seconds(32)] * len(real))


def test_a_pass_after_a_pause_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, gpu = Clock(monkeypatch), EmulatedGpu(LAW)
    gpu.hold(32)
    clock.work(60.0)
    gpu.hold(32)
    assert clock.now == pytest.approx(160.0 + 2 * LAW.seconds(32))


def test_a_script_on_a_gpu_without_a_law_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model = pytest.importorskip("torch").nn.Linear(2, 1)
    for gpu_type in ("cpu", "t4"):
        monkeypatch.setenv("MAAT_GPU_TYPE", gpu_type)
        assert emulate(model, "digits") is model
        assert len(model._forward_hooks) == (gpu_type == "t4")


@pytest.mark.parametrize("name", JOBS)
def test_the_faster_type_is_faster_at_every_batch_size(name: str) -> None:
    laws = JOBS[name].laws
    for batch in (1, JOBS[name].batch_size, JOBS[name].max_batch_size):
        assert laws["a100"].seconds(batch) < laws["t4"].seconds(batch)
