"""Tests of PAL's simulated traces: their models, the rules of PAL's simulator, and its figures."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulation.small import under

from maat.laboratory.content import content_key
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import VariabilityError
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import fidelity
from maat.simulation.iteration_models import iteration_models, shipped_models
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.variability import Measurements, Variability, read_variability
from maat.simulation.world import World
from maat.vocabulary import Adaptivity, ScoreDraw
from maat.workloads.reading import read_workload
from maat.workloads.workloads import TraceJob, Workload

ARTIFACT = fidelity("pal-artifact")
HEADER = "job_id,num_gpus,submit_time,duration,model\n"
RESNET_SECONDS = 1754.0429367763434  # of 10,000 iterations


def played(*jobs: TraceJob, **changes: Any) -> SimulationResult:
    """These jobs on two nodes of four V100s under the published simulator's rules."""
    workload = Workload("few", tuple(jobs), "pal")
    cluster = changes.pop("cluster", "v100=2x4")
    parts = {
        name: changes.pop(name, own)
        for name, own in (("policy", "fifo"), ("placer", "packed-sticky"))
    }
    conditions = Conditions(**{"fidelity": ARTIFACT, **changes})
    return simulate(
        Scenario(workload, shipped_models(), Cluster.parse(cluster), **parts, conditions=conditions)
    )


def alone(model: str, iterations: float, gpus: int = 1, **changes: Any) -> float:
    """Finish of one job that is submitted at 0."""
    finish = (
        played(
            TraceJob(
                name="a", submit_seconds=0.0, model=model, gpu_count=gpus, work_scale=iterations
            ),
            **changes,
        )
        .records[0]
        .finish
    )
    assert finish is not None
    return finish


# ---- models and traces


def test_iteration_times_are_the_published_ones_to_the_last_digit() -> None:
    seconds = {
        name: model.truth.step("v100", (1,), 1).step_seconds
        for name, model in iteration_models().items()
    }
    assert seconds == {
        "BERT": 0.179,
        "DCGAN": 0.0469266931,
        "GPT2": 3.5714,
        "PointNet": 0.28125,
        "resnet50": 0.17540429367763434,
        "vgg19": 0.300610341,
    }


def test_a_job_lasts_its_iterations_times_their_seconds_on_any_number_of_gpus_of_a_node() -> None:
    exact = replace(ARTIFACT, completion_at_round_end=False)
    for gpus in (1, 3, 4):
        assert alone("resnet50", 10_000, gpus, fidelity=exact) == pytest.approx(RESNET_SECONDS)
    assert alone("GPT2", 100.5, fidelity=exact) == pytest.approx(100.5 * 3.5714)


def test_across_nodes_an_iteration_takes_longer_by_the_models_penalty_or_the_scenarios() -> None:
    exact = replace(ARTIFACT, completion_at_round_end=False)
    assert alone("resnet50", 10_000, 6, fidelity=exact) == pytest.approx(1.7 * RESNET_SECONDS)
    assert alone(
        "resnet50", 10_000, 6, fidelity=exact, locality_penalties={"resnet50": 1.25}
    ) == pytest.approx(1.25 * RESNET_SECONDS)
    assert alone(
        "resnet50", 10_000, 6, fidelity=exact, locality_penalties={"vgg19": 1.25}
    ) == pytest.approx(1.7 * RESNET_SECONDS)


def test_a_penalty_may_be_given_to_models_whose_step_times_were_measured() -> None:
    job = TraceJob(
        name="a", submit_seconds=0.0, model="cifar10", gpu_count=8, batch_size=1024, work_scale=0.05
    )
    near, far = (
        simulate(
            Scenario(
                Workload("one", (job,), "sia"),
                shipped_models(),
                Cluster.parse("t4=2x4"),
                policy="fifo",
                placer="packed",
                conditions=Conditions(locality_penalties=given),
            )
        )
        for given in ({}, {"cifar10": 2.0})
    )
    assert near.metrics.avg_jct_hours < far.metrics.avg_jct_hours < 2 * near.metrics.avg_jct_hours


def test_a_trace_job_of_such_a_model_is_rigid_whatever_share_of_jobs_shall_be_adaptive() -> None:
    model = iteration_models()["vgg19"]
    spec = model.job_spec(
        TraceJob(name="a", submit_seconds=0.0, model="vgg19", gpu_count=12, work_scale=5.0),
        ARTIFACT,
        adaptivity=Adaptivity.ADAPTIVE,
    )
    assert (spec.adaptivity, spec.gpu_count, spec.variability_class) == (Adaptivity.RIGID, 12, "C")
    assert (
        model.job_spec(
            TraceJob(name="a", submit_seconds=0.0, model="vgg19", gpu_count=12), fidelity("paper")
        ).variability_class
        == "A"
    )


