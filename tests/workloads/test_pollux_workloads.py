"""Tests of Pollux on the published workloads against the averages that its authors stored.

Its search is random, so the figures are held to a band.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import fidelity
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models, measured_models
from maat.workloads.generators import generate
from maat.workloads.reading import read_workload
from maat.workloads.workloads import TraceJob, Workload


@pytest.mark.long
@pytest.mark.needs_data
@pytest.mark.parametrize(("number", "seconds"), [(1, 2088.8), (2, 3322.9), (6, 2446.1)])
def test_the_published_averages_are_met_within_a_twentieth(
    data_folder: Path, number: int, seconds: float
) -> None:
    models = measured_models(data_folder / "sia-artifact" / "profiles")
    workload = read_workload(
        data_folder / "pollux" / "workloads" / f"workload-{number}.csv", known_models=models
    )
    scenario = Scenario(
        workload,
        models,
        Cluster.parse("t4=16x4"),
        policy="pollux",
        placer="as-decided",
        conditions=Conditions(fidelity=fidelity("pollux-artifact")),
    )
    assert simulate(scenario).metrics.avg_jct_hours * 3600 == pytest.approx(seconds, rel=0.05)


def busy(policy: str, placer: str, **parameters: object) -> SimulationResult:
    """A dozen jobs within ten minutes on eight GPUs: more than there is room for."""
    workload = generate("philly", jobs=12, hours=0.15, seed=5, work_scale=0.05)
    scenario = Scenario(
        workload,
        catalog_models(),
        Cluster.parse("t4=4x2"),
        policy=policy,
        placer=placer,
        policy_parameters=parameters,
        conditions=Conditions(fidelity=fidelity("pollux-artifact")),
    )
    return simulate(scenario)


def test_pollux_finishes_jobs_sooner_than_those_that_change_no_counts() -> None:
    pollux, fixed = busy("pollux", "as-decided"), busy("srtf", "packed-sticky")
    assert pollux.complete
    assert pollux.metrics.avg_jct_hours < fixed.metrics.avg_jct_hours


def test_dearer_re_allocations_are_fewer() -> None:
    cheap, dear = (
        busy("pollux", "as-decided", reallocation_seconds=seconds) for seconds in (0.0, 120.0)
    )
    assert dear.metrics.restarts_per_job < cheap.metrics.restarts_per_job


def test_a_job_alone_explores_upwards_and_never_beyond_twice_what_it_has_had() -> None:
    job = TraceJob(name="a", submit_seconds=0.0, model="cifar10", gpu_count=1)
    scenario = Scenario(
        Workload("alone", (job,), "sia"),
        catalog_models(),
        Cluster.parse("t4=4x4"),
        policy="pollux",
        placer="as-decided",
        conditions=Conditions(fidelity=fidelity("pollux-artifact")),
    )
    counts = [span.gpu_count for span in simulate(scenario).spans if span.gpu_count]
    assert counts[0] == 1
    assert max(counts) > 4
    assert all(later <= 2 * max(counts[:at]) for at, later in enumerate(counts) if at)
