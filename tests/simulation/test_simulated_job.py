"""Checks the progress of one simulated job against values calculated by hand."""

from __future__ import annotations

import pytest
from simulation.small import spec, truth

from maat.models.truth import FittedTruth
from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.errors import ContractViolation
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, JobSpec
from maat.simulation.simulated_job import SimulatedJob, shape_of
from maat.vocabulary import Adaptivity

FITTER = MemoisingFitter()


def running(
    job_spec: JobSpec | None = None,
    model: FittedTruth | None = None,
    *,
    gpus: int = 1,
    restart_seconds: float = 0.0,
) -> SimulatedJob:
    """A job on `gpus` t4 GPUs of one node from time 0 on."""
    model = model or truth()
    one = SimulatedJob(
        job_spec or spec(), model, restart_seconds, model.epoch_ends, model.max_batch_size
    )
    give(one, gpus, now=0.0)
    return one


def give(
    one: SimulatedJob,
    gpus: int,
    *,
    now: float,
    restarts: bool = True,
    plan: BatchPlan | None = None,
) -> None:
    allocation = Allocation("t4", tuple(range(gpus))) if gpus else None
    one.hold(allocation, (gpus,) if gpus else (), plan, restarts=restarts, now=now)


def live(one: SimulatedJob, now: float, until: float, *, whole_seconds: bool = False) -> None:
    one.advance(now, until, fitter=FITTER, whole_second_epochs=whole_seconds)


def test_a_job_progresses_at_its_goodput_and_ends_to_the_second() -> None:
    one = running()
    live(one, 0.0, 60.0)
    assert one.ledger.done_work == pytest.approx(600.0)
    assert one.goodput == pytest.approx(10.0)
    live(one, 60.0, 120.0)
    assert one.finished_at == pytest.approx(100.0)
    assert one.ledger.done_work == 1000.0
    assert one.ledger.gpu_seconds == pytest.approx({"t4": 100.0})


def test_an_ended_job_lives_no_longer() -> None:
    one = running()
    live(one, 0.0, 120.0)
    live(one, 120.0, 180.0)
    assert one.finished_at == pytest.approx(100.0)
    assert one.ledger.gpu_seconds == pytest.approx({"t4": 100.0})


def test_epochs_end_in_turn() -> None:
    one = running()
    seen = []
    for end in (20.0, 30.0, 60.0, 99.0):
        live(one, 0.0 if not seen else seen[-1][0], end)
        seen.append((end, one.ledger.epoch))
    assert [epoch for _, epoch in seen] == [0, 1, 2, 3]


def test_the_first_start_pays_for_loading_and_is_no_restart() -> None:
    one = running(restart_seconds=40.0)
    live(one, 0.0, 60.0)
    assert one.ledger.done_work == pytest.approx(200.0)
    assert (one.ledger.started_at, one.ledger.restarts) == (0.0, 0)
    assert one.ledger.gpu_seconds == pytest.approx({"t4": 60.0}), "GPUs are held during the pause"


def test_a_pause_may_span_several_rounds_and_is_seen_as_restarting() -> None:
    one = running(restart_seconds=100.0)
    live(one, 0.0, 60.0)
    assert one.as_seen().restarting
    assert one.ledger.done_work == 0.0
    live(one, 60.0, 120.0)
    assert not one.as_seen().restarting
    assert one.ledger.done_work == pytest.approx(200.0)


def test_a_change_of_gpus_is_paid_for_and_counted() -> None:
    one = running(restart_seconds=10.0)
    live(one, 0.0, 60.0)
    give(one, 2, now=60.0)
    live(one, 60.0, 70.0)
    assert one.ledger.restarts == 1
    assert one.ledger.done_work == pytest.approx(500.0)
    ledger = one.ledger
    assert (ledger.held_seconds, ledger.restarting_seconds) == (70.0, 20.0)
    assert ledger.restarting_gpu_seconds == 10.0 + 2 * 10.0, "start on one GPU, restart on two"


def test_a_free_move_costs_nothing() -> None:
    one = running(restart_seconds=10.0)
    live(one, 0.0, 20.0)
    give(one, 1, now=20.0, restarts=False)
    live(one, 20.0, 30.0)
    assert (one.ledger.restarts, one.ledger.done_work) == (0, pytest.approx(200.0))


def test_a_preempted_job_keeps_what_it_did_and_makes_no_progress() -> None:
    one = running(restart_seconds=10.0)
    live(one, 0.0, 60.0)
    give(one, 0, now=60.0, restarts=False)
    live(one, 60.0, 600.0)
    assert one.ledger.done_work == pytest.approx(500.0)
    assert one.ledger.gpu_seconds == pytest.approx({"t4": 60.0})
    assert one.as_seen().allocation is None
    give(one, 1, now=600.0)
    live(one, 600.0, 670.0)
    assert one.ledger.restarts == 1, "to resume is to restart"
    assert one.finished_at == pytest.approx(660.0)


def test_being_preempted_in_a_pause_forgets_the_pause() -> None:
    one = running(restart_seconds=100.0)
    live(one, 0.0, 60.0)
    give(one, 0, now=60.0, restarts=False)
    assert not one.as_seen().restarting


def test_whole_second_epochs_round_each_epoch_by_itself() -> None:
    exact, rounded = (
        running(model=truth(pass_seconds=0.05)),
        running(model=truth(pass_seconds=0.05)),
    )
    live(exact, 0.0, 60.0)
    live(rounded, 0.0, 60.0, whole_seconds=True)
    assert exact.finished_at == pytest.approx(5.0), "four epochs of 1.25 s"
    assert rounded.finished_at == 4.0


