"""The policy and placer that a cluster's row names, for rounds and rehearsals alike."""

from __future__ import annotations

from backend.models import Cluster
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, parameters_beside
from maat.scheduling.protocols import Placer, Policy


def cluster_parts(cluster: Cluster) -> tuple[Policy, Placer]:
    """Build both; parameters of the row win over those that the placer asks of its policy."""
    beside = parameters_beside(PLACERS.entry(cluster.placer), cluster.policy)
    policy = POLICIES.build(cluster.policy, {**beside, **cluster.policy_parameters})
    return policy, PLACERS.build(cluster.placer, cluster.placer_parameters)