@pytest.mark.parametrize("policy", ["sia", "fifo", "srtf"])
def test_every_policy_runs_them_and_profiles_them_where_the_fidelity_says_so(policy: str) -> None:
    jobs = (
        TraceJob(name="a", submit_seconds=0.0, model="resnet50", gpu_count=4, work_scale=2000.0),
        TraceJob(name="b", submit_seconds=0.0, model="vgg19", gpu_count=1, work_scale=2000.0),
    )
    result = played(
        *jobs,
        policy=policy,
        placer="whole-node" if policy == "sia" else "pal",
        fidelity=fidelity("paper"),
    )
    assert result.complete
    assert [record.gpu_seconds["v100"] for record in result.records] == pytest.approx(
        [20 + 4 * 0.2 * RESNET_SECONDS, 20 + 2000 * 0.300610341]
    )


# ---- the rules of the published simulator


def test_jobs_begin_and_end_with_rounds_and_restart_for_nothing() -> None:
    result = played(
        TraceJob(
            name="a", submit_seconds=1.0, model="resnet50", gpu_count=1, work_scale=361 / 0.1755
        )
    )
    assert result.round_times[1] == 360.0
    assert (result.records[0].start, result.records[0].finish) == (360.0, 1080.0)


def test_rounds_may_be_made_shorter_than_the_published_ones() -> None:
    assert (
        played(
            TraceJob(name="a", submit_seconds=0.0, model="resnet50", gpu_count=1, work_scale=10.0),
            round_seconds=60.0,
        )
        .records[0]
        .finish
        == 60.0
    )


def test_the_placers_parameters_are_the_fidelitys_unless_the_caller_sets_them() -> None:
    scenario = Scenario(
        Workload("none", (), "pal"),
        {},
        Cluster.parse("v100=1x4"),
        placer="pal",
        conditions=Conditions(fidelity=ARTIFACT),
    )
    assert World.of(scenario).placer == PLACERS.build("pal", {"binning": "two"})
    own = replace(scenario, placer_parameters={"binning": "silhouette"})
    assert World.of(own).placer == PLACERS.build("pal")


def test_waiting_counts_every_time_without_gpus_and_queueing_only_the_first() -> None:
    two = [
        TraceJob(
            name=name, submit_seconds=0.0, model="resnet50", gpu_count=1, work_scale=700 / 0.1755
        )
        for name in ("a", "b")
    ]
    result = played(
        *two,
        TraceJob(name="late", submit_seconds=100.0, model="resnet50", gpu_count=1, work_scale=10.0),
        policy="las",
        placer="packed",
        cluster="v100=1x1",
    )
    figures = [(record.queueing_delay, record.waited, record.jct) for record in result.records]
    assert figures == [(0.0, 720.0, 1440.0), (360.0, 1080.0, 1800.0), (620.0, 620.0, 980.0)]
    assert result.metrics.avg_waiting_hours * 3600 == pytest.approx((720 + 1080 + 620) / 3)


def test_under_the_published_rules_no_policy_lets_a_job_pass_one_that_does_not_fit() -> None:
    jobs = [
        TraceJob(
            name=name, submit_seconds=float(at), model="resnet50", gpu_count=gpus, work_scale=scale
        )
        for at, (name, gpus, scale) in enumerate(
            [("first", 6, 1.0), ("wide", 4, 2.0), ("small", 1, 3.0)]
        )
    ]
    jobs = [replace(job, work_scale=job.work_scale * 350 / 0.1755) for job in jobs]
    for policy in ("las", "srtf", "sjf", "tiresias"):
        starts = {
            record.name: record.start
            for record in played(*jobs, policy=policy, placer="packed").records
        }
        assert starts["small"] >= starts["wide"], policy


def test_las_counts_time_alone_under_the_published_rules() -> None:
    jobs = [
        TraceJob(
            name="wide", submit_seconds=0.0, model="resnet50", gpu_count=4, work_scale=3000 / 0.1755
        ),
        TraceJob(
            name="narrow",
            submit_seconds=0.0,
            model="resnet50",
            gpu_count=1,
            work_scale=3000 / 0.1755,
        ),
    ]
    records = played(*jobs, policy="las", placer="packed", cluster="v100=1x4").records
    assert abs(records[0].gpu_seconds["v100"] / 4 - records[1].gpu_seconds["v100"]) < 360
    assert [record.waited for record in records] == [8 * 360.0, 9 * 360.0], (
        "they take turns, though one takes four times the GPUs"
    )


