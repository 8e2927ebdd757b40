"""A counter-example in words: the cluster, its limits, the jobs."""

from __future__ import annotations

from collections.abc import Iterator

from maat.contracts.subject import Trial
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Job
from maat.scheduling.limits import LimitKind
from maat.scheduling.rounds import RoundInput


def lines_of(trial: Trial) -> Iterator[str]:
    """Yield the round of a trial, line by line."""
    round_input = trial.round_input
    yield f"cluster: {_cluster(round_input.cluster)}"
    for limit in round_input.limits:
        if limit.kind is not LimitKind.CAPACITY:
            yield f"limit {limit.name}: {limit.places} places"
    for quota in round_input.quotas:
        guaranteed, ceiling = dict(quota.guaranteed), dict(quota.ceiling)
        yield f"quota of {quota.tenant}: guaranteed {guaranteed}, at most {ceiling}"
    for job in round_input.jobs:
        yield f"{job.id}: {', '.join(_job(job, round_input))}"
    if not round_input.jobs:
        yield "no job"


def _cluster(cluster: Cluster) -> str:
    nodes = [
        f"{node.gpu_type}={node.gpu_count}"
        + (f" ({len(node.drained)} drained)" if node.drained else "")
        for node in cluster.nodes
    ]
    places = f", {cluster.jobs_per_gpu} jobs per GPU" if cluster.jobs_per_gpu > 1 else ""
    return f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}: {', '.join(nodes)}{places}"


def _job(job: Job, round_input: RoundInput) -> Iterator[str]:
    spec = job.spec
    yield spec.adaptivity.value
    yield f"may use {', '.join(spec.gpu_types or sorted(spec.memory))}"
    if spec.gpu_count is not None:
        yield f"asks for {spec.gpu_count} GPUs"
    if spec.min_gpus > 1 or spec.max_gpus is not None:
        most = "any number" if spec.max_gpus is None else spec.max_gpus
        yield f"takes {spec.min_gpus} to {most}"
    if spec.gpus_per_replica:
        yield f"GPUs per replica {dict(spec.gpus_per_replica)}"
    if spec.promised_seconds is not None:
        yield f"promises a batch within {spec.promised_seconds:g} s"
    if round_input.quotas:
        yield f"of {spec.tenant}"
    if spec.priority:
        yield f"priority {spec.priority}"
    if spec.weight != 1.0:
        yield f"weight {spec.weight:g}"
    if job.allocation is not None:
        yield f"holds {job.allocation.gpu_count} {job.allocation.gpu_type}"
    if job.id in round_input.pinned:
        yield "may not be moved now"
