"""Changes of a present state, to see what would come of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from maat.forecasting.present import Present, WaitingJob
from maat.scheduling.cluster import Cluster, Node
from maat.scheduling.job import JobId, JobSpec
from maat.scheduling.protocols import Placer, Policy
from maat.scheduling.rounds import PolicyState, StoredState


def with_job(present: Present, spec: JobSpec, *, after: frozenset[JobId] = frozenset()) -> Present:
    """Return the state with a job that is submitted now."""
    return replace(present, waiting=(*present.waiting, WaitingJob(spec, after)))


def with_nodes(
    present: Present, *, drained: Sequence[str] = (), added: Sequence[Node] = ()
) -> Present:
    """Return the state with nodes out of service, and others after the last one.

    Jobs on a drained node leave it with the next round, as in a live cluster. Raises ClusterError
    if a name is taken.
    """
    cluster = present.cluster
    nodes = [
        replace(node, drained=frozenset(range(node.gpu_count))) if node.id in drained else node
        for node in cluster.nodes
    ]
    memory = {one.name: one.memory_gib for one in cluster.gpu_types if one.memory_gib is not None}
    changed = Cluster.of([*nodes, *added], memory_gib=memory)
    more = changed.gpu_count - cluster.gpu_count
    scores = {name: (*known, *((1.0,) * more)) for name, known in cluster.scores.items()}
    changed = replace(changed, scores=scores, jobs_per_gpu=cluster.jobs_per_gpu)
    return replace(present, cluster=changed)


def with_policy(present: Present, policy: Policy, placer: Placer) -> Present:
    """Return the state with another policy from now on, which remembers nothing yet.

    What tenants are owed stays.
    """
    state = present.state
    remembered = PolicyState(shares=state.policy_state.shares)
    fresh = StoredState(state.next_round_number, remembered, PolicyState())
    return replace(present, policy=policy, placer=placer, state=fresh)