@pytest.mark.parametrize("placer", ["pal", "pm-first"])
def test_beside_placers_that_mark_the_queue_nobody_passes_the_mark_in_the_paper_either(
    placer: str,
) -> None:
    scenario = Scenario(
        Workload("none", (), "pal"), {}, Cluster.parse("v100=1x4"), policy="las", placer=placer
    )
    assert World.of(scenario).policy == POLICIES.build("las", {"head_of_line": "block"})
    assert World.of(
        replace(scenario, policy_parameters={"head_of_line": "backfill"})
    ).policy == POLICIES.build("las")
    assert World.of(replace(scenario, placer="packed")).policy == POLICIES.build("las")
    assert World.of(replace(scenario, policy="sia")).policy == POLICIES.build("sia")


# ---- unequal GPUs


def unequal(*times: float) -> Variability:
    """GPUs that were measured once each, alike for every application."""
    found = Measurements(np.array(times), np.arange(len(times)))
    return Variability(
        {("v100", application): found for application in ("resnet", "bert", "pagerank")}
    )


def test_the_slowest_gpu_sets_the_pace_and_nodes_apart_multiply_it() -> None:
    medians = replace(
        ARTIFACT, completion_at_round_end=False, variability=fidelity("paper").variability
    )
    slow = unequal(*[2.0] * 7, 3.0)
    assert alone("resnet50", 10_000, 8, fidelity=medians, variability=slow) == pytest.approx(
        1.5 * 1.7 * RESNET_SECONDS
    )
    assert alone(
        "resnet50", 10_000, 7, fidelity=medians, variability=slow, placer="pm-first"
    ) == pytest.approx(1.7 * RESNET_SECONDS)
    assert alone(
        "resnet50", 10_000, 4, fidelity=medians, variability=slow, placer="pal"
    ) == pytest.approx(RESNET_SECONDS)


def test_a_model_without_a_class_minds_no_gpu() -> None:
    classless = replace(ARTIFACT, variability=replace(ARTIFACT.variability, classes={}))
    assert alone("resnet50", 2000, 4, fidelity=classless, variability=unequal(2.0, 3.0)) == 360.0


def test_what_was_measured_the_draw_and_the_penalties_are_part_of_a_results_key() -> None:
    job = TraceJob(name="a", submit_seconds=0.0, model="resnet50", gpu_count=4, work_scale=2000.0)
    base = Scenario(
        Workload("one", (job,), "pal"),
        shipped_models(),
        Cluster.parse("v100=2x4"),
        policy="fifo",
        placer="pal",
        conditions=Conditions(fidelity=ARTIFACT),
    )
    rows = replace(base.conditions.fidelity.variability, draw=ScoreDraw.MEDIANS)
    others = [
        under(base, variability=unequal(*range(1, 9))),
        under(base, variability=unequal(*range(2, 10))),
        under(
            base, variability=unequal(*range(1, 9)), fidelity=replace(ARTIFACT, variability=rows)
        ),
        under(base, locality_penalties={"resnet50": 1.2}),
    ]
    keys = [content_key(scenario) for scenario in (base, *others)]
    assert len(set(keys)) == len(keys)
    assert content_key(under(base, variability=unequal(*range(1, 9)))) == keys[1]
    assert content_key(under(base, locality_penalties={"vgg19": 1.2})) == keys[0], "no job of it"


def test_a_cluster_of_gpus_that_nobody_measured_is_refused() -> None:
    job = TraceJob(name="a", submit_seconds=0.0, model="imagenet", gpu_count=1, work_scale=0.01)
    scenario = Scenario(
        Workload("one", (job,), "sia"),
        shipped_models(),
        Cluster.parse("t4=1x4"),
        conditions=Conditions(variability=unequal(1.0, 2.0)),
    )
    with pytest.raises(
        VariabilityError,
        match=(
            r"gpu_type: has no measurements of resnet \(class A\) \(got 't4'\). Measured are: v100"
        ),
    ):
        simulate(scenario)


# ---- the published simulator's figures (average JCT in seconds on workload 1)


@pytest.fixture(scope="module")
def published(data_folder: Path) -> Mapping[str, Any]:
    return {
        "workload": read_workload(
            data_folder / "pal/traces/workload-1.csv", known_models=shipped_models()
        ),
        "variability": read_variability(data_folder / "pal/variability", gpu_types=("v100",)),
    }


