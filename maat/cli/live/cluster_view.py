"""A cluster at a moment: who holds GPUs, who waits, when the next round is. Draws nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from maat.vocabulary import JobState

if TYPE_CHECKING:
    from maat.api.clusters import ClusterOut, ClusterStateOut
    from maat.api.job_answers import JobOut, JobPage
    from maat.client import Client

MOST_JOBS = 500  # by the service, in one answer
HOLDING = (JobState.RUNNING, JobState.STARTING, JobState.RESTARTING, JobState.PROFILING)
WAITING = (JobState.PENDING, JobState.PREEMPTED, JobState.SUBMITTED, JobState.PAUSED)


@dataclass(frozen=True)
class Holder:
    """A job with GPUs, and how many of them on each node. `job`: None for another tenant's."""

    name: str
    tenant: str | None
    gpu_types: dict[str, int]
    nodes: dict[str, int]
    job: JobOut | None


@dataclass(frozen=True)
class ClusterView:
    """What one reading showed. `more_waiting`: jobs that wait and are not in `waiting`.

    `reserved`: GPUs reserved at present, by type; jobs of the holder may be on them.
    """

    cluster: ClusterOut
    state: ClusterStateOut
    holders: Sequence[Holder]
    waiting: Sequence[JobOut]
    more_waiting: int
    reserved: Mapping[str, int]
    read_at: float = field(default_factory=time.monotonic)

    def next_round_seconds(self, now: float) -> float | None:
        """Return the wall seconds until the next round; None if none is coming.

        `now`: of the monotonic clock.
        """
        if self.cluster["paused"] or self.state["as_of"] is None:
            return None
        since = (_moment(self.state["now"]) - _moment(self.state["as_of"])).total_seconds()
        left = (self.cluster["round_seconds"] - since) / self.cluster["speed"]
        return max(left - (now - self.read_at), 0.0)

    def as_json(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "state": self.state,
            "running": [holder.job for holder in self.holders if holder.job is not None],
            "waiting": list(self.waiting),
            "more_waiting": self.more_waiting,
            "reserved_by_type": dict(self.reserved),
            "next_round_in_seconds": self.next_round_seconds(self.read_at),
        }


def read_cluster(maat: Client, cluster_id: str) -> ClusterView:
    """Read a cluster's state and the jobs on it that have not ended."""
    cluster, state = maat.cluster(cluster_id), maat.cluster_state(cluster_id)
    running = maat.jobs(cluster=cluster_id, state=list(HOLDING), limit=MOST_JOBS)
    waiting = maat.jobs(cluster=cluster_id, state=list(WAITING), limit=MOST_JOBS)
    in_order = sorted(waiting["items"], key=lambda job: (-job["priority"], job["submitted_at"]))
    total = sum(waiting["state_counts"].get(state, 0) for state in WAITING)
    reserved: Counter[str] = Counter()
    for one in maat.reservations(cluster_id):
        if one["state"] == "active":
            reserved[one["gpu_type"]] += one["gpu_count"]
    more_waiting = max(total - len(in_order), 0)
    return ClusterView(cluster, state, _holders(state, running), in_order, more_waiting, reserved)


def _holders(state: ClusterStateOut, running: JobPage) -> list[Holder]:
    """Return who holds GPUs, those with the most first."""
    known = {job["id"]: job for job in running["items"]}
    types: dict[str, Counter[str]] = {}
    nodes: dict[str, Counter[str]] = {}
    names: dict[str, tuple[str, str | None]] = {}
    for gpu in state["gpus"]:
        first = [] if gpu["job_id"] is None else [(gpu["job_id"], gpu["job_name"], gpu["tenant"])]
        others = [(one["job_id"], one["job_name"], one["tenant"]) for one in gpu["shared_with"]]
        for job_id, name, tenant in (*first, *others):
            names[job_id] = (name or job_id, tenant)
            types.setdefault(job_id, Counter())[gpu["gpu_type"]] += 1
            nodes.setdefault(job_id, Counter())[gpu["node"]] += 1
    found = [
        Holder(*names[job_id], dict(types[job_id]), dict(nodes[job_id]), known.get(job_id))
        for job_id in names
    ]
    return sorted(found, key=lambda one: (-sum(one.nodes.values()), one.name))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
