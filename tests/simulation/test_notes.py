"""What a reader is told besides the figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from simulation.small import under

from maat.laboratory.figures import figures_of
from maat.scheduling.cluster import Cluster
from maat.simulation.engine import simulate
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.interference import synthetic
from maat.simulation.iteration_models import shipped_models
from maat.simulation.notes import PlacerMoves, notes_before, notes_on, notes_on_all, notes_on_moves
from maat.simulation.record import Cancelled, Position
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs
from maat.simulation.variability import Measurements, Variability
from maat.vocabulary import TuningRule
from maat.workloads.workloads import TraceJob, Workload

JOBS = tuple(
    TraceJob(name=name, submit_seconds=at, model="resnet50", gpu_count=1, work_scale=2000.0)
    for name, at in (("a", 0.0), ("b", 90_000.0))
)
SCENARIO = Scenario(
    Workload("two", JOBS, "pal"),
    shipped_models(),
    Cluster.parse("v100=1x4"),
    "fifo",
    "packed-sticky",
)
MEASURED = Measurements(np.array([1.0, 2.0]), np.arange(2))
UNEQUAL = Variability(
    {("v100", application): MEASURED for application in ("resnet", "bert", "pagerank")}
)


def test_unequal_gpus_that_nobody_weighs_are_allowed_and_told() -> None:
    (note,) = notes_on(under(SCENARIO, variability=UNEQUAL))

    assert (
        note
        == "GPUs differ in speed, which neither fifo nor packed-sticky weighs: the jobs bear it."
    )
    assert notes_on(SCENARIO) == ()


def test_a_penalty_of_a_model_that_no_job_is_of_is_told() -> None:
    (note,) = notes_on(under(SCENARIO, locality_penalties={"vgg19": 1.5, "resnet50": 1.5}))

    assert note == "The locality penalty of vgg19 counts for nothing: no job is of it."
    assert notes_on(under(SCENARIO, locality_penalties=dict.fromkeys(shipped_models(), 1.5))) == ()


def test_what_is_declared_is_told() -> None:
    shared = replace(
        SCENARIO,
        policy="sjf-bsbf",
        placer="shared",
        cluster=replace(SCENARIO.cluster, jobs_per_gpu=2),
    )
    packed = replace(under(shared, interference=synthetic()), placer="packed")
    assert "also on one of a job that sjf-bsbf did not choose" in notes_on(packed)[1]

    assert notes_on(under(shared, interference=synthetic())) == (
        "Up to 2 jobs per GPU, interference: synthetic (declared, not measured).",
    )
    (unused,) = notes_on(replace(under(shared, interference=synthetic()), policy="fifo"))
    assert unused.startswith("jobs_per_gpu 2 and interference have no effect under fifo")
    assert notes_on(under(SCENARIO, tuned=TunedJobs(TuningRule.ANY_PAIR))) == (
        "Jobs are tuned by the rule any-pair, drawn by the seed: "
        "not the trace's own GPU counts and batch sizes.",
    )
    assert notes_on(under(SCENARIO, network_contention=0.25)) == (
        "A job across nodes loses 25% of its speed while it shares a node with another: "
        "declared, not measured.",
    )


def test_jobs_that_can_never_run_are_said_first() -> None:
    large = replace(JOBS[0], name="large", gpu_count=8)
    scenario = replace(SCENARIO, workload=Workload("three", (*JOBS, large), "pal"))
    scenario = replace(scenario, placer="pal")

    result = simulate(scenario)

    summary = result.summary()
    assert summary["cannot_run"] == figures_of(result)["cannot_run"] == 1
    assert summary["notes"] == [
        "1 of 3 jobs cannot run under fifo + pal: "
        "It needs more GPUs of one type than this cluster has in service.",
        *notes_on(scenario),
    ]
    assert simulate(SCENARIO).summary()["cannot_run"] == 0


def test_what_holds_of_several_runs_is_told_once() -> None:
    unequal = under(SCENARIO, variability=UNEQUAL)

    assert len(notes_on_all([unequal, unequal, SCENARIO])) == 1


def test_very_many_rounds_are_told_before_they_are_played() -> None:
    assert notes_before(SCENARIO.workload, 0.9) == (
        "round_seconds 0.9 makes 100,000 rounds until the last job of two is submitted, "
        "of which those that can change nothing are passed over: "
        "a larger round_seconds takes less time.",
    )
    late = replace(
        SCENARIO.workload,
        jobs=tuple(replace(job, submit_seconds=job.submit_seconds + 1.5e9) for job in JOBS),
    )
    assert notes_before(late, 1.0) == notes_before(SCENARIO.workload, 1.0) == (), (
        "time counts from the first submission"
    )
    assert notes_before(replace(SCENARIO.workload, jobs=()), 1.0) == notes_before(late, None) == ()


LONG_JOBS = tuple(
    TraceJob(name=name, submit_seconds=0.0, model="resnet50", gpu_count=1, work_scale=2000.0)
    for name in ("a", "b")
)
LONG = replace(SCENARIO, workload=Workload("two", LONG_JOBS, "pal"))


def test_a_placer_that_restarts_jobs_which_the_policy_left_alone_is_told_with_what_keeps_them() -> (
    None
):
    result = simulate(replace(LONG, placer="random", max_rounds=20))
    kept = simulate(replace(LONG, placer="random-sticky", max_rounds=20))

    restarts = result.metrics.restarts
    assert result.restarts_by_placer == result.summary()["restarts_by_placer"] == restarts > 2
    assert result.summary()["notes"] == [
        f"{restarts} of {restarts} restarts were moves by the placer random alone, "
        "of jobs that fifo left as they were: the placer random-sticky leaves them on their GPUs."
    ]
    assert (kept.restarts_by_placer, kept.summary()["notes"]) == (0, [])


def test_moves_that_cost_no_restart_are_no_restarts_by_the_placer() -> None:
    free = replace(FIDELITIES["paper"], free_moves_of_same_shape=True)
    result = simulate(under(replace(LONG, placer="random", max_rounds=20), fidelity=free))

    assert result.metrics.evictions > 2
    assert (result.metrics.restarts, result.restarts_by_placer) == (0, 0)


def test_moves_by_a_placer_are_told_of_several_runs_together_and_not_where_they_are_few() -> None:
    def run(by_placer: int, restarts: int) -> PlacerMoves:
        return PlacerMoves("las", "pal", by_placer, restarts, jobs=4)

    (note,) = notes_on_moves([run(9, 10), run(20, 22), replace(run(0, 50), placer="packed-sticky")])

    assert note.startswith(
        "29 of 32 restarts were moves by the placer pal alone, of jobs that las left "
        "as they were: a sticky placer "
    )
    assert notes_on_moves([run(4, 4)]) == (), "one of every job at most"
    assert notes_on_moves([run(20, 40)]) == (), "the policy's own are as many"


def test_a_run_that_was_stopped_says_of_which_jobs_its_figures_are() -> None:
    def stop(position: Position) -> None:
        if position.round_number > 2:
            raise Cancelled

    summary, whole = simulate(SCENARIO, on_progress=stop).summary(), simulate(SCENARIO).summary()

    assert (summary["stopped"], summary["complete"], summary["jobs"]) == (True, False, 1)
    assert "its figures are of the 1 of 2 jobs that had arrived by then." in str(summary["notes"])
    assert (whole["stopped"], whole["complete"], whole["notes"]) == (False, True, [])
