"""A live cluster in a worker's memory: its executor and what the rows hold.

Writes nothing.

Made from the rows at one moment, and valid for many steps while no other worker makes rounds
(worker/live_memory.py). Changes returned for writing count as written: after a step that was not
committed, this object must be discarded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlmodel import col

from backend.clocktime import Moment, reanchor
from backend.clusters.topology import engine_cluster, engine_node
from backend.models import Cluster as ClusterRow
from backend.models import Node as NodeRow
from maat.scheduling.cluster import Node
from maat.scheduling.events import Event
from maat.scheduling.job import JobId
from maat.scheduling.rounds import Changes, ClusterState, RoundResult
from maat.simulation.world_models import Model, catalog_models
from worker.executor_rows import ExecutorRows
from worker.job_journal import JobJournal
from worker.live_executor import FixedClock, LiveExecutor
from worker.live_snapshot import News, Snapshot
from worker.writes import Write


@lru_cache(maxsize=1)
def live_models() -> Mapping[str, Model]:
    """Return the catalog, read once per process."""
    return catalog_models()


class LiveCluster:
    """Also keeps what a round stores besides itself.

    That is the state of every job, the executor's state, and the cluster's time.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.id = snapshot.cluster.id
        self._last_round = snapshot.cluster.next_round_number - 1
        self._nodes = _as_numbered(snapshot.nodes)
        self._begun: tuple[ClusterRow, Moment] = (snapshot.cluster, snapshot.moment)
        self.clock = FixedClock(snapshot.now)
        state = snapshot.executor_state
        self.executor = LiveExecutor(
            engine_cluster(snapshot.nodes),
            self.clock,
            snapshot.jobs,
            live_models(),
            state,
            tenants=snapshot.tenants,
        )
        self._journal = JobJournal(snapshot.jobs, cluster_id=self.id)
        self._rows = ExecutorRows(self.id, {} if state is None else state.jobs)

    @property
    def jobs(self) -> Sequence[JobId]:
        return list(self._journal.jobs)

    def is_up_to_date(self, cluster: ClusterRow, nodes: Sequence[NodeRow]) -> bool:
        """Return whether it matches the rows.

        The last round and the nodes must be the same, and executor and journal must have the same
        jobs.
        """
        same_place = (self._last_round + 1, self._nodes) == (
            cluster.next_round_number,
            _as_numbered(nodes),
        )
        return same_place and self._journal.jobs.keys() == self.executor.simulated.unfinished

    def go_on(self, news: News, cluster: ClusterRow, *, now: float, moment: Moment) -> None:
        """Begin the next step from memory."""
        self._begun = (cluster, moment)
        self._journal.admit(news.jobs)
        self.executor.go_on(now, news.jobs, cancelled=news.cancelled, tenants=news.tenants)

    def keep_round(self, result: RoundResult, observed: ClusterState) -> Sequence[Write]:
        number, simulated = result.round_number, self.executor.simulated
        for job in (*simulated.jobs.values(), *simulated.finished.values()):
            self._journal.record_state(job)
        for event in observed.events:
            self._journal.record_event(event, round_number=number)
        for job in simulated.jobs.values():
            if job.allocation is None:
                self._journal.record_allocation(
                    job.spec.id, None, observed.cluster, at=observed.now, round_number=number
                )
            elif self.executor.was_renumbered:
                self._journal.renumber(job.spec.id, job.allocation)
        self._journal.record_reasons(result.reasons, round_number=number)
        self._last_round = number
        return [
            *self._journal.take_writes(explained_by=number),
            *self._rows.changes(simulated.jobs),
            self._anchor(),
        ]

    def keep_applied(self, changes: Changes, events: Sequence[Event]) -> Sequence[Write]:
        number, jobs = changes.round_number, self.executor.simulated.jobs
        for event in events:
            self._journal.record_event(event, round_number=number)
        touched = [change.job_id for change in changes.items if change.job_id in jobs]
        for job in (jobs[job_id] for job_id in touched):
            self._journal.record_allocation(
                job.spec.id,
                job.allocation,
                self.executor.cluster,
                at=changes.time,
                round_number=number,
            )
            self._journal.record_state(job)
        others_too = self.executor.was_renumbered
        return [
            *self._journal.take_writes(of=touched),
            *self._rows.changes(jobs, touched=None if others_too else touched),
        ]

    def executor_state(self) -> Mapping[str, Any]:
        return self.executor.head()

    def _anchor(self) -> Write:
        """Anchor cluster time at the round.

        Does nothing if it was anchored in the meantime, for another speed or a pause.
        """
        read, moment = self._begun
        cluster = ClusterRow(**read.model_dump())
        reanchor(cluster, moment)
        as_read = [
            col(getattr(ClusterRow, name)) == getattr(read, name)
            for name in ("id", "version", "anchor_seconds", "anchor_wall")
        ]
        values = {
            name: getattr(cluster, name)
            for name in ("anchor_wall", "anchor_boot", "anchor_boot_seconds", "anchor_seconds")
        }
        return Write(sa.update(ClusterRow).where(*as_read).values(**values))


def _as_numbered(nodes: Sequence[NodeRow]) -> list[tuple[Node, float | None]]:
    """Return everything of the nodes that GPU numbers and usability depend on."""
    return [(engine_node(node), node.memory_gib) for node in nodes]
