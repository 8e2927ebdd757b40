"""The world of a scenario: its parts are built once, and only those that are asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maat.laboratory.content import content_key
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError, ParameterError
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.interference import Interference
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.simulation.world_models import catalog_models
from maat.vocabulary import ProfilingMode
from maat.workloads.workloads import TraceJob, Workload

JOBS = (
    TraceJob(name="a", submit_seconds=0.0, model="cifar10", gpu_count=2, batch_size=256),
    TraceJob(name="b", submit_seconds=60.0, model="bert", gpu_count=1, batch_size=48),
)
CLUSTER = Cluster.parse("t4=2x4")


def scenario(**changes: object) -> Scenario:
    base = Scenario(Workload("w", JOBS, "sia"), catalog_models(), CLUSTER)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_every_part_is_built_once() -> None:
    world = World.of(scenario())
    for part in ("policy", "placer", "fidelity", "true_models", "submissions", "slowdowns"):
        assert getattr(world, part) is getattr(world, part), part
    assert world.scenario_with_scores is world.scenario, "there are no scores to draw"


def test_a_part_does_not_need_the_others() -> None:
    shared = scenario(cluster=replace(CLUSTER, jobs_per_gpu=2))
    assert len(content_key(shared)) == 64
    assert [job.spec.id for job in World.of(shared).submissions] == ["a", "b"]
    with pytest.raises(InterferenceError, match="is missing"):
        World.of(shared).check_interference()
    unknown = scenario(policy_parameters={"nothing": 1})
    World.of(unknown).check_interference()
    with pytest.raises(ParameterError):
        _ = World.of(unknown).policy


def test_interference_covers_the_jobs_under_their_names_and_slows_them() -> None:
    conditions = Conditions(interference=Interference.constant(1.5))
    world = World.of(scenario(cluster=replace(CLUSTER, jobs_per_gpu=2), conditions=conditions))
    assert {victim for victim, _, _ in world.interference} == {"cifar10", "bert"}
    assert set(world.interference.values()) == {1.5}
    assert len(world.slowdowns) == 1


def test_rounds_are_as_long_as_the_nearest_setting_says() -> None:
    by_fidelity = Conditions(fidelity=FIDELITIES["pal-artifact"])
    given = replace(by_fidelity, round_seconds=90.0)
    assert World.of(scenario()).round_seconds == World.of(scenario()).policy.default_round_seconds
    assert World.of(scenario(conditions=by_fidelity)).round_seconds == 360.0
    assert World.of(scenario(conditions=given)).round_seconds == 90.0
    assert World.of(scenario(conditions=given, round_seconds=30.0)).round_seconds == 30.0


def test_the_fidelity_is_as_known_to_the_policy() -> None:
    conditions = Conditions(fidelity=FIDELITIES["sia-artifact"])
    gavel = World.of(scenario(policy="gavel", conditions=conditions))
    assert gavel.fidelity.profiling is ProfilingMode.REQUESTED
    assert World.of(scenario(conditions=conditions)).fidelity.profiling is ProfilingMode.NO_PROFILE
