"""Tests of jobs that set their own batch sizes: their speed, what is seen and what is revealed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation.small import spec, truth

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import JobError, TraceError
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation
from maat.scheduling.regimes import DeclaredRegimes, Regime, batch_size_at, epochs_begun
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.world_models import Model
from maat.vocabulary import Adaptivity, ProfilingMode
from maat.workloads.formats.sia import write_workload
from maat.workloads.workloads import TraceJob, Workload

CLUSTER = Cluster.parse("t4=1x4")
OWN = (Regime(10, 1), Regime(20, 2), Regime(10, 1))


def regimes() -> st.SearchStrategy[tuple[Regime, ...]]:
    return st.lists(
        st.builds(Regime, st.sampled_from((8, 16, 64)), st.integers(1, 30)), min_size=1, max_size=6
    ).map(tuple)


@given(stretches=regimes(), epoch=st.integers(0, 200))
def test_epochs_begun_count_every_epoch_so_far_at_its_batch_size(
    stretches: tuple[Regime, ...], epoch: int
) -> None:
    total = sum(regime.epochs for regime in stretches)
    by_hand = [regime.batch_size for regime in stretches for _ in range(regime.epochs)][: epoch + 1]
    assert epochs_begun(stretches, epoch) == {
        size: by_hand.count(size) for size in dict.fromkeys(by_hand)
    }
    if epoch < total:
        assert batch_size_at(stretches, epoch) == by_hand[epoch]


@pytest.mark.parametrize("sizes", [(), (0, 2), (2, 2), (4, 2)])
def test_declared_sizes_that_do_not_ascend_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(JobError) as caught:
        DeclaredRegimes(1.0, sizes)
    assert caught.value.field == "batch_sizes"


def running(**changes: Any) -> tuple[SimulatedExecutor, JumpingClock]:
    """Run four epochs of 250 samples on one GPU, where a pass takes a second.

    At ten samples a step an epoch takes 25 s, at twenty 12.5 s.
    """
    clock = JumpingClock()
    fidelity = replace(FIDELITIES["sia-artifact"], whole_second_epochs=False, **changes)
    executor = SimulatedExecutor(CLUSTER, clock, fidelity)
    declared = spec(
        adaptivity=Adaptivity.RIGID,
        gpu_count=1,
        batch_size=10,
        regimes=DeclaredRegimes(250.0, (10, 20)),
    )
    executor.submit(declared, truth(noise_scale=1e15), restart_seconds=0.0, regimes=OWN)
    executor.observe()
    return executor, clock


def test_a_job_runs_with_its_own_batch_sizes_whatever_is_granted() -> None:
    executor, clock = running()
    granted = Grant("t4", 1, batch=BatchPlan(30, 30, 0))
    executor.apply(
        Changes(1, 0.0, (Change("x", ChangeKind.START, None, Allocation("t4", (0,)), granted),))
    )
    clock.sleep_until(1000.0)
    executor.observe()
    assert executor.finished["x"].finished_at == pytest.approx(25.0 + 12.5 + 12.5 + 25.0, rel=1e-6)


def test_what_is_seen_of_a_job_is_the_past_and_not_what_comes() -> None:
    executor, clock = running()
    executor.apply(
        Changes(
            1, 0.0, (Change("x", ChangeKind.START, None, Allocation("t4", (0,)), Grant("t4", 1)),)
        )
    )
    clock.sleep_until(30.0)
    assert executor.observe().jobs[0].epochs_begun == {10: 1, 20: 1}


def test_a_profile_covers_the_batch_sizes_that_the_job_may_use() -> None:
    executor, _ = running(profiling=ProfilingMode.ORACLE)
    assert {
        s.per_gpu_batch_size for s in executor.jobs["x"].agent.belief.by_type["t4"].samples
    } == {
        10,
        20,
    }


def test_the_trace_of_such_a_job_makes_it_rigid_and_as_long_as_it_says() -> None:
    model = Model("m", truth(), 20.0, {"t4": spec().memory["t4"]}, {}, {})
    declared = model.job_spec(
        TraceJob(
            name="j",
            submit_seconds=0.0,
            model="m",
            gpu_count=2,
            batch_size=10,
            work_scale=0.5,
            regimes=OWN,
        ),
        FIDELITIES["paper"],
    )
    assert (declared.adaptivity, declared.gpu_count, declared.batch_size, declared.work) == (
        Adaptivity.RIGID,
        2,
        10,
        500.0,
    )
    assert declared.regimes == DeclaredRegimes(250.0, (10, 20))


def test_a_format_that_cannot_say_such_sizes_refuses_to_write_them() -> None:
    with pytest.raises(TraceError):
        write_workload(
            Workload(
                "w",
                (
                    TraceJob(
                        name="j",
                        submit_seconds=0.0,
                        model="m",
                        gpu_count=1,
                        batch_size=10,
                        regimes=OWN,
                    ),
                ),
                "shockwave",
            )
        )
