"""The executor of clusters that run commands. Rounds become attempts; attempts tell how it goes.

It starts and stops nothing itself. It writes what a round wants of an attempt; worker/training
carries that out on an engine, and agents report through the service. So everything that it knows is
in tables of its own, which every step reads again. Its state of a job lists the events told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from backend.attempts.profiles import why_given_up
from backend.models import AttemptRow, JobCommand
from backend.models import Job as JobRow
from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.events import Event, EventKind
from maat.scheduling.job import Allocation, Job, JobId, JobSpec
from maat.scheduling.rounds import Change, ChangeKind, Changes, ClusterState
from maat.scheduling.stability import HOUR_SECONDS
from maat.vocabulary import AttemptKind, AttemptState, JobState, StopReason
from worker.executors.protocol import (
    Applied,
    JobStatus,
    News,
    Observation,
    Restoration,
    StateChanges,
    StoredJob,
)
from worker.executors.training_status import keeps_gpus, moved_at, status_of
from worker.training.attempt_writes import AttemptWrites, plan_to_json
from worker.training.beliefs import plan_of
from worker.training.doubts import UNKNOWN_WORK, flag
from worker.training.knowledge import Knowledge
from worker.training.places import Places
from worker.training.profiling import (
    MOST_WAIT_SECONDS,
    Wish,
    assign,
    profile_attempt,
    rooms_of,
    types_to_profile,
    waiting,
    waits_since,
)
from worker.training.retries import Standing, held_back, standing_of
from worker.training.tables import (
    TrainingTables,
    did_all_work,
    live_attempt,
    not_over,
    trained,
)
from worker.training.telling import events_of, state_event, told_of
from worker.writes import Write


@dataclass
class _Known:
    """A job that has not ended."""

    row: JobRow
    tenant: str


class Training:
    """The attempts of one cluster, as the round loop's executor."""

    def __init__(self, restoration: Restoration) -> None:
        self._cluster, self._clock = restoration.cluster, restoration.clock
        self._place = Places(restoration.cluster)
        self._knowledge = Knowledge(restoration.cluster)
        self._jobs: dict[JobId, _Known] = {}
        self._cancelled: set[JobId] = set()
        self._paused: Set[JobId] = frozenset()
        self._before_profile: set[JobId] = set()
        self._applied: dict[JobId, int] = {}
        self._wanted, self._flagged = AttemptWrites(), list[Write]()
        stored = {} if restoration.state is None else restoration.state.jobs
        self._stored = {job_id: texts.standing for job_id, texts in stored.items()}
        self._reported_events = {
            job_id: set(json.loads(text)) for job_id, text in self._stored.items()
        }
        self.go_on(restoration.news)

    @property
    def known(self) -> Set[JobId]:
        return self._jobs.keys()

    def go_on(self, news: News) -> None:
        tables: TrainingTables = news.tables
        self._tables = tables
        self._attempts = {job_id: list(rows) for job_id, rows in tables.attempts.items()}
        for row in news.jobs:
            self._jobs[row.id] = _Known(row, news.tenants[row.tenant_id])
            self._reported_events.setdefault(row.id, set())
        self._cancelled, self._paused = set(news.cancelled), news.paused.keys()
        models = {
            job_id: (known.row.tenant_id, known.row.model) for job_id, known in self._jobs.items()
        }
        self._knowledge.go_on(tables, models)

    def observe(self) -> Observation:
        now, events = self._clock.now(), list[Event]()
        seen, statuses = list[Job](), list[JobStatus]()
        self._profile(now)
        for job_id, known in list(self._jobs.items()):
            attempts = self._attempts.get(job_id, [])
            events += self._leave_lost_nodes(attempts, now)
            if job_id in self._paused:
                self._wanted.ask_to_end(live_attempt(attempts), StopReason.PAUSED, now)
            standing = standing_of(trained(attempts), self._command(job_id).max_retries)
            ended = self._ended(job_id, attempts, standing)
            events += self._flags(known, attempts, now)
            events += self._events(known, attempts, ended, standing, now)
            status = self._status(job_id, attempts, ended, now)
            if ended is None and live_attempt(attempts) is None:
                waits = held_back(standing, trained(attempts), now)
                status = status._replace(held_back=waits)
            statuses.append(status)
            if ended is not None:
                del self._jobs[job_id], self._reported_events[job_id]
                self._applied.pop(job_id, None)
                self._knowledge.forget(job_id)
                continue
            job = self._as_seen(job_id, known, attempts, now)
            if job_id in self._cancelled:
                self._wanted.ask_to_end(live_attempt(attempts), StopReason.CANCELLED, now)
            elif standing.may_start(now) and job_id not in self._before_profile:
                seen.append(job)
                self._replan(job, live_attempt(attempts))
        state = ClusterState(now, self._in_service(), tuple(seen), tuple(events))
        return Observation(state, statuses)

    def apply(self, changes: Changes) -> Applied:
        events, statuses = list[Event](), list[JobStatus]()
        for change in changes.items:
            known, number = self._jobs.get(change.job_id), changes.round_number
            if known is None:
                continue
            attempts = self._attempts.setdefault(change.job_id, [])
            if self._applied.get(change.job_id, _last_round(attempts)) < number:
                self._applied[change.job_id] = number
                events += self._changed(known, change, attempts, changes)
            statuses.append(self._status(change.job_id, attempts, None, changes.time))
        return Applied(events, statuses)

    def head(self) -> Mapping[str, Any]:
        return {}

    def take_changes(self, *, of: Iterable[JobId] | None = None) -> StateChanges:
        new, standing = dict[JobId, StoredJob](), dict[JobId, str]()
        for job_id in self._jobs if of is None else [job for job in of if job in self._jobs]:
            text = json.dumps(sorted(self._reported_events[job_id]))
            if job_id not in self._stored:
                new[job_id] = StoredJob(text, "")
            elif self._stored[job_id] != text:
                standing[job_id] = text
            self._stored[job_id] = text
        gone = [job_id for job_id in self._stored if job_id not in self._jobs]
        for job_id in gone:
            del self._stored[job_id]
        return StateChanges(new, standing, {}, gone)

    def take_writes(self) -> Sequence[Write]:
        flagged, self._flagged = self._flagged, []
        return [*self._knowledge.take_writes(), *flagged, *self._wanted.take()]

    # ---- what a round wants

    def _changed(
        self, known: _Known, change: Change, attempts: list[AttemptRow], changes: Changes
    ) -> Iterator[Event]:
        live, held = live_attempt(attempts), change.after
        profiled = live is not None and live.kind == AttemptKind.PROFILE
        if change.kind is ChangeKind.BATCH:
            if (
                live is not None
                and not profiled
                and change.grant is not None
                and change.grant.batch is not None
            ):
                self._wanted.give_plan(live, change.grant.batch)
            return
        if held is None:
            self._wanted.ask_to_end(live, StopReason.PREEMPTED, changes.time)
            yield state_event(changes.time, change.job_id, JobState.PREEMPTED)
            return
        state = JobState.RESTARTING if trained(attempts) else JobState.STARTING
        self._wanted.ask_to_end(live, StopReason.MOVED, changes.time)
        self._order(known, held, change, attempts, changes)
        data = {"gpu_type": held.gpu_type, "gpu_count": held.gpu_count}
        yield state_event(changes.time, change.job_id, state, data)

    def _order(
        self,
        known: _Known,
        held: Allocation,
        change: Change,
        attempts: list[AttemptRow],
        changes: Changes,
    ) -> None:
        by_node = self._place.by_node(held)
        planned = None if change.grant is None else change.grant.batch
        spec, belief = self._spec(known), self._belief(known.row.id)
        plan = planned or plan_of(spec, belief, held, len(by_node))
        row = AttemptRow(
            job_id=known.row.id,
            cluster_id=known.row.cluster_id,
            number=attempts[-1].number + 1 if attempts else 1,
            round_number=changes.round_number,
            state=AttemptState.ORDERED.value,
            reports=not spec.is_rigid,
            gpu_type=held.gpu_type,
            gpus_by_node={name: list(indices) for name, indices in by_node.items()},
            gpu_count=held.gpu_count,
            plan=plan_to_json(plan),
            plan_number=1,
            ordered_seconds=changes.time,
        )
        self._wanted.add(row, attempts)

    def _profile(self, now: float) -> None:
        """Order profiles on GPUs that nobody holds; note which jobs wait for their turn."""
        self._before_profile = set()
        if self._tables.paused:
            return
        wishes, types = list[Wish](), self._cluster.type_names
        for job_id, known in self._jobs.items():
            attempts = self._attempts.get(job_id, [])
            may = self._command(job_id).profile and not (
                job_id in self._cancelled or job_id in self._paused
            )
            if may and live_attempt(attempts) is None:
                spec, believed = self._spec(known), self._belief(job_id).by_type
                wanted = types_to_profile(spec, believed, attempts, gpu_types=types)
                wishes.append(Wish(job_id, wanted))
        if any(wish.gpu_types for wish in wishes):
            unended = [one for all_of in self._attempts.values() for one in all_of if not_over(one)]
            rooms = rooms_of(self._in_service(), unended)
            given = assign(wishes, rooms)
            self._before_profile = {
                job_id
                for job_id in waiting(wishes, rooms, given)
                if now - waits_since(self._jobs[job_id].row, self._attempts.get(job_id, ()))
                < MOST_WAIT_SECONDS
            }
            for job_id, (kind, gpu) in given.items():
                attempts = self._attempts.setdefault(job_id, [])
                known = self._jobs[job_id]
                self._wanted.add(profile_attempt(known.row, attempts, kind, gpu, now), attempts)

    def _leave_lost_nodes(self, attempts: Sequence[AttemptRow], now: float) -> Iterator[Event]:
        """Take attempts from nodes that were removed from the cluster."""
        live = live_attempt(attempts)
        if live is None or live.stop_reason is not None or self._place.allocation(live):
            return
        self._wanted.ask_to_end(live, StopReason.PREEMPTED, now)
        if live.kind == AttemptKind.PROFILE:
            return
        data = {"cause": EventKind.NODE_FAILED.value}
        yield state_event(now, live.job_id, JobState.PREEMPTED, data)

    def _replan(self, job: Job, live: AttemptRow | None) -> None:
        """Give a running job another batch plan where one is believed to be better."""
        if live is None or live.state != AttemptState.RUNNING or job.spec.has_fixed_batch:
            return
        if self._shares(live):  # its batch was split so that both fit
            return
        if live.kind == AttemptKind.TRAIN and job.allocation is not None:
            self._wanted.give_plan(
                live, plan_of(job.spec, job.belief, job.allocation, len(live.gpus_by_node))
            )

    def _shares(self, live: AttemptRow) -> bool:
        """Return whether another attempt that is not over has one of its GPUs."""
        if self._cluster.jobs_per_gpu == 1:
            return False
        mine = {(node, gpu) for node, gpus in live.gpus_by_node.items() for gpu in gpus}
        return any(
            (node, gpu) in mine
            for attempts in self._attempts.values()
            for other in attempts
            if other.id != live.id and not_over(other)
            for node, gpus in other.gpus_by_node.items()
            for gpu in gpus
        )

    # ---- how things stand

    def _ended(
        self, job_id: JobId, attempts: Sequence[AttemptRow], standing: Standing
    ) -> JobState | None:
        if live_attempt(attempts) is not None:
            return None
        if any(did_all_work(each) for each in attempts):
            return JobState.SUCCEEDED
        if job_id in self._cancelled:
            return JobState.CANCELLED
        return JobState.FAILED if standing.has_failed else None

    def _events(
        self,
        known: _Known,
        attempts: Sequence[AttemptRow],
        ended: JobState | None,
        standing: Standing,
        now: float,
    ) -> Iterator[Event]:
        """Tell what has become of the job and its newest attempts, each once."""
        job_id = known.row.id
        gave_up = why_given_up(self._belief(job_id).by_type, attempts)
        fault, told = self._tables.engine_fault, self._reported_events[job_id]
        self._reported_events[job_id] = told_of(attempts, told, engine_fault=fault)
        return events_of(
            known.row,
            attempts,
            told,
            ended=ended,
            gave_up=gave_up,
            standing=standing,
            engine_fault=fault,
            now=now,
        )

    def _flags(self, known: _Known, attempts: Sequence[AttemptRow], now: float) -> Iterator[Event]:
        """Flag the job for what is unlikely of what it reported, each once."""
        doubts = self._knowledge.doubts(known.row.id, attempts, now=now)
        before = self._tables.flags.get(known.row.id, {}).keys()
        for event, writes in flag(known.row, _newest(attempts), doubts, before, now):
            self._flagged += writes
            yield event

    def _status(
        self, job_id: JobId, attempts: Sequence[AttemptRow], ended: JobState | None, now: float
    ) -> JobStatus:
        return status_of(
            job_id,
            attempts,
            ended=ended,
            total=self._work(job_id, attempts),
            place=self._place,
            waits_for_profile=job_id in self._before_profile,
            gradient=next(iter(self._tables.gradients.get(job_id, ())), None),
            now=now,
        )

    def _as_seen(
        self, job_id: JobId, known: _Known, attempts: Sequence[AttemptRow], now: float
    ) -> Job:
        """Return the job as the scheduler may know it.

        Until its processes run, its GPUs stay what the last round gave it.
        """
        live, status = live_attempt(attempts), self._status(job_id, attempts, None, now)
        held = self._place.allocation(live) if live is not None and keeps_gpus(live) else None
        by_type: dict[str, float] = {}
        for attempt in attempts:
            spent = by_type.get(attempt.gpu_type, 0.0)
            by_type[attempt.gpu_type] = spent + attempt.gpu_seconds(now)
        return Job(
            self._spec(known),
            self._belief(job_id),
            status.remaining_work,
            allocation=held,
            attained_gpu_seconds=by_type,
            restarts=status.restarts,
            restarting=held is not None and live is not None and not _trains(live),
            started_at=status.started_at,
            held_since=None if held is None or live is None else live.queued_seconds,
            moved_at=moved_at(attempts, since=now - HOUR_SECONDS),
        )

    def _in_service(self) -> Cluster:
        """Return the cluster without nodes that the engine cannot use."""
        faults, cluster = self._tables.faults, self._knowledge.cluster
        if not faults:
            return cluster
        nodes = [
            replace(node, drained=frozenset(range(node.gpu_count))) if node.id in faults else node
            for node in cluster.nodes
        ]
        return replace(cluster, nodes=tuple(nodes))

    def _spec(self, known: _Known) -> JobSpec:
        attempts = self._attempts.get(known.row.id, ())
        return self._knowledge.spec(known.row, known.tenant, attempts)

    def _belief(self, job_id: JobId) -> Belief:
        return self._knowledge.belief(job_id, now=self._clock.now())

    def _work(self, job_id: JobId, attempts: Sequence[AttemptRow]) -> float | None:
        """Return what the script last said, or else its owner: effective samples in all.

        None while what it says of its work is doubted.
        """
        if UNKNOWN_WORK & set(self._knowledge.flags(job_id)):
            return None
        said = [each.total_samples for each in attempts if each.total_samples is not None]
        return said[-1] if said else self._command(job_id).total_samples

    def _command(self, job_id: JobId) -> JobCommand:
        return self._tables.commands[job_id]


def _last_round(attempts: Sequence[AttemptRow]) -> int:
    return max((one.round_number for one in attempts), default=0)


def _newest(attempts: Sequence[AttemptRow]) -> int:
    return attempts[-1].number if attempts else 0


def _trains(live: AttemptRow) -> bool:
    """Return whether a round may move the job: it does not start, and is not profiled."""
    return live.kind == AttemptKind.TRAIN and live.state == AttemptState.RUNNING