def on_workload_1(published: Mapping[str, Any], placer: str, **changes: Any) -> SimulationResult:
    conditions = Conditions(fidelity=ARTIFACT, variability=published["variability"])
    parts = {
        "cluster": Cluster.parse("v100=16x4"),
        "policy": "fifo",
        "workload": published["workload"],
        **changes,
    }
    result = simulate(
        Scenario(models=shipped_models(), placer=placer, conditions=conditions, **parts)
    )
    assert result.complete
    return result


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("placer", "average_seconds", "rounds"),
    [
        ("packed-sticky", 30_243.99375, 1516),
        ("pal", 25_300.74375, 629),
        ("packed", 30_034.74375, 743),
    ],
)
def test_the_published_simulators_average_jct_is_met_exactly(
    published: Mapping[str, Any], placer: str, average_seconds: float, rounds: int
) -> None:
    """As published with the libraries that its requirements pin: 30,244, 25,300.74 and 30,035 s."""
    result = on_workload_1(published, placer)
    assert result.metrics.avg_jct_hours * 3600 == pytest.approx(average_seconds, rel=1e-12)
    assert len(result.round_times) == rounds


@pytest.mark.needs_data
def test_pm_first_is_one_round_of_one_job_from_what_was_published_with_newer_libraries(
    published: Mapping[str, Any],
) -> None:
    """25,467 s, to which the 160 jobs' whole rounds of 360 s leave one reading."""
    result = on_workload_1(published, "pm-first")
    assert result.metrics.avg_jct_hours * 3600 + 360 / 160 == pytest.approx(25_467.24375, rel=1e-12)


@pytest.mark.needs_data
@pytest.mark.parametrize("placer", ["random", "random-sticky"])
def test_random_placement_draws_what_the_published_code_draws(
    published: Mapping[str, Any], placer: str
) -> None:
    """The rule is written out here: Python's random with seed 42 draws scores, then placements."""
    result = on_workload_1(published, placer)
    finishes = plain_random_fifo(
        published["workload"].jobs, published["variability"], sticky=placer == "random-sticky"
    )
    assert {record.name: record.finish for record in result.records} == finishes


def plain_random_fifo(
    jobs: Sequence[TraceJob], variability: Variability, *, sticky: bool
) -> dict[str, float]:
    """First come, first served on 16 nodes of 4, round by round: when each job ends."""
    chance, profiles = random.Random(42), ARTIFACT.variability.profiles
    rows = {
        name: variability.measured["v100", application].rows()
        for name, application in profiles.items()
    }
    scores = [{name: chance.choice(rows[name]) for name in sorted(profiles)} for _ in range(64)]
    held: dict[str, list[int]] = {}
    done: dict[str, float] = {}
    finishes: dict[str, float] = {}
    now = 0
    while len(finishes) < len(jobs):
        for job in jobs:
            gpus = held.get(job.name, [])
            if gpus:
                slow = max(scores[gpu][ARTIFACT.variability.classes[job.model]] for gpu in gpus)
                apart = 1.7 if len({gpu // 4 for gpu in gpus}) > 1 else 1.0
                seconds = (
                    iteration_models()[job.model].truth.step("v100", (1,), 1).step_seconds
                    * slow
                    * apart
                )
                done[job.name] = done.get(job.name, 0.0) + 360 / seconds
                if done[job.name] >= job.work_scale:
                    finishes[job.name] = float(now)
                    del held[job.name]
        if not sticky:
            held = {}
        for job in jobs:
            if job.submit_seconds <= now and job.name not in finishes and job.name not in held:
                free = sorted(set(range(64)) - {gpu for gpus in held.values() for gpu in gpus})
                if len(free) < job.gpu_count:
                    break
                held[job.name] = chance.sample(free, job.gpu_count)
        now += 360
    return finishes


def test_without_scores_to_draw_random_placement_begins_with_the_seed() -> None:
    first, again, other = (played_at_random(seed) for seed in (0, 0, 1))
    assert first == again != other


def played_at_random(seed: int) -> list[float | None]:
    jobs = tuple(
        TraceJob(
            name=str(number),
            submit_seconds=0.0,
            model="resnet50",
            gpu_count=2,
            work_scale=4000.0 * (number + 1),
        )
        for number in range(6)
    )
    scenario = Scenario(
        Workload("few", jobs, "pal"),
        shipped_models(),
        Cluster.parse("v100=4x4"),
        policy="fifo",
        placer="random",
        conditions=Conditions(
            fidelity=replace(ARTIFACT, variability=replace(ARTIFACT.variability, draw_seed=None))
        ),
        seed=seed,
    )
    return [record.finish for record in simulate(scenario).records]


@pytest.mark.needs_data
@pytest.mark.parametrize("number", [1, 2, 3])
def test_published_traces_are_read_whole(data_folder: Path, number: int) -> None:
    workload = read_workload(
        data_folder / f"pal/traces/workload-{number}.csv", known_models=shipped_models()
    )
    assert (workload.format, len(workload)) == ("pal", 160)
