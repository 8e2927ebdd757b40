"""Jobs that are bound to GPU types, which a trace may name freely."""

from __future__ import annotations

import pytest

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import TraceError
from maat.scheduling.policies import POLICIES
from maat.simulation.engine import simulate
from maat.simulation.iteration_models import shipped_models
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.workloads.reading import read_workload

HEADER = "name,time,application,num_replicas,batch_size,work_scale,adaptivity,gpu_types\n"
TRACE = f"""{HEADER}elsewhere,0,as-recorded,1,,600,rigid,t4
here,0,as-recorded,1,,600,rigid,v100
own,0,as-recorded,2,,600,rigid,rtx3090
either,0,as-recorded,1,,600,rigid,t4 v100
trained,0,bert,1,,0.01,,t4
"""


def run(cluster: str, policy: str = "fifo", trace: str = TRACE) -> SimulationResult:
    workload = read_workload(trace, known_models=shipped_models())
    return simulate(Scenario(workload, shipped_models(), Cluster.parse(cluster), policy=policy))


@pytest.mark.parametrize("policy", POLICIES.names)
def test_a_job_bound_to_another_type_does_not_finish_and_costs_no_other(policy: str) -> None:
    result = run("v100=1x4", policy)
    finished = {record.name for record in result.records if record.finish is not None}
    assert finished == {"here", "either"}
    assert result.unfinished_because == {
        "elsewhere": "Its GPU type t4 is not in this cluster.",
        "own": "Its GPU type rtx3090 is not in this cluster.",
        "trained": "Its GPU type t4 is not in this cluster.",
    }


def test_a_cluster_may_have_any_type_that_the_trace_names() -> None:
    result = run("rtx3090=1x4")
    took = {r.name: r.finish for r in result.records if r.finish is not None}
    assert took == pytest.approx({"own": 690.0}, abs=60.0)


def test_a_trace_none_of_whose_jobs_may_use_the_cluster_is_refused_by_its_types() -> None:
    with pytest.raises(TraceError) as refused:
        run("k80=1x4")
    assert (refused.value.field, refused.value.value) == ("gpu_types", "rtx3090, t4, v100")


def test_a_model_that_was_measured_needs_a_type_on_which_it_was() -> None:
    with pytest.raises(TraceError, match="cannot run on any GPU type of this cluster"):
        run("rtx3090=1x4", trace=f"{HEADER}a,0,bert,1,,,,rtx3090\n")
