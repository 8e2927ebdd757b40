"""Tests of whole simulations: reproducible, physically possible, near the published figures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from maat.models.truth import Truth
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ParameterError, TraceError, UnknownNameError
from maat.scheduling.metrics import ScheduleMetrics
from maat.scheduling.placement.whole_node import Eviction, WholeNode
from maat.scheduling.policies import POLICIES
from maat.scheduling.policies.fifo import Fifo
from maat.scheduling.policies.sia import RowUnit, ScaleUpBase, Sia
from maat.scheduling.solving.report import SolveReport
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import FIDELITIES, fidelity
from maat.simulation.record import Cancelled, Position, SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.simulation.world_models import Model, catalog_models, measured_models
from maat.vocabulary import ProfilingMode
from maat.workloads.generators import generate
from maat.workloads.reading import read_workload
from maat.workloads.workloads import TraceJob, Workload

CLUSTER = "t4=4x4,rtx=2x8,a100=1x8"
PAPER_CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"


def scenario(policy: str = "sia", **changes: object) -> Scenario:
    """Ten short jobs within half an hour on a small cluster of three types."""
    placer = "whole-node" if policy == "sia" else "packed-sticky"
    workload = generate("philly", jobs=10, hours=0.5, seed=3, work_scale=0.1)
    return replace(
        Scenario(workload, catalog_models(), Cluster.parse(CLUSTER), policy=policy, placer=placer),
        **changes,
    )


@cache
def played(policy: str) -> SimulationResult:
    return simulate(scenario(policy))


@pytest.fixture(params=POLICIES.names)
def result(request: pytest.FixtureRequest) -> SimulationResult:
    return played(request.param)


# ---- under every policy


def test_every_job_finishes(result: SimulationResult) -> None:
    assert result.complete
    assert result.metrics.unfinished == 0
    assert [r.name for r in result.records] == [job.name for job in result.scenario.workload.jobs]
    for record in result.records:
        assert record.start is not None
        assert record.finish is not None
        assert record.submit <= record.start < record.finish


def test_the_same_scenario_gives_the_same_result(result: SimulationResult) -> None:
    again = simulate(scenario(result.scenario.policy))
    assert again.records == result.records
    assert again.spans == result.spans
    assert (again.round_times, again.contention, again.gpus_by_type) == (
        result.round_times,
        result.contention,
        result.gpus_by_type,
    )
    assert again.metrics == result.metrics


def test_no_more_gpus_are_held_than_there_are(result: SimulationResult) -> None:
    cluster = result.scenario.cluster
    for name, capacity in zip(cluster.type_names, cluster.capacity.tolist(), strict=True):
        assert max(result.gpus_by_type[name]) <= capacity
        held = sum(r.gpu_seconds.get(name, 0.0) for r in result.records)
        # Profiling runs beside the rounds, 20 s for each job and type.
        assert held <= capacity * result.end_time + 20.0 * len(result.records)


def fastest_rate(truth: Truth, kinds: tuple[str, ...]) -> float:
    """Return a bound on the effective samples per second of any configuration of the cluster.

    It takes the best batch size, no synchronisation and perfect scaling.
    """
    best = 0.0
    for kind in kinds:
        for batch in np.unique(
            np.geomspace(truth.smallest_per_gpu(kind), truth.largest_per_gpu(kind, 1), 40).astype(
                int
            )
        ):
            step = truth.step(kind, (1,), int(batch))
            best = max(best, int(batch) / (step.step_seconds - step.sync_seconds))
    return best * 8 / truth.slowdown


def test_no_job_is_faster_than_the_hardware(result: SimulationResult) -> None:
    models = result.scenario.models
    for record, job in zip(result.records, result.scenario.workload.jobs, strict=True):
        truth = models[job.model].truth
        kinds = tuple(k for k in truth.gpu_types() if k in result.scenario.cluster.type_names)
        assert record.jct is not None
        assert record.jct >= models[job.model].work * job.work_scale / fastest_rate(truth, kinds)


def test_a_job_waits_for_its_profiling_and_its_round(result: SimulationResult) -> None:
    for record in result.records:
        assert record.queueing_delay is not None
        assert record.queueing_delay >= 20.0


def test_figures_follow_from_the_records(result: SimulationResult) -> None:
    summary = result.summary()
    jcts = [r.jct for r in result.records if r.jct is not None]
    assert summary["avg_jct_hours"] == pytest.approx(sum(jcts) / len(jcts) / 3600)
    held = sum(sum(r.gpu_seconds.values()) for r in result.records)
    assert summary["gpu_hours_per_job"] == pytest.approx(held / len(jcts) / 3600)
    assert summary["contention_max"] == max(result.contention)
    assert summary["rounds"] == result.rounds >= len(result.round_times)


def test_utilisation_follows_from_the_gpus_held_in_each_round(result: SimulationResult) -> None:
    busy = [r for r, active in enumerate(result.contention) if active]
    held = sum(counts[r] for counts in result.gpus_by_type.values() for r in busy)
    assert result.metrics.utilisation_busy == pytest.approx(
        held / (result.scenario.cluster.gpu_count * len(busy))
    )
    assert 0.0 < result.metrics.utilisation <= 1.0


def test_without_failures_none_are_counted(result: SimulationResult) -> None:
    assert (
        result.metrics.failures,
        result.metrics.interruptions,
        result.metrics.lost_gpu_hours,
    ) == (0, 0, 0.0)


def test_spans_begin_when_jobs_begin_and_tell_every_change(result: SimulationResult) -> None:
    for record in result.records:
        mine = [span for span in result.spans if span.job == record.name]
        assert mine[0].start == record.start
        assert len([s for s in mine if s.gpu_type is not None]) == record.restarts + 1
        assert all(a.start < b.start for a, b in pairwise(mine))


# ---- switches


def test_ordering_policies_give_every_job_what_its_trace_asks_for() -> None:
    asked = {job.name: job.gpu_count for job in played("fifo").scenario.workload.jobs}
    assert {s.job: s.gpu_count for s in played("fifo").spans if s.gpu_type} == asked
    assert played("fifo").metrics.restarts_per_job == 0.0


def test_a_fidelity_sets_the_policys_parameters_unless_the_caller_does() -> None:
    preset = scenario(conditions=Conditions(fidelity("sia-artifact")))
    published = {
        "row_unit": RowUnit.REPLICA,
        "only_placeable": False,
        "scale_up_base": ScaleUpBase.LARGEST,
        "utility_decimals": 2,
    }
    published["young_move_freely"] = True
    assert World.of(preset).policy == Sia(**published, beyond_largest_batch=True, random_ties=True)
    assert World.of(preset).placer == WholeNode(evict=Eviction.EVERYBODY, spread=True)
    own = replace(preset, policy_parameters={"utility_decimals": None, "p": 0.5})
    assert World.of(own).policy == Sia(
        **{**published, "utility_decimals": None},
        p=0.5,
        beyond_largest_batch=True,
        random_ties=True,
    )
    assert World.of(scenario()).policy == Sia()


def test_the_switches_of_a_fidelity_change_what_happens() -> None:
    spans = {
        name: simulate(scenario(conditions=Conditions(FIDELITIES[name]), max_rounds=40)).spans
        for name in FIDELITIES
    }
    assert len(set(spans.values())) == len(FIDELITIES)


def test_an_oracle_needs_no_trial() -> None:
    knowing = simulate(
        scenario(conditions=Conditions(replace(fidelity("paper"), profiling=ProfilingMode.ORACLE)))
    )
    assert knowing.complete
    assert min(r.queueing_delay or 0.0 for r in knowing.records) < 20.0, (
        "nobody waits to be profiled"
    )


def test_the_rounds_of_a_policy_may_be_made_longer() -> None:
    slow = simulate(scenario("fifo", conditions=Conditions(round_seconds=300.0)))
    assert set(np.diff(slow.round_times).tolist()) == {300.0}


def test_an_unknown_fidelity_policy_or_parameter_is_refused() -> None:
    with pytest.raises(
        UnknownNameError,
        match=(
            r"fidelity: is no fidelity that Maat has \(got 'exact'\). Use one of: "
            r"paper, sia-artifact"
        ),
    ):
        fidelity("exact")
    with pytest.raises(UnknownNameError, match="policy: is no policy"):
        simulate(scenario("lifo"))
    with pytest.raises(ParameterError, match="speed: is no parameter of sia"):
        simulate(scenario(policy_parameters={"speed": 1}))


# ---- progress, cancelling, and jobs that cannot run


def test_progress_is_told_after_every_round_that_was_played_and_every_stretch_that_was_not() -> (
    None
):
    seen: list[Position] = []
    result = simulate(scenario("fifo"), on_progress=seen.append)
    numbers = [p.round_number for p in seen]
    assert (numbers, numbers[-1]) == (sorted(set(numbers)), result.rounds)
    assert [p.finished for p in seen] == sorted(p.finished for p in seen)
    assert (seen[-1].finished, seen[-1].jobs) == (10, 10)


def test_a_cancelled_simulation_keeps_what_was_done() -> None:
    whole = played("fifo")

    def stop(position: Position) -> None:
        if position.finished >= 3:
            raise Cancelled

    part = simulate(scenario("fifo"), on_progress=stop)
    assert not part.complete
    assert 0 < len(part.round_times) < len(whole.round_times)
    assert part.round_times == whole.round_times[: len(part.round_times)]
    done = [r for r in part.records if r.finish is not None]
    assert len(done) >= 3
    assert all(r in whole.records for r in done)
    assert part.metrics.unfinished == len(part.records) - len(done)


def workload(*jobs: TraceJob) -> Workload:
    return Workload("by hand", jobs, "sia")


def test_a_job_that_no_type_of_the_cluster_runs_is_refused_by_row() -> None:
    jobs = workload(
        TraceJob(name="fine", submit_seconds=0.0, model="cifar10", gpu_count=1),
        TraceJob(name="lost", submit_seconds=0.0, model="cifar10", gpu_count=1),
    )
    with pytest.raises(
        TraceError,
        match=r"by hand, row 2: application: cannot run on any GPU type of this cluster \(h100\)",
    ):
        simulate(Scenario(jobs, catalog_models(), Cluster.parse("h100=1x4")))


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_a_job_that_asks_for_more_than_the_cluster_ends_the_simulation_unfinished(
    policy: str,
) -> None:
    jobs = workload(
        TraceJob(name="huge", submit_seconds=0.0, model="cifar10", gpu_count=100, work_scale=0.01),
        TraceJob(name="small", submit_seconds=0.0, model="cifar10", gpu_count=1, work_scale=0.01),
    )
    result = simulate(scenario(policy, workload=jobs))
    assert not result.complete
    assert [r.finish is None for r in result.records] == [True, False]
    assert len(result.round_times) < 100


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_trace_may_ask_for_more_gpus_than_are_of_use_to_a_model(policy: str) -> None:
    jobs = workload(
        TraceJob(name="wide", submit_seconds=0.0, model="ncf", gpu_count=80, work_scale=0.01)
    )
    result = simulate(
        scenario(policy, workload=jobs, cluster=Cluster.parse("t4=20x8"), max_rounds=200)
    )
    assert len(result.records) == 1


def test_a_run_counts_its_own_seconds_whatever_the_process_did_before() -> None:
    before = time.process_time()
    first = simulate(scenario("fifo"))
    second = simulate(scenario("fifo"))
    together = time.process_time() - before
    assert min(first.cpu_seconds, second.cpu_seconds) > 0.0
    assert first.cpu_seconds + second.cpu_seconds <= together


def test_an_empty_workload_is_over_at_once() -> None:
    result = simulate(scenario(workload=workload()))
    assert result.complete
    assert result.records == ()
    assert result.metrics.avg_jct_hours == 0.0


# ---- near the published figures (sia.md, section 2)


@pytest.fixture(scope="module")
def measured(data_folder: Path) -> Mapping[str, Model]:
    return measured_models(data_folder / "sia-artifact" / "profiles")


def published(
    data_folder: Path,
    models: Mapping[str, Model],
    name: str,
    preset: str,
    *,
    cluster: str = PAPER_CLUSTER,
    seed: int = 0,
) -> ScheduleMetrics:
    trace = read_workload(
        data_folder / "sia-artifact" / "workloads" / f"{name}.csv", known_models=models
    )
    return simulate(
        Scenario(
            trace,
            models,
            Cluster.parse(cluster),
            conditions=Conditions(fidelity=FIDELITIES[preset]),
            seed=seed,
        )
    ).metrics


def assert_near(found: ScheduleMetrics, figures: tuple[float, float, float, float, float]) -> None:
    """Assert that figures are as near as those of two valid solvers on one trace.

    For GPU-hours and restarts, give the mean of several traces.
    """
    avg_jct_hours, p99_jct_hours, makespan_hours, gpu_hours_per_job, restarts_per_job = figures
    assert found.unfinished == 0
    assert found.avg_jct_hours == pytest.approx(avg_jct_hours, rel=0.05)
    assert found.p99_jct_hours == pytest.approx(p99_jct_hours, rel=0.20)
    assert found.makespan_hours == pytest.approx(makespan_hours, rel=0.07)
    assert found.gpu_hours_per_job == pytest.approx(gpu_hours_per_job, rel=0.12)
    assert found.restarts_per_job == pytest.approx(restarts_per_job, rel=0.12)


@pytest.mark.needs_data
def test_the_published_rules_give_the_published_figures(
    data_folder: Path, measured: Mapping[str, Model]
) -> None:
    found = published(data_folder, measured, "philly/workload-1", "sia-artifact")
    assert_near(found, (0.542, 7.89, 15.53, 4.03, 4.26))
    assert found.contention_mean == pytest.approx(5.6, rel=0.10)


@pytest.mark.needs_data
@pytest.mark.long
def test_the_papers_rules_come_close_to_the_published_figure(
    data_folder: Path, measured: Mapping[str, Model]
) -> None:
    found = published(data_folder, measured, "philly/workload-1", "paper")
    assert found.unfinished == 0
    assert found.avg_jct_hours == pytest.approx(0.542, rel=0.15)


@pytest.mark.needs_data
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("philly/workload-2", (0.747, 10.70, 13.26, 3.51, 4.54)),
        ("saturn/workload-1", (0.581, 7.71, 12.46, 3.61, 4.12)),
        ("saturn/workload-2", (0.715, 9.17, 12.98, 3.58, 4.22)),
        ("newtrace/workload-1", (0.803, 5.18, 50.98, 2.88, 4.83)),
    ],
)
def test_the_published_rules_give_the_published_figures_on_other_traces(
    data_folder: Path,
    measured: Mapping[str, Model],
    name: str,
    figures: tuple[float, float, float, float, float],
) -> None:
    assert_near(published(data_folder, measured, name, "sia-artifact"), figures)


@pytest.mark.needs_data
@pytest.mark.long
def test_the_published_rules_give_the_published_figures_on_one_gpu_type(
    data_folder: Path, measured: Mapping[str, Model]
) -> None:
    found = published(data_folder, measured, "philly/workload-1", "sia-artifact", cluster="t4=16x4")
    assert found.avg_jct_hours == pytest.approx(1.679, rel=0.05)
    assert found.p99_jct_hours == pytest.approx(16.27, rel=0.20)
    assert found.makespan_hours == pytest.approx(23.91, rel=0.07)
    assert found.gpu_hours_per_job == pytest.approx(9.07, rel=0.10)


def test_a_job_that_never_runs_is_named_with_what_keeps_it_waiting() -> None:
    jobs = (
        TraceJob(name="big", submit_seconds=0.0, model="bert", gpu_count=12, batch_size=96),
        TraceJob(
            name="ok",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=2,
            batch_size=256,
            work_scale=0.05,
        ),
    )
    result = simulate(
        Scenario(
            Workload("two", jobs, "sia"),
            catalog_models(),
            Cluster.parse("t4=2x4"),
            policy="fifo",
            placer="packed-sticky",
        )
    )

    assert dict(result.unfinished_because) == {
        "big": "It needs more GPUs of one type than this cluster has in service."
    }
    summary = result.summary()
    assert summary["avg_jct_hours_large"] is None
    assert summary["avg_jct_hours_small"] == summary["avg_jct_hours"] != 0


@pytest.mark.parametrize(
    ("policy", "placer", "many"),
    [("fifo", "packed-sticky", 0), ("fifo", "pal", 1), ("sjf-bsbf", "pal", 2)],
)
def test_a_summary_notes_what_a_policy_or_placer_lacks(policy: str, placer: str, many: int) -> None:
    jobs = (
        TraceJob(
            name="ok",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=2,
            batch_size=256,
            work_scale=0.01,
        ),
    )
    scenario = Scenario(
        Workload("one", jobs, "sia"),
        catalog_models(),
        Cluster.parse("t4=2x4"),
        policy=policy,
        placer=placer,
    )

    assert len(simulate(scenario).summary()["notes"]) == many  # type: ignore[arg-type]


@pytest.mark.parametrize("many", [0, 2])
def test_a_run_says_in_how_many_rounds_a_clock_ended_a_solver(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = Fifo.allocate
    timed = {True: SolveReport(out_of_time=True), False: SolveReport()}
    monkeypatch.setattr(
        Fifo,
        "allocate",
        lambda self, given: replace(decide(self, given), report=timed[given.round_number <= many]),
    )
    jobs = (
        TraceJob(
            name="ok",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=2,
            batch_size=256,
            work_scale=0.05,
        ),
    )
    scenario = Scenario(
        Workload("one", jobs, "sia"),
        catalog_models(),
        Cluster.parse("t4=2x4"),
        policy="fifo",
        placer="packed-sticky",
    )

    result = simulate(scenario)

    assert len(result.round_times) > 2
    assert result.rounds_out_of_time == result.summary()["rounds_out_of_time"] == many
    notes = (
        [f"The solver's time ran out in {many} rounds: another machine may get another result."]
        if many
        else []
    )
    assert result.summary()["notes"] == notes
