"""Tests of Gavel under the rules of the published Sia simulator.

They compare with the figures of that simulator on the same traces (sia.md, section 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import Model, measured_models
from maat.workloads.reading import read_workload

AS_PUBLISHED = (
    "t4=6x4,a100=2x8,rtx=3x8"  # the published simulator's order of types, by which it breaks ties
)


@pytest.fixture(scope="module")
def measured(data_folder: Path) -> Mapping[str, Model]:
    return measured_models(data_folder / "sia-artifact" / "profiles")


def gavel(
    data_folder: Path,
    models: Mapping[str, Model],
    name: str,
    *,
    cluster: str = AS_PUBLISHED,
    **parameters: object,
) -> SimulationResult:
    trace = read_workload(
        data_folder / "sia-artifact" / "workloads" / f"{name}.csv", known_models=models
    )
    preset = FIDELITIES["sia-artifact"]
    return simulate(
        Scenario(
            trace,
            models,
            Cluster.parse(cluster),
            policy="gavel",
            placer="lowest-numbered",
            policy_parameters=parameters,
            conditions=Conditions(fidelity=preset),
        )
    )


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("name", "avg", "median", "p99", "makespan", "gpu_hours", "restarts", "contention"),
    [
        ("philly/workload-1", 1.671, 0.254, 28.22, 35.63, 10.27, 6.42, 7.5),
        pytest.param(
            "philly/workload-2", 2.103, 0.264, 31.98, 36.74, 8.10, 5.01, 9.1, marks=pytest.mark.long
        ),
        ("saturn/workload-1", 1.798, 0.280, 21.77, 27.27, 7.14, 3.72, 10.5),
    ],
)
def test_the_published_rules_give_the_published_figures(
    data_folder: Path,
    measured: Mapping[str, Model],
    *,
    name: str,
    avg: float,
    median: float,
    p99: float,
    makespan: float,
    gpu_hours: float,
    restarts: float,
    contention: float,
) -> None:
    found = gavel(data_folder, measured, name).metrics
    assert found.unfinished == 0
    assert found.avg_jct_hours == pytest.approx(avg, abs=0.001)
    assert found.median_jct_hours == pytest.approx(median, abs=0.001)
    assert found.p99_jct_hours == pytest.approx(p99, abs=0.01)
    assert found.makespan_hours == pytest.approx(makespan, abs=0.01)
    assert found.gpu_hours_per_job == pytest.approx(gpu_hours, abs=0.01)
    assert found.restarts_per_job == pytest.approx(restarts, abs=0.01)
    assert found.contention_mean == pytest.approx(contention, abs=0.05)


@pytest.mark.needs_data
@pytest.mark.long
def test_the_order_of_types_breaks_ties_and_little_else(
    data_folder: Path, measured: Mapping[str, Model]
) -> None:
    found = gavel(
        data_folder, measured, "philly/workload-1", cluster="t4=6x4,rtx=3x8,a100=2x8"
    ).metrics
    assert found.avg_jct_hours == pytest.approx(1.671, rel=0.05)
    assert found.makespan_hours == pytest.approx(35.6, rel=0.05)


@pytest.mark.needs_data
@pytest.mark.long
def test_a_corner_of_the_optimum_schedules_otherwise_than_its_middle(
    data_folder: Path, measured: Mapping[str, Model]
) -> None:
    found = gavel(data_folder, measured, "philly/workload-1", linear_method="simplex").metrics
    assert found.avg_jct_hours < 0.9 * 1.671


@pytest.mark.needs_data
@pytest.mark.long
def test_each_objective_is_best_at_what_it_is_for(
    data_folder: Path, measured: Mapping[str, Model]
) -> None:
    by = {
        objective: gavel(data_folder, measured, "philly/workload-1", objective=objective).metrics
        for objective in ("max-sum-throughput", "max-min", "finish-time-fairness", "makespan")
    }
    assert min(by, key=lambda o: by[o].makespan_hours) == "makespan"
    assert min(by, key=lambda o: by[o].avg_jct_hours) == "max-sum-throughput"
