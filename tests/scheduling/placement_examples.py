"""Placement of a few grants on a few nodes, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation, Job, JobSpec, MemoryLimits
from maat.scheduling.limits import capacity_limits
from maat.scheduling.pins import pinned_grants
from maat.scheduling.placement import PLACERS
from maat.scheduling.rounds import Decision, Grant, PlacementResult, RoundInput
from maat.scheduling.solving.report import SolveReport


def place(
    placer: str,
    cluster: Cluster,
    grants: Mapping[str, Grant],
    held: Mapping[str, Sequence[int]] | None = None,
    *,
    pinned: bool = False,
    round_number: int = 1,
    restart_seconds: Mapping[str, float] | None = None,
    **parameters: object,
) -> PlacementResult:
    """Place grants of t4 GPUs to jobs that hold what `held` says."""
    allocations = {job_id: Allocation("t4", tuple(gpus)) for job_id, gpus in (held or {}).items()}
    specs = {
        job_id: replace(
            _spec(job_id, not pinned), restart_seconds=(restart_seconds or {}).get(job_id, 30.0)
        )
        for job_id in grants
    }
    jobs = tuple(
        Job(specs[job_id], Belief(), 1.0, allocation=allocations.get(job_id)) for job_id in grants
    )
    round_input = RoundInput(
        0.0,
        round_number,
        60.0,
        jobs,
        cluster,
        capacity_limits(cluster),
        pinned=pinned_grants(jobs, cluster),
    )
    return PLACERS.build(placer, parameters).place(Decision(grants, SolveReport(), {}), round_input)


def round_of(cluster: Cluster, grants: Mapping[str, Grant]) -> RoundInput:
    """A round of jobs that hold nothing yet."""
    jobs = tuple(Job(_spec(job_id, True), Belief(), 1.0) for job_id in grants)
    return RoundInput(0.0, 1, 60.0, jobs, cluster, capacity_limits(cluster))


def _spec(job_id: str, preemptible: bool) -> JobSpec:
    memory = {"t4": MemoryLimits(1, 64)}
    return JobSpec(
        id=job_id,
        model="m",
        submitted_at=0.0,
        work=1.0,
        initial_batch_size=8,
        max_batch_size=64,
        memory=memory,
        preemptible=preemptible,
    )


def t4(count: int, nodes: int | None = None) -> Grant:
    return Grant("t4", count, node_count=nodes)
