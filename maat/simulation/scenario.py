"""The plain data of one run: jobs, models, cluster, policy, placer, conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from maat.scheduling.cluster import Cluster
from maat.scheduling.protocols import Policy
from maat.simulation.conditions import Conditions
from maat.simulation.world_models import Model
from maat.workloads.workloads import Workload


@dataclass(frozen=True)
class Scenario:
    """Everything that a run depends on: the same scenario gives the same result.

    `round_seconds`: the run's own interval of rounds; None: the conditions'. `max_rounds`: limit on
    the rounds after the last submission, for jobs that never end. `own_policy`: a policy that no
    registry has, which decides instead; then `policy` is its name.
    """

    workload: Workload
    models: Mapping[str, Model]
    cluster: Cluster
    policy: str = "sia"
    placer: str = "whole-node"
    policy_parameters: Mapping[str, object] = field(default_factory=dict)
    placer_parameters: Mapping[str, object] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    seed: int = 0
    round_seconds: float | None = None
    max_rounds: int = 1_000_000
    own_policy: Policy | None = None
