"""What a reader is told besides the figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from simulation.small import under

from maat.scheduling.cluster import Cluster
from maat.simulation.engine import simulate
from maat.simulation.interference import synthetic
from maat.simulation.iteration_models import shipped_models
from maat.simulation.notes import notes_on, notes_on_all
from maat.simulation.record import Cancelled, Position
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs, TuningRule
from maat.simulation.variability import Measurements, Variability
from maat.simulation.workloads import TraceJob, Workload

JOBS = tuple(TraceJob(name, at, "resnet50", 1, work_scale=2000.0) for name, at in (("a", 0.0), ("b", 90_000.0)))
SCENARIO = Scenario(Workload("two", JOBS, "pal"), shipped_models(), Cluster.parse("v100=1x4"), "fifo", "packed-sticky")
MEASURED = Measurements(np.array([1.0, 2.0]), np.arange(2))
UNEQUAL = Variability({("v100", application): MEASURED for application in ("resnet", "bert", "pagerank")})


def test_unequal_gpus_that_nobody_weighs_are_allowed_and_told() -> None:
    (note,) = notes_on(under(SCENARIO, variability=UNEQUAL))

    assert note == "GPUs differ in speed, which neither fifo nor packed-sticky weighs: the jobs bear it."
    assert notes_on(SCENARIO) == ()


def test_a_penalty_of_a_model_that_no_job_is_of_is_told() -> None:
    (note,) = notes_on(under(SCENARIO, locality_penalties={"vgg19": 1.5, "resnet50": 1.5}))

    assert note == "The locality penalty of vgg19 counts for nothing: no job is of it."
    assert notes_on(under(SCENARIO, locality_penalties=dict.fromkeys(shipped_models(), 1.5))) == ()


def test_what_is_declared_is_told() -> None:
    shared = replace(SCENARIO, cluster=replace(SCENARIO.cluster, jobs_per_gpu=2))

    assert notes_on(under(shared, interference=synthetic())) == ("Up to 2 jobs per GPU, interference: synthetic (declared, not measured).",)
    assert notes_on(under(SCENARIO, tuned=TunedJobs(TuningRule.ANY_PAIR))) == (
        "Jobs are tuned by the rule any-pair, drawn by the seed: not the trace's own GPU counts and batch sizes.",
    )


def test_what_holds_of_several_runs_is_told_once() -> None:
    unequal = under(SCENARIO, variability=UNEQUAL)

    assert len(notes_on_all([unequal, unequal, SCENARIO])) == 1


def test_a_run_that_was_stopped_says_of_which_jobs_its_figures_are() -> None:
    def stop(position: Position) -> None:
        if position.round_number > 2:
            raise Cancelled

    summary, whole = simulate(SCENARIO, on_progress=stop).summary(), simulate(SCENARIO).summary()

    assert (summary["stopped"], summary["complete"], summary["jobs"]) == (True, False, 1)
    assert "its figures are of the 1 of 2 jobs that had arrived by then." in str(summary["notes"])
    assert (whole["stopped"], whole["complete"], whole["notes"]) == (False, True, [])