def test_slowdown_slows_progress_and_not_what_is_measured() -> None:
    one = running(model=truth(slowdown=2.0))
    live(one, 0.0, 60.0)
    assert one.ledger.done_work == pytest.approx(300.0)
    (sample,) = one.agent.belief.by_type["t4"].samples
    assert sample.step_seconds == pytest.approx(1.0)


def test_a_fixed_batch_is_split_into_as_few_passes_as_memory_allows() -> None:
    fixed = spec(adaptivity=Adaptivity.STRONG_SCALING, batch_size=100)
    plans = {}
    for gpus in (1, 2, 4):
        one = running(fixed, gpus=gpus)
        live(one, 0.0, 1.0)
        plans[gpus] = one.plan
    assert plans == {1: BatchPlan(100, 25, 3), 2: BatchPlan(100, 25, 1), 4: BatchPlan(100, 25, 0)}


def test_a_fixed_batch_is_never_run_with_more_samples_than_it_has() -> None:
    def ran(batch: int, gpus: int, **changes: object) -> int:
        fixed = spec(adaptivity=Adaptivity.RIGID, gpu_count=gpus, batch_size=batch, **changes)
        one = running(fixed, gpus=gpus)
        live(one, 0.0, 1.0)
        assert one.plan is not None
        return one.plan.total_batch_size

    assert ran(100, 3) == 96  # two passes of 16, since a GPU holds fewer than 33
    assert ran(100, 3, rounds_batch_up=True) == 102
    most_lost = 3 * 4 - 1  # a sample less than GPUs times passes
    for gpus in (1, 2, 3):
        for batch in range(16, 101, 7):
            assert batch - most_lost <= ran(batch, gpus) <= batch


def test_a_plan_that_the_policy_fixed_is_run() -> None:
    one = running()
    give(one, 2, now=0.0, plan=BatchPlan(40, 20, 0))
    live(one, 0.0, 1.0)
    assert one.plan == BatchPlan(40, 20, 0)


def test_more_passes_than_memory_asks_for_are_run_where_the_policy_fixed_them() -> None:
    """Two passes of 20 samples would fit, but the plan fixes four passes of ten, each of a second.

    Such a job leaves memory to a partner.
    """
    one = running(gpus=1)
    give(one, 1, now=0.0, plan=BatchPlan(40, 10, 3))
    live(one, 0.0, 8.0)
    assert one.plan == BatchPlan(40, 10, 3)
    assert one.goodput == pytest.approx(10.0 / 4.0)


def test_the_steps_left_are_those_that_it_will_take_and_those_after_the_epoch_where_that_is_asked() -> (  # noqa: E501
    None
):
    """1000 samples are 43.75 steps of 2 s on one GPU that holds 30 samples.

    At noise 30 a batch of 40 is worth 40 x 40 / 70 = 22.9 samples.
    """
    one = running(
        gpus=1,
        job_spec=spec(batch_size=40, adaptivity="rigid", gpu_count=1),
        model=truth(noise_scale=30.0),
    )
    assert one.steps_left() == pytest.approx(43.75)
    assert one.steps_left(from_epoch_end=True) == pytest.approx(43.75 * 3 / 4)
    live(one, 0.0, 30.0)
    assert one.steps_left() == pytest.approx(43.75 - 15.0)
    live(one, 30.0, 200.0)
    assert one.finished_at == pytest.approx(2 * 43.75)


def test_a_new_job_runs_at_the_initial_batch_and_grows_it_once_noise_is_seen() -> None:
    one = running(model=truth(noise_scale=1e6, work=1e6), gpus=4)
    live(one, 0.0, 0.5)
    assert one.plan is not None
    assert one.plan.total_batch_size == 12, (
        "ten samples do not divide by four GPUs; no fewer than the initial batch are run"
    )
    live(one, 0.5, 1.0)
    assert one.plan.total_batch_size > 100
    assert one.plan.total_batch_size <= 400
    assert one.plan.per_gpu_batch_size <= 30


def test_without_noise_a_larger_batch_is_worth_nothing() -> None:
    one = running(model=truth(noise_scale=0.0, work=1e6), gpus=4)
    for second in range(5):
        live(one, float(second), second + 1.0)
    assert one.plan is not None
    assert one.plan.total_batch_size == 12
    assert one.goodput == pytest.approx(10.0)


def test_the_scheduler_learns_only_what_was_run() -> None:
    one = running(gpus=2)
    assert one.as_seen().belief.by_type == {}
    live(one, 0.0, 60.0)
    seen = one.as_seen().belief
    assert [(s.node_count, s.replica_count) for s in seen.by_type["t4"].samples] == [(1, 2)]
    assert seen.peak_replica_count == 2
    assert seen.gradient is not None
    assert one.as_seen().remaining_work == pytest.approx(400.0)


def test_a_job_without_gpus_cannot_run() -> None:
    one = SimulatedJob(spec(), truth(), 0.0, truth().epoch_ends, truth().max_batch_size)
    with pytest.raises(ContractViolation, match="job x runs without GPUs"):
        one.replicas()


def test_a_shape_counts_gpus_by_node() -> None:
    assert shape_of((0, 1, 4, 5, 6), [0, 0, 0, 0, 1, 1, 1, 1]) == (2, 3)
