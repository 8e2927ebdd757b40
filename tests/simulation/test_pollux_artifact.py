"""Tests of the fidelity pollux-artifact: each switch, and the published figures to the digit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulation.small import spec, truth

from maat.models.measurements import EpochTable
from maat.models.truth import FittedTruth
from maat.scheduling.cluster import Cluster
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant
from maat.simulation.conditions import Conditions
from maat.simulation.engine import JumpingClock, simulate
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES, Fidelity, fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.simulated_job import shape_of
from maat.simulation.world_models import Model, catalog_models, measured_models
from maat.vocabulary import Adaptivity, ProfilingMode
from maat.workloads.reading import read_workload
from maat.workloads.workloads import TraceJob, Workload

POLLUX = FIDELITIES["pollux-artifact"]
CLUSTER = "t4=16x4"

# ---- switches


def test_every_restart_takes_thirty_seconds_and_nothing_is_calibrated() -> None:
    models = {name: model.under(POLLUX) for name, model in catalog_models().items()}
    assert {model.restart_seconds for model in models.values()} == {30.0}
    assert {model.truth.slowdown for model in models.values()} == {1.0}
    assert (
        models["cifar10"]
        .job_spec(TraceJob(name="x", submit_seconds=0.0, model="cifar10", gpu_count=2), POLLUX)
        .restart_seconds
        == 30.0
    )


def test_a_gpu_holds_eight_samples_of_yolov3_in_truth_and_in_plans() -> None:
    own = catalog_models()["yolov3"]
    found = own.under(POLLUX)
    assert own.truth.largest_per_gpu("t4", 4) > 8
    assert found.truth.largest_per_gpu("t4", 4) == found.memory["t4"].largest_per_gpu == 8
    assert found.truth.slowest_step("t4", 1) == found.truth.step("t4", (1,), 8).step_seconds
    assert found.memory["a100"] == own.memory["a100"]


def test_the_paper_leaves_models_as_they_are() -> None:
    for model in catalog_models().values():
        assert model.under(FIDELITIES["paper"]) == model


def test_ncf_is_bound_to_what_the_trace_asks_for() -> None:
    job = TraceJob(name="x", submit_seconds=0.0, model="ncf", gpu_count=1, batch_size=32768)
    model = catalog_models()["ncf"]
    assert model.job_spec(job, POLLUX).adaptivity is Adaptivity.RIGID
    assert model.job_spec(job, FIDELITIES["paper"]).adaptivity is Adaptivity.ADAPTIVE


def test_a_fidelity_may_reveal_more_to_one_policy() -> None:
    assert POLLUX.as_known_to("optimus").profiling is ProfilingMode.REQUEST_ORACLE
    assert POLLUX.as_known_to("tiresias").profiling is ProfilingMode.NO_PROFILE
    assert (
        POLLUX.revealing(ProfilingMode.BOOTSTRAP).as_known_to("optimus").profiling
        is ProfilingMode.BOOTSTRAP
    )


def test_a_jobs_nodes_may_count_from_the_one_of_which_it_holds_most() -> None:
    nodes = [0, 0, 1, 1, 1, 1, 2, 2, 2]
    assert shape_of(tuple(range(9)), nodes) == (2, 4, 3)
    assert shape_of(tuple(range(9)), nodes, fullest_first=True) == (4, 3, 2)


# ---- what is revealed


def shown(mode: Fidelity, **declared: object) -> tuple[SimulatedExecutor, JumpingClock]:
    clock = JumpingClock()
    executor = SimulatedExecutor(Cluster.parse("t4=2x4"), clock, mode)
    executor.submit(spec(**declared), truth(), restart_seconds=0.0)
    return executor, clock


def test_an_oracle_of_every_count_tells_true_steps_of_the_requested_batch_and_what_is_left() -> (
    None
):
    executor, _ = shown(replace(POLLUX, profiling=ProfilingMode.REQUEST_ORACLE), batch_size=120)
    job = executor.observe().jobs[0]
    samples = job.belief.by_type["t4"].samples
    assert [(s.node_count, s.replica_count, s.per_gpu_batch_size) for s in samples] == [
        (1, 1, 30),
        (1, 2, 30),
        (1, 3, 20),
        (1, 4, 30),
        (2, 5, 24),
        (2, 6, 20),
        (2, 7, 18),
        (2, 8, 15),
    ]
    assert all(s.step_seconds == pytest.approx(1.0, rel=1e-6) for s in samples)
    # No noise: a larger batch gains nothing, so each of the 25 steps of an epoch at batch 10 is
    # also one at batch 120. The first epoch does not count.
    assert job.remaining_steps == pytest.approx(75.0)


def test_nobody_else_is_told_the_steps_that_are_left() -> None:
    executor, _ = shown(POLLUX, batch_size=120)
    job = executor.observe().jobs[0]
    assert (job.remaining_steps, dict(job.belief.by_type)) == (None, {})


def test_steps_are_those_measured_and_without_a_measurement_those_that_the_gradients_foretell() -> (
    None
):
    progress = np.array([[5.0, 10.0], [5.0, 10.0]])
    table = EpochTable(np.array([10, 40]), progress, np.ones((2, 2)), np.full((2, 2), 3.0))
    gain = (3.0 + 1.0) / (3.0 / 4 + 1.0)
    assert table.steps.tolist() == [[5.0, 10.0], [5.0 / gain, 10.0 / gain]]
    assert replace(table, measured_steps=np.array([[5.0, 10.0], [3.0, 6.0]])).steps[1].tolist() == [
        3.0,
        6.0,
    ]


def test_steps_at_the_initial_batch_size_are_the_progress_itself() -> None:
    fitted: FittedTruth = truth(noise_scale=50.0)
    assert fitted.steps_after(1, 10) == pytest.approx(50.0)
    assert fitted.steps_after(3, 10) == 0.0
    assert 5.0 < fitted.steps_after(1, 100) < 50.0, (
        "a larger batch needs fewer steps, though not as many fewer as it is larger"
    )


# ---- how a given batch is run


def held(
    plan: BatchPlan | None, gpus: int, **declared: object
) -> tuple[SimulatedExecutor, JumpingClock]:
    executor, clock = shown(POLLUX, **declared)
    executor.observe()
    grant = Grant("t4", gpus, batch=plan)
    executor.apply(
        Changes(
            1,
            0.0,
            (Change("x", ChangeKind.START, None, Allocation("t4", tuple(range(gpus))), grant),),
        )
    )
    clock.sleep_until(5.0)
    executor.observe()
    return executor, clock


def test_a_plan_is_run_as_it_was_split() -> None:
    """Six GPUs could run 360 samples in two passes of 30 each; the plan says six passes of 10."""
    plan = BatchPlan(360, 10, 5)
    assert held(plan, 6)[0].jobs["x"].plan == plan


def test_a_plan_that_memory_cannot_hold_is_split_anew() -> None:
    assert held(BatchPlan(240, 40, 0), 6)[0].jobs["x"].plan == BatchPlan(240, 20, 1)


def test_rounding_never_exceeds_the_largest_batch_of_the_model() -> None:
    """400 samples on seven GPUs are 57.1 each: two passes of 29 would be 406."""
    assert held(None, 7, batch_size=400, adaptivity=Adaptivity.RIGID, gpu_count=7)[0].jobs[
        "x"
    ].plan == BatchPlan(392, 28, 1)


# ---- the published figures (average JCT in seconds)


@pytest.fixture(scope="module")
def measured(data_folder: Path) -> Mapping[str, Model]:
    return measured_models(data_folder / "sia-artifact" / "profiles")


def average_jct(data_folder: Path, models: Mapping[str, Model], policy: str, number: int) -> float:
    trace: Workload = read_workload(
        data_folder / "pollux" / "workloads" / f"workload-{number}.csv", known_models=models
    )
    scenario = Scenario(
        trace,
        models,
        Cluster.parse(CLUSTER),
        policy=policy,
        placer="most-free",
        conditions=Conditions(fidelity=fidelity("pollux-artifact")),
    )
    found = simulate(scenario).metrics
    assert found.unfinished == 0
    return found.avg_jct_hours * 3600


@pytest.mark.needs_data
@pytest.mark.parametrize(("policy", "seconds"), [("tiresias", 3469.69375), ("optimus", 5301.875)])
def test_the_published_figures_of_workload_6_are_met(
    data_folder: Path, measured: Mapping[str, Model], policy: str, seconds: float
) -> None:
    assert average_jct(data_folder, measured, policy, 6) == pytest.approx(seconds, rel=1e-9)


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("policy", "number", "seconds"),
    [
        ("tiresias", 1, 2473.65),
        pytest.param("tiresias", 2, 5145.0, marks=pytest.mark.long),
        pytest.param("optimus", 1, 4087.1, marks=pytest.mark.long),
        pytest.param("optimus", 2, 6913.9, marks=pytest.mark.long),
    ],
)
def test_the_published_figures_of_other_workloads_are_met(
    data_folder: Path, measured: Mapping[str, Model], policy: str, number: int, seconds: float
) -> None:
    """Stored figures have one decimal."""
    assert average_jct(data_folder, measured, policy, number) == pytest.approx(seconds, abs=0.06)
