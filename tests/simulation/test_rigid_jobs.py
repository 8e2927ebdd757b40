"""Tests of rigid jobs: Sia beside Gavel, which was built for them, and the moves of Sia's placer.

See Sia section 5.4 and the right of its figure 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import Model, measured_models
from maat.workloads.reading import read_workload

CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"


@pytest.fixture(scope="module")
def measured(data_folder: Path) -> Mapping[str, Model]:
    return measured_models(data_folder / "sia-artifact" / "profiles")


def played(
    data_folder: Path,
    models: Mapping[str, Model],
    name: str,
    policy: str,
    *,
    rigid_share: float = 1.0,
    jobs: int | None = None,
) -> SimulationResult:
    """A public trace under fidelity `paper`, or its first jobs."""
    trace = read_workload(
        data_folder / "sia-artifact" / "workloads" / f"{name}.csv", known_models=models
    )
    some = replace(trace, jobs=trace.jobs[:jobs])
    conditions = Conditions(rigid_share=rigid_share)
    return simulate(
        Scenario(
            some,
            models,
            Cluster.parse(CLUSTER),
            policy=policy,
            placer=suiting_placer(policy),
            conditions=conditions,
        )
    )


def sia_and_gavel(
    data_folder: Path, models: Mapping[str, Model], name: str, jobs: int | None = None
) -> tuple[float, float]:
    """Average JCT under each, hours; every job ends."""
    results = [
        played(data_folder, models, name, policy, jobs=jobs).metrics for policy in ("sia", "gavel")
    ]
    assert [metrics.unfinished for metrics in results] == [0, 0]
    return results[0].avg_jct_hours, results[1].avg_jct_hours


@pytest.mark.needs_data
def test_the_first_rigid_jobs_of_a_trace_end_sooner_under_sia_than_under_gavel(
    data_folder: Path, measured: Mapping[str, Model]
) -> None:
    sia, gavel = sia_and_gavel(data_folder, measured, "saturn/workload-1", jobs=12)
    assert sia < gavel


@pytest.mark.needs_data
@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [f"{family}/workload-{number}" for family in ("philly", "saturn") for number in (1, 2, 3)],
)
def test_rigid_jobs_end_sooner_under_sia_than_under_gavel(
    data_folder: Path, measured: Mapping[str, Model], name: str
) -> None:
    sia, gavel = sia_and_gavel(data_folder, measured, name)
    assert sia < gavel


@pytest.mark.needs_data
@pytest.mark.long
def test_few_jobs_of_an_adaptive_workload_are_evicted(
    data_folder: Path, measured: Mapping[str, Model]
) -> None:
    # Placing everybody of a type again evicted 62 and 78 jobs of these traces.
    evicted = [
        played(data_folder, measured, name, "sia", rigid_share=0.0).metrics.evictions
        for name in ("philly/workload-1", "saturn/workload-1")
    ]
    assert evicted[0] <= 62 / 3
    assert evicted[1] <= 78 / 3
