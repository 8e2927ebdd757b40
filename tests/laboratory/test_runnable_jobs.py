"""Jobs that no GPU type of a cluster runs cost no other job, and their GPU-hours are told."""

from __future__ import annotations

import pytest

import maat
from maat.laboratory.runnable_jobs import with_runnable_jobs
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import TraceError
from maat.simulation.engine import simulate
from maat.simulation.iteration_models import shipped_models
from maat.simulation.scenario import Scenario
from maat.workloads.reading import read_workload

HEADER = "name,time,application,num_replicas,batch_size,work_scale,adaptivity,gpu_types\n"
TRACE = f"""{HEADER}here,0,bert,1,,0.01,,
other,0,gpt,2,,0.01,,
longer,0,gpt,2,,0.03,,
odd,0,gpt,3,,0.01,rigid,
"""


def scenario(trace: str, cluster: str) -> Scenario:
    workload = read_workload(trace, known_models=shipped_models())
    return Scenario(workload, shipped_models(), Cluster.parse(cluster), policy="fifo")


def kept(trace: str, cluster: str) -> tuple[list[str], tuple[str, ...]]:
    workload = with_runnable_jobs(scenario(trace, cluster)).workload
    return [job.name for job in workload.jobs], workload.notes


def test_a_model_that_no_type_runs_is_left_out_with_its_gpu_hours() -> None:
    names, (note,) = kept(TRACE, "v100=1x4")
    assert names == ["here"]
    assert note.startswith("3 of 4 jobs of the trace were left out, with about ")
    assert "on GPUs that run them, and those of 1 unknown: " in note
    assert "gpt (3 jobs) cannot run on any GPU type of this cluster (v100)" in note
    assert "measured are: rtx, a100" in note


def test_the_hours_are_those_that_the_jobs_take_where_they_run() -> None:
    alone = simulate(scenario(f"{HEADER}a,0,gpt,2,,0.04,,\n", "a100=1x2"))
    _, (note,) = kept(TRACE.replace("odd,0,gpt,3", "odd,0,bert,1"), "v100=1x4")
    (record,) = alone.records
    assert record.jct is not None
    hours = float(note.split("with about ")[1].split()[0])
    assert hours == pytest.approx(2 * record.jct / 3600.0, rel=0.1)


def test_a_rigid_job_that_is_no_whole_number_of_replicas_costs_no_other() -> None:
    names, (note,) = kept(TRACE, "a100=1x4")
    assert names == ["here", "other", "longer"]
    assert "1 of 4 jobs of the trace was left out, its GPU-hours unknown: gpt (1 job): " in note
    assert "num_replicas 3 is no whole number of replicas" in note


def test_jobs_that_all_run_are_all_kept_and_so_are_those_bound_elsewhere() -> None:
    bound = f"{TRACE}bound,0,bert,1,,0.01,,t4\n".replace("odd,0,gpt,3", "odd,0,gpt,4")
    names, notes = kept(bound, "a100=1x4")
    assert (names, notes) == (["here", "other", "longer", "odd", "bound"], ())


def test_a_trace_none_of_whose_jobs_runs_is_refused() -> None:
    with pytest.raises(TraceError, match="cannot run on any GPU type of this cluster"):
        maat.simulate(f"{HEADER}a,0,gpt,2,,0.01,,\n", cluster="v100=1x4", policy="fifo")


def test_every_output_of_the_library_tells_it() -> None:
    run = maat.simulate(TRACE, cluster="v100=1x4", policy="fifo")
    assert [job["name"] for job in run.jobs] == ["here"]
    assert "jobs of the trace were left out" in " ".join(run.notes)
    compared = maat.compare(
        ["fifo", "srtf"],
        {"first": TRACE, "second": TRACE.replace("0.01", "0.02")},
        cluster="v100=1x4",
    )
    told = [note for note in compared.notes if "left out" in note]
    assert [note.split(":")[0] for note in told] == ["first", "second"]
