"""Tests of shares of rigid and strong-scaling jobs: the draw, its limits, and Sia's figure 11."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ParameterError
from maat.simulation.adaptivity_shares import draw_adaptivity
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models
from maat.vocabulary import Adaptivity, WorkloadKind
from maat.workloads.generators import generate
from maat.workloads.workloads import TraceJob

MODELS = catalog_models()
WORKLOAD = generate("philly", jobs=12, hours=0.3, seed=5, work_scale=0.3)


def drawn(rigid: float, strong: float, seed: int = 1) -> dict[str, Adaptivity]:
    return dict(
        draw_adaptivity(
            WORKLOAD.jobs, MODELS, rigid_share=rigid, strong_scaling_share=strong, seed=seed
        )
    )


@cache
def played(rigid: float, strong: float) -> SimulationResult:
    """On a cluster with fewer GPUs than the jobs could use, as in the paper's study."""
    cluster = Cluster.parse("t4=2x8,a100=1x4")
    return simulate(
        Scenario(
            WORKLOAD,
            MODELS,
            cluster,
            conditions=Conditions(rigid_share=rigid, strong_scaling_share=strong),
        )
    )


def test_shares_are_of_all_jobs_and_the_others_are_adaptive() -> None:
    assert Counter(drawn(0.25, 0.5).values()) == {
        Adaptivity.RIGID: 3,
        Adaptivity.STRONG_SCALING: 6,
        Adaptivity.ADAPTIVE: 3,
    }
    assert set(drawn(0.0, 0.0).values()) == {Adaptivity.ADAPTIVE}
    assert set(drawn(1.0, 0.0).values()) == {Adaptivity.RIGID}


def test_the_draw_follows_the_seed_and_a_larger_share_only_adds_rigid_jobs() -> None:
    assert drawn(0.5, 0.2) == drawn(0.5, 0.2)
    assert drawn(0.5, 0.2) != drawn(0.5, 0.2, seed=2)
    few, many = (
        {name for name, kind in drawn(share, 0.0).items() if kind is Adaptivity.RIGID}
        for share in (0.3, 0.7)
    )
    assert few < many


def test_hybrid_parallel_jobs_stay_adaptive() -> None:
    hybrid = replace(MODELS["bert"], gpus_per_replica={"a100": 2})
    found = draw_adaptivity(
        (TraceJob(name="x", submit_seconds=0.0, model="bert", gpu_count=3),),
        {"bert": hybrid},
        rigid_share=1.0,
        strong_scaling_share=0.0,
        seed=0,
    )
    assert found == {"x": Adaptivity.ADAPTIVE}


def test_what_a_trace_says_of_a_job_stays_and_inference_is_never_drawn() -> None:
    jobs = (
        TraceJob(
            name="said",
            submit_seconds=0.0,
            model="bert",
            gpu_count=1,
            adaptivity=Adaptivity.STRONG_SCALING,
        ),
        TraceJob(
            name="free",
            submit_seconds=0.0,
            model="bert",
            gpu_count=1,
            adaptivity=Adaptivity.ADAPTIVE,
        ),
        TraceJob(name="open", submit_seconds=0.0, model="bert", gpu_count=1),
        TraceJob(
            name="batch",
            submit_seconds=0.0,
            model="bert",
            gpu_count=1,
            workload_kind=WorkloadKind.BATCH_INFERENCE,
        ),
    )
    found = draw_adaptivity(jobs, MODELS, rigid_share=1.0, strong_scaling_share=0.0, seed=0)
    assert found == {
        "said": Adaptivity.STRONG_SCALING,
        "free": Adaptivity.ADAPTIVE,
        "open": Adaptivity.RIGID,
        "batch": Adaptivity.ADAPTIVE,
    }


@pytest.mark.parametrize(
    ("rigid", "strong"), [(-0.1, 0.0), (1.1, 0.0), (0.0, float("nan")), (0.6, 0.6)]
)
def test_shares_that_make_no_sense_are_refused(rigid: float, strong: float) -> None:
    with pytest.raises(ParameterError, match="share"):
        drawn(rigid, strong)


def test_a_bound_job_declares_the_counts_and_batch_of_its_trace() -> None:
    job, paper = (
        TraceJob(name="x", submit_seconds=0.0, model="cifar10", gpu_count=4, batch_size=512),
        FIDELITIES["paper"],
    )
    rigid = MODELS["cifar10"].job_spec(job, paper, adaptivity=Adaptivity.RIGID)
    assert (rigid.adaptivity, rigid.gpu_count, rigid.batch_size) == (Adaptivity.RIGID, 4, 512)
    unnamed = MODELS["cifar10"].job_spec(
        replace(job, batch_size=None), paper, adaptivity=Adaptivity.STRONG_SCALING
    )
    assert unnamed.batch_size == unnamed.initial_batch_size


def test_rigid_jobs_hold_what_their_trace_asks_for_or_nothing() -> None:
    asked = {job.name: job.gpu_count for job in WORKLOAD.jobs}
    result = played(1.0, 0.0)
    assert {record.adaptivity for record in result.records} == {Adaptivity.RIGID}
    assert all(
        span.gpu_count == asked[span.job] for span in result.spans if span.gpu_type is not None
    )


def test_the_same_shares_give_the_same_result() -> None:
    scenario = played(1.0, 0.0).scenario
    assert simulate(scenario).records == played(1.0, 0.0).records


@pytest.mark.parametrize(
    ("rigid", "strong"), [(1.0, 0.0), (0.0, 1.0)], ids=["rigid", "strong-scaling"]
)
def test_jobs_that_are_bound_do_no_better_than_adaptive_ones_on_average(
    rigid: float, strong: float
) -> None:
    bound, adaptive = played(rigid, strong), played(0.0, 0.0)
    assert bound.complete
    assert adaptive.complete
    assert bound.metrics.avg_jct_hours > adaptive.metrics.avg_jct_hours
