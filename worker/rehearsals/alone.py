"""Which jobs no round would ever start as their cluster stands.

Each is tried alone in a round on the GPUs in service, by the policy and placer that decide there:
what keeps it waiting then is no other job, and the reason is the one that rounds will give.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlmodel import Session

from backend.clusters.repository import nodes_of
from backend.clusters.topology import engine_cluster
from backend.commands.spec import command_spec
from backend.jobs.declarations import declaration_of
from backend.models import Cluster as ClusterRow
from backend.models import Job as JobRow
from backend.occupancy.repository import held_by_tenant
from backend.quotas.repository import engine_quotas
from backend.reservations.repository import tenant_names
from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import MaatError
from maat.scheduling.explain import NEVER_RUNS, Reasons
from maat.scheduling.job import DECLARED, Job, JobId
from maat.scheduling.rounds import ClusterState, StoredState
from worker.executors import EXECUTORS
from worker.executors.protocol import News, Restoration
from worker.live.cluster import FixedClock
from worker.rehearsals.tried_rounds import Rules, played

log = logging.getLogger(__name__)

MOST_SECONDS = 0.5
"""CPU seconds for the jobs of one request; of those that were not tried nothing is said."""
MOST_REMEMBERED = 1000

_OF_ONE = frozenset({"name", "labels"})
_OF_CLUSTER = ("id", "executor", "round_seconds", "jobs_per_gpu")


class LoneTrials:
    """Tries jobs alone, each declaration once as long as its cluster stays as it is."""

    def __init__(self) -> None:
        self._remembered: OrderedDict[str, Reasons | None] = OrderedDict()
        self._lock = threading.Lock()

    def never_started(
        self, session: Session, cluster: ClusterRow, rows: Sequence[JobRow]
    ) -> Mapping[JobId, Reasons]:
        """Return why, of those jobs that no round would start; they need not be stored."""
        stage = _Stage.of(session, cluster, rows)
        if stage is None:
            return {}
        found: dict[JobId, Reasons] = {}
        began = time.thread_time()
        for asked, alike in _alike(rows).items():
            if time.thread_time() - began > MOST_SECONDS:
                break
            why = self._why(stage, asked, alike[0])
            if why is not None:
                why = _among_all(session, alike[0], why)
                found |= dict.fromkeys((row.id for row in alike), why)
        return found

    def _why(self, stage: _Stage, asked: str, row: JobRow) -> Reasons | None:
        key = f"{stage.stands} {asked}"
        with self._lock:
            if key in self._remembered:
                self._remembered.move_to_end(key)
                return self._remembered[key]
        why = stage.why_never(row)
        with self._lock:
            self._remembered[key] = why
            while len(self._remembered) > MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return why


@dataclass(frozen=True)
class _Stage:
    """A cluster without its jobs. `stands`: all that a trial depends on besides the job."""

    cluster: ClusterRow
    gpus: Cluster
    rules: Rules
    tenants: Mapping[str, str]
    stands: str

    @classmethod
    def of(cls, session: Session, cluster: ClusterRow, rows: Sequence[JobRow]) -> _Stage | None:
        """Return the stage; None if the cluster has no node."""
        nodes = nodes_of(session, cluster.id)
        if not nodes:
            return None
        gpus = engine_cluster(nodes, jobs_per_gpu=cluster.jobs_per_gpu)
        quotas = engine_quotas(session, cluster.id)
        columns = [getattr(cluster, name) for name in _OF_CLUSTER]
        stands = repr((columns, cluster.parts, gpus.nodes, quotas))
        tenants = tenant_names(session, [row.tenant_id for row in rows])
        return cls(cluster, gpus, Rules(StoredState(), quotas=quotas), tenants, stands)

    def why_never(self, row: JobRow) -> Reasons | None:
        """Return why no round would start the job; None if one would, or none can be tried."""
        try:
            job = self._as_seen(row)
            if job is None:
                return None
            state = ClusterState(0.0, self.gpus, (job,))
            why = played(self.cluster, state, self.rules, at=0.0).reasons[job.id]
        except MaatError:  # that no round can be tried keeps nobody from submitting
            log.exception("a job of cluster %s could not be tried alone", self.cluster.id)
            return None
        return why if why.primary in NEVER_RUNS else None

    def _as_seen(self, row: JobRow) -> Job | None:
        """Return a new job as rounds see it once it is profiled; None if it fails at once."""
        entry = EXECUTORS[self.cluster.executor]
        if entry.seconds_until_seen is None:
            spec = command_spec(
                declaration_of(row),
                id=row.id,
                submitted_at=0.0,
                gpu_types=self.gpus.type_names,
                work=None,
                tenant=self.tenants[row.tenant_id],
            )
            return Job(spec, Belief(), spec.work)
        fresh = JobRow(**row.model_dump() | {"submitted_seconds": 0.0})
        clock = FixedClock(entry.seconds_until_seen())
        news = News([fresh], self.tenants, ())
        begin = Restoration(self.cluster.id, self.gpus, clock, news, None, None)
        return next(iter(entry.restore(begin).observe().state.jobs), None)


def _alike(rows: Sequence[JobRow]) -> Mapping[str, Sequence[JobRow]]:
    """Group jobs of one tenant whose declarations are the same but for name and labels."""
    names = [name for name in DECLARED if name not in _OF_ONE]
    groups: dict[str, list[JobRow]] = {}
    for row in rows:
        asked = repr((row.tenant_id, [getattr(row, name) for name in names]))
        groups.setdefault(asked, []).append(row)
    return groups


def _among_all(session: Session, row: JobRow, why: Reasons) -> Reasons:
    """Return the reason with what the tenant holds of a quota: alone, its jobs held nothing."""
    gpu_type = why.evidence.get("quota_gpu_type")
    if not isinstance(gpu_type, str):
        return why
    used = held_by_tenant(session, row.cluster_id).get((row.tenant_id, gpu_type), 0)
    return replace(why, evidence={**why.evidence, "quota_used_gpus": used})
