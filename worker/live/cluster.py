"""A live cluster in a worker's memory: its executor and what the rows hold.

Writes nothing.

Made from the rows at one moment, and valid for many steps while no other worker makes rounds
(worker/live/memory.py). Changes returned for writing count as written: after a step that was not
committed, this object must be discarded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import col

from backend.clocktime import Moment, reanchor, shown_day
from backend.clusters.topology import engine_cluster, engine_node
from backend.models import Cluster as ClusterRow
from backend.models import Node as NodeRow
from maat.scheduling.cluster import Node
from maat.scheduling.events import Event
from maat.scheduling.job import Allocation, JobId
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState
from worker.executors import EXECUTORS
from worker.executors.checked import checked_applied, checked_observation
from worker.executors.numbering import layout, new_numbers, renumbered_changes
from worker.executors.protocol import Applied, News, Observation, Restoration, StoredState
from worker.jobs import journal as job_journal
from worker.jobs.journal import JobJournal
from worker.jobs.pauses import close_needs, without_paused
from worker.live.snapshot import Snapshot
from worker.rounds.event_memory import REMEMBERED_SECONDS
from worker.rounds.executor_rows import state_writes
from worker.writes import Write

_NODES = "nodes"  # of the stored head: the worker's part, the rest is the executor's


@dataclass
class FixedClock:
    """The cluster time of one step: all of it happens at once. The next step sets it."""

    seconds: float

    def now(self) -> float:
        return self.seconds

    def sleep_until(self, time: float) -> None:
        """Return at once: a live step is made when it is due and never waits."""


class LiveCluster:
    """The executor as the round loop sees it, and what a round stores besides itself.

    That is the state of every job, the executor's state, and the cluster's time. What the executor
    answers is checked before the loop or the journal sees it.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.id, self.executor_name = snapshot.cluster.id, snapshot.cluster.executor
        self._last_round = snapshot.cluster.next_round_number - 1
        self._last_at = snapshot.last_at
        self.interference = snapshot.interference
        self._shares = _sharing(snapshot.cluster)
        self._nodes = _as_numbered(snapshot.nodes)
        self._tenants = dict(snapshot.news.tenants)
        self._begun: tuple[ClusterRow, Moment] = (snapshot.cluster, snapshot.moment)
        self.clock = FixedClock(snapshot.now)
        restoration = restoration_of(snapshot, self.clock)
        self.cluster = restoration.cluster
        self._journal = JobJournal(snapshot.news.jobs, cluster_id=self.id, told=snapshot.told)
        self._journal.forget_before(snapshot.told_since)
        self._declared = {row.id: row.declared_version for row in snapshot.news.jobs}
        self._journal.paused, self._met = snapshot.news.paused, snapshot.news.met
        self._numbers = restoration.numbers
        self._all_moved = self._numbers is not None
        if self._numbers is not None:
            self._journal.renumber(self._numbers)
        self.executor = EXECUTORS[self.executor_name].restore(restoration)
        self._seen: Observation | None = None
        self._applied: Applied | None = None

    @property
    def declared(self) -> Mapping[JobId, int]:
        """The jobs, with the versions of their declarations."""
        return {job_id: self._declared[job_id] for job_id in self._journal.jobs}

    @property
    def tenants(self) -> Mapping[str, str]:
        """Return the names of tenants by id, as its jobs know them."""
        return self._tenants

    def is_up_to_date(self, cluster: ClusterRow, nodes: Sequence[NodeRow]) -> bool:
        """Return whether it matches the rows.

        The last round, the nodes, how jobs may share GPUs and the executor's name must be the
        same, and executor and journal must have the same jobs. So a job that the executor has lost
        is handed to it again.
        """
        mine = (self._last_round + 1, self._nodes, self._shares, self.executor_name)
        same_place = mine == (
            cluster.next_round_number,
            _as_numbered(nodes),
            _sharing(cluster),
            cluster.executor,
        )
        return same_place and self._journal.jobs.keys() == self.executor.known

    def go_on(self, news: News, cluster: ClusterRow, *, now: float, moment: Moment) -> None:
        """Begin the next step from memory."""
        self._begun = (cluster, moment)
        self._journal.forget_before(self.clock.now() - REMEMBERED_SECONDS)
        self.clock.seconds, self._all_moved = now, False
        self._tenants |= news.tenants
        self._journal.admit(news.jobs)
        self._journal.paused, self._met = news.paused, news.met
        self._declared |= {row.id: row.declared_version for row in news.jobs}
        self.executor.go_on(news)

    # ---- the executor of the round loop

    def observe(self) -> ClusterState:
        """Return the cluster now, with requests and node changes since the last round.

        Paused jobs are left out.
        """
        self._numbers = None
        checked = checked_observation(
            self.executor.observe(),
            self._journal.jobs,
            self.cluster,
            now=self.clock.now(),
            is_recorded=self._is_recorded,
        )
        self._seen = without_paused(checked, self._journal.paused)
        return self._seen.state

    def apply(self, changes: Changes) -> Sequence[Event]:
        """Apply a round.

        Changes left over from before nodes were added or removed have old GPU numbers.
        """
        if self._numbers is not None:
            changes = renumbered_changes(changes, self._numbers)
        self._applied = checked_applied(
            self.executor.apply(changes),
            self._journal.jobs,
            self.cluster,
            others=self._held_by_others,
            is_recorded=self._is_recorded,
        )
        return self._applied.events

    def _is_recorded(self, job_id: JobId, allocation: Allocation) -> bool:
        return self._journal.jobs[job_id].holds(allocation)

    def _held_by_others(self, job_ids: Collection[JobId]) -> Iterable[int]:
        for job_id, job in self._journal.jobs.items():
            if job.gpus is not None and job_id not in job_ids:
                yield from job.gpus

    # ---- the keeper of the round store

    def keep_round(self, result: RoundResult, observed: ClusterState) -> Sequence[Write]:
        number, journal = result.round_number, self._journal
        statuses = () if self._seen is None else self._seen.statuses
        moment = job_journal.Moment(observed.now, number, self.cluster)
        journal.record(observed.events, statuses, moment)
        answered = {status.job_id for status in statuses}
        journal.record_lost(journal.jobs.keys() - answered, moment)
        if self._is_first_of_day(observed.now):
            journal.read_counters(observed.now)
        self._last_at = observed.now
        journal.record_reasons(result.explained, round_number=number, at=observed.now)
        self._last_round = number
        return [
            *journal.take_writes(explained_by=number),
            *state_writes(self.executor.take_changes(), self.id),
            *self.executor.take_writes(),
            close_needs(self._met),
            self._anchor(),
        ]

    def keep_observation(self, observed: ClusterState) -> Sequence[Write]:
        """Record an observation that no round follows."""
        statuses = () if self._seen is None else self._seen.statuses
        moment = job_journal.Moment(observed.now, max(self._last_round, 0), self.cluster)
        self._journal.record(observed.events, statuses, moment)
        return [
            *self._journal.take_writes(),
            *state_writes(self.executor.take_changes(), self.id),
            *self.executor.take_writes(),
        ]

    def keep_applied(self, changes: Changes, events: Sequence[Event]) -> Sequence[Write]:
        statuses = () if self._applied is None else self._applied.statuses
        moment = job_journal.Moment(changes.time, changes.round_number, self.cluster)
        self._journal.record(events, statuses, moment)
        touched = {change.job_id for change in changes.items}
        touched |= {status.job_id for status in statuses} | {event.job_id for event in events}
        of = None if self._all_moved else touched
        return [
            *self._journal.take_writes(of=of),
            *state_writes(self.executor.take_changes(of=of), self.id),
            *self.executor.take_writes(),
        ]

    def _is_first_of_day(self, now: float) -> bool:
        cluster, _ = self._begun
        return self._last_at is not None and shown_day(cluster, self._last_at) != shown_day(
            cluster, now
        )

    def executor_state(self) -> Mapping[str, Any]:
        return {_NODES: layout(self.cluster), **self.executor.head()}

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


def restoration_of(snapshot: Snapshot, clock: FixedClock) -> Restoration:
    """Return what the executor of this cluster begins from."""
    cluster = engine_cluster(snapshot.nodes, jobs_per_gpu=snapshot.cluster.jobs_per_gpu)
    stored = snapshot.executor_state
    state, numbers = None, None
    if stored is not None:
        head = {name: value for name, value in stored.head.items() if name != _NODES}
        state = StoredState(head, stored.jobs)
        numbers = new_numbers(stored.head[_NODES], cluster)
    return Restoration(
        snapshot.cluster.id,
        cluster,
        clock,
        snapshot.news,
        state,
        numbers,
        interference=snapshot.interference,
    )


def _sharing(cluster: ClusterRow) -> tuple[int, str | None]:
    """Return how many jobs may share a GPU, and what they are declared to lose by it."""
    return cluster.jobs_per_gpu, cluster.interference


def _as_numbered(nodes: Sequence[NodeRow]) -> list[tuple[Node, float | None]]:
    """Return everything of the nodes that GPU numbers and usability depend on."""
    return [(engine_node(node), node.memory_gib) for node in nodes]
