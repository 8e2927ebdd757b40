"""Tests of finish-time fairness of simulations: the jobs alone, both rules, published figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maat.laboratory.fairness import Fairness, IsolatedRuns, contention_of_life, fairness
from maat.scheduling.belief import Belief, MemoisingFitter
from maat.scheduling.believed_life import BelievedLife, GradientAt, believed_isolated_seconds
from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.executor import epoch_ends
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.profiling import PROFILED_BATCH_SIZES, profile_shape
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.simulated_job import SimulatedJob
from maat.simulation.world import World
from maat.simulation.world_models import catalog_models, measured_models
from maat.vocabulary import FairnessRule, WorkloadKind
from maat.workloads.reading import read_workload
from maat.workloads.workloads import TraceJob, Workload

PAPER_CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"


def played(*jobs: TraceJob, policy: str = "sia") -> SimulationResult:
    placer = "whole-node" if policy == "sia" else "packed-sticky"
    workload = Workload("hand-made", jobs, "sia")
    return simulate(
        Scenario(
            workload,
            catalog_models(),
            Cluster.parse("t4=2x4,a100=1x4"),
            policy=policy,
            placer=placer,
        )
    )


def few() -> list[TraceJob]:
    return [
        TraceJob(
            name=f"job-{i}",
            submit_seconds=60.0 * i,
            model=model,
            gpu_count=1,
            batch_size=128,
            work_scale=0.05,
        )
        for i, model in enumerate(("cifar10", "bert", "cifar10"))
    ]


def test_a_job_that_waits_for_its_gpus_is_worse_off_than_one_that_does_not() -> None:
    jobs = [
        TraceJob(
            name="first",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=8,
            batch_size=1024,
            work_scale=0.1,
        ),
        TraceJob(
            name="second",
            submit_seconds=0.0,
            model="cifar10",
            gpu_count=8,
            batch_size=1024,
            work_scale=0.1,
        ),
    ]
    found = fairness(played(*jobs, policy="fifo")).rho
    assert found["second"] > found["first"]


def test_a_lone_job_under_sia_is_treated_fairly() -> None:
    found = fairness(
        played(
            TraceJob(
                name="lone",
                submit_seconds=0.0,
                model="cifar10",
                gpu_count=1,
                batch_size=128,
                work_scale=0.2,
            )
        )
    )
    assert found.worst <= 1.2
    assert list(found.rho) == ["lone"]


def test_batch_inference_is_measured_against_itself_alone_and_a_promised_latency_against_nothing() -> (  # noqa: E501
    None
):
    batch = TraceJob(
        name="batch",
        submit_seconds=0.0,
        model="bert",
        gpu_count=1,
        batch_size=None,
        work_scale=0.02,
        workload_kind=WorkloadKind.BATCH_INFERENCE,
    )
    training = replace(batch, name="training", workload_kind=WorkloadKind.TRAINING)
    service = TraceJob(
        name="service",
        submit_seconds=0.0,
        model="bert",
        gpu_count=1,
        batch_size=16,
        work_scale=0.001,
        workload_kind=WorkloadKind.LATENCY_INFERENCE,
        promised_seconds=60.0,
    )
    result = played(batch, training, service)
    alone = IsolatedRuns(result.scenario)
    assert {record.name for record in result.records if record.finish is not None} == {
        "batch",
        "training",
        "service",
    }
    assert set(fairness(result, alone=alone).rho) == {"batch", "training"}
    share = {"t4": 2.0, "a100": 2.0}
    assert all(
        alone.by_type(batch, share)[kind] < seconds
        for kind, seconds in alone.by_type(training, share).items()
    )


def test_a_job_alone_keeps_to_what_its_owner_lets_it_have() -> None:
    free = TraceJob(
        name="free",
        submit_seconds=0.0,
        model="cifar10",
        gpu_count=1,
        batch_size=128,
        work_scale=0.05,
    )
    alone = IsolatedRuns(played(free).scenario)
    bounded, picky = replace(free, max_gpus=1), replace(free, gpu_types=("t4",))
    small = replace(free, max_batch_size=128)
    one, two, four = ({"t4": gpus, "a100": gpus} for gpus in (1.0, 2.0, 4.0))
    assert alone.by_type(bounded, four) == pytest.approx(alone.by_type(free, one))
    assert alone.by_type(free, four)["t4"] < alone.by_type(bounded, four)["t4"]
    assert set(alone.by_type(picky, two)) == {"t4"}
    assert alone.by_type(small, four)["t4"] > alone.by_type(free, four)["t4"]


def test_the_published_rule_gives_no_job_a_larger_rho() -> None:
    result = played(*few())
    paper, published = fairness(result), fairness(result, rule=FairnessRule.RATIO_TO_MEAN)
    assert (paper.rule, published.rule) == (FairnessRule.MEAN_OF_RATIOS, FairnessRule.RATIO_TO_MEAN)
    assert all(published.rho[name] <= paper.rho[name] + 1e-12 for name in paper.rho)
    assert published.mean < paper.mean


def test_by_the_share_of_each_type_a_job_alone_has_fewer_gpus() -> None:
    result = played(
        *[
            TraceJob(
                name=f"job-{i}",
                submit_seconds=0.0,
                model="cifar10",
                gpu_count=1,
                batch_size=128,
                work_scale=0.05,
            )
            for i in range(4)
        ]
    )
    alone = IsolatedRuns(result.scenario)
    whole, of_type = (
        fairness(result, alone=alone, rule=rule)
        for rule in (FairnessRule.MEAN_OF_RATIOS, FairnessRule.SHARE_OF_TYPE)
    )
    record, job = result.records[0], result.scenario.workload.jobs[0]
    contention = contention_of_life(result, record.submit, record.finish or 0.0)
    isolated = alone.by_type(job, {"t4": 8 / contention, "a100": 4 / contention})
    assert of_type.rho["job-0"] == pytest.approx(
        sum(w * (record.jct or 0.0) / isolated[g] for g, w in (("t4", 2 / 3), ("a100", 1 / 3)))
    )
    assert of_type.rho["job-0"] != whole.rho["job-0"]


def test_on_one_type_both_shares_are_the_same() -> None:
    workload = Workload("hand-made", tuple(few()), "sia")
    result = simulate(Scenario(workload, catalog_models(), Cluster.parse("t4=2x4")))
    assert fairness(result).rho == fairness(result, rule=FairnessRule.SHARE_OF_TYPE).rho


def test_isolated_runs_may_be_shared_between_policies_and_change_nothing() -> None:
    results = [played(*few(), policy=policy) for policy in ("sia", "fifo")]
    shared = IsolatedRuns(results[0].scenario)
    for result in results:
        assert fairness(result, alone=shared) == fairness(result)


def test_the_figures_of_a_fairness_are_those_of_its_jobs() -> None:
    found = Fairness({"a": 0.5, "b": 0.6, "c": 1.3})
    assert (found.mean, found.median, found.worst) == (pytest.approx(0.8), 0.6, 1.3)
    assert found.unfair_fraction == pytest.approx(1 / 3)
    assert (
        Fairness({}).mean,
        Fairness({}).median,
        Fairness({}).worst,
        Fairness({}).unfair_fraction,
    ) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.needs_data
@pytest.mark.long
def test_rho_on_the_published_trace_is_near_the_published_figures(data_folder: Path) -> None:
    models = measured_models(data_folder / "sia-artifact" / "profiles")
    trace = read_workload(
        data_folder / "sia-artifact" / "workloads" / "philly" / "workload-1.csv",
        known_models=models,
    )
    result = simulate(
        Scenario(
            trace,
            models,
            Cluster.parse(PAPER_CLUSTER),
            conditions=Conditions(fidelity=FIDELITIES["sia-artifact"]),
        )
    )
    alone = IsolatedRuns(result.scenario)
    paper = fairness(result, alone=alone)
    published = fairness(result, alone=alone, rule=FairnessRule.RATIO_TO_MEAN)
    assert paper.mean == pytest.approx(0.742, rel=0.05)
    assert paper.worst == pytest.approx(1.109, rel=0.10)
    assert published.mean == pytest.approx(0.612, rel=0.05)
    assert published.worst == pytest.approx(1.035, rel=0.10)


def test_a_lone_job_by_a_complete_belief_takes_as_long_as_by_the_truth() -> None:
    scenario = played(*few()).scenario
    alone, world = IsolatedRuns(scenario), World.of(scenario)
    for job in scenario.workload.jobs:
        # Long, so that the minute in which an agent knows no gradients hardly counts.
        long = replace(job, work_scale=3.0)
        model = world.true_models[job.model]
        spec = model.job_spec(long, scenario.conditions.fidelity)
        lone = SimulatedJob(spec, model.truth, 0.0, (1.0,), model.truth.max_batch_size)
        fitter = MemoisingFitter()
        belief = Belief()
        for kind in scenario.cluster.type_names:
            shapes = [(1,), (2,), (4,), *([(4, 4)] if kind == "t4" else [])]
            for shape in shapes:
                samples = profile_shape(lone, kind, shape, PROFILED_BATCH_SIZES)
                belief = belief.with_samples(kind, samples, fitter=fitter)
        ends = epoch_ends(model.truth, long.work_scale, ())
        last = len(model.truth.epoch_ends) - 1
        gradients = [
            GradientAt(begin, model.truth.gradient(min(epoch, last), spec.initial_batch_size))
            for epoch, begin in enumerate((0.0, *ends[:-1]))
        ]
        life = BelievedLife(spec, belief, gradients, ends[-1])
        for contention in (1.0, 3.0, 12.0):
            believed = believed_isolated_seconds(life, scenario.cluster, contention=contention)
            shares = dict.fromkeys(believed, 12 / contention)
            truth = alone.by_type(long, shares)
            slower = model.truth.slowdown  # of which samples tell nothing
            for kind, seconds in believed.items():
                # Restarts are not slowed: only a share of one GPU is reached by a single start.
                near = 0.02 if contention == 12.0 else 0.16
                assert seconds * slower == pytest.approx(truth[kind], rel=near), (kind, contention)
