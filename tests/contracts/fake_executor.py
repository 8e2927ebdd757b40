"""An executor over a world of its own, as a real one is: processes that outlive the worker.

It keeps to the contract, except where it is told to do mischief.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from maat.scheduling.belief import Belief
from maat.scheduling.cluster import Cluster
from maat.scheduling.events import TERMINAL, Event, EventKind
from maat.scheduling.job import Allocation, Job, JobId, JobSpec
from maat.scheduling.rounds import Change, ChangeKind, Changes, ClusterState
from maat.vocabulary import JobState
from worker.executors.protocol import (
    Applied,
    JobStatus,
    News,
    Observation,
    Restoration,
    StateChanges,
    StoredJob,
)
from worker.jobs.spec import job_spec
from worker.writes import Write

WORK = 600.0  # GPU seconds of every job
MISCHIEF = (
    "starts late",
    "starts never",
    "loses GPUs",
    "loses jobs",
    "takes other GPUs",
    "repeats events",
    "tells events out of order",
    "tells no events",
    "tells of unknown jobs",
    "tells of impossible times",
    "tells impossible states",
    "ends jobs that run",
    "answers apply twice",
    "leaves answers out",
    "answers twice about a job",
    "answers with no numbers",
    "ignores changes",
    "knows ghosts",
)


@dataclass
class Mischief:
    """How often, from 0 to 1, the executor does what it must not."""

    rates: Mapping[str, float] = field(default_factory=dict)
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    is_over: bool = False

    def now(self, kind: str) -> bool:
        assert kind in MISCHIEF
        rate = 0.0 if self.is_over else self.rates.get(kind, 0.0)
        return rate > 0 and self.chance.random() < rate


@dataclass
class WorldJob:
    """One job's processes. GPUs go by node and index: numbers change with the nodes."""

    spec: JobSpec
    at: float
    held: tuple[tuple[str, int], ...] = ()
    promised: tuple[tuple[str, int], ...] = ()
    done: float = 0.0
    gpu_seconds: float = 0.0
    restarts: int = 0
    started_at: float | None = None
    ended: JobState | None = None
    applied_round: int = -1


@dataclass
class World:
    """What runs, and all that ever happened. `told` of an executor's state counts these events."""

    jobs: dict[JobId, WorldJob] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def happen(self, time: float, job_id: JobId, state: JobState) -> None:
        self.events.append(Event(time, job_id, EventKind.STATE, state))

    def end(self, job_id: JobId, state: JobState, time: float) -> None:
        job = self.jobs[job_id]
        job.ended, job.held, job.promised = state, (), ()
        self.happen(time, job_id, state)


class FakeExecutor:
    """An executor of jobs that take 600 GPU seconds each, on any GPUs."""

    def __init__(self, restoration: Restoration, world: World, mischief: Mischief) -> None:
        self._cluster, self._clock = restoration.cluster, restoration.clock
        self._world, self._mischief = world, mischief
        state = restoration.state
        self._event_count: int = 0 if state is None else state.head["told"]
        self._stored: dict[JobId, str] = (
            {} if state is None else {job_id: job.standing for job_id, job in state.jobs.items()}
        )
        rows = {row.id for row in restoration.news.jobs}
        world.jobs = {job_id: job for job_id, job in world.jobs.items() if job_id in rows}
        self._first = dict(zip(_names(self._cluster), range(10**6), strict=False))
        self._admit(restoration.news)
        for job_id, job in world.jobs.items():
            if not all(gpu in self._first for gpu in (*job.held, *job.promised)):
                self._lose(job_id)

    @property
    def known(self) -> Set[JobId]:
        ghosts = {"ghost"} if self._mischief.now("knows ghosts") else set()
        return ghosts | {i for i, job in self._world.jobs.items() if job.ended is None}

    def go_on(self, news: News) -> None:
        jobs = self._world.jobs
        for job_id in [job_id for job_id, job in jobs.items() if job.ended is not None]:
            del jobs[job_id]
        self._admit(news)

    def observe(self) -> Observation:
        now = self._clock.now()
        for job_id in list(self._world.jobs):
            self._live(job_id, now)
            if job_id in self._paused:
                job = self._world.jobs[job_id]
                job.held, job.promised = (), ()
            self._go_wrong(job_id, now)
        seen = [self._seen(job) for job in self._world.jobs.values() if job.ended is None]
        if seen and self._mischief.now("answers twice about a job"):
            seen.append(seen[0])
        state = ClusterState(now, self._cluster, tuple(seen), tuple(self._tell(now)))
        return Observation(state, self._statuses(list(self._world.jobs)))

    def apply(self, changes: Changes) -> Applied:
        for change in changes.items:
            job = self._world.jobs.get(change.job_id)
            if job is None or job.ended is not None or job.applied_round >= changes.round_number:
                continue
            if not self._mischief.now("ignores changes"):
                job.applied_round = changes.round_number
                self._change(job, change, changes.time)
        events = self._tell(changes.time)
        if self._mischief.now("answers apply twice"):
            events = [*events, *events]
        touched = [change.job_id for change in changes.items]
        return Applied(events, self._statuses([i for i in touched if i in self._world.jobs]))

    def head(self) -> Mapping[str, Any]:
        return {"told": self._event_count}

    def take_writes(self) -> Sequence[Write]:
        return ()

    def take_changes(self, *, of: Iterable[JobId] | None = None) -> StateChanges:
        now = {
            job_id: json.dumps([job.done, job.restarts, job.held, job.applied_round])
            for job_id, job in self._world.jobs.items()
            if job.ended is None
        }
        before, self._stored = self._stored, now
        return StateChanges(
            new={i: StoredJob(text, "{}") for i, text in now.items() if i not in before},
            standing={i: t for i, t in now.items() if i in before and before[i] != t},
            gone=[job_id for job_id in before if job_id not in now],
        )

    # ---- what happens

    def _admit(self, news: News) -> None:
        now = self._clock.now()
        for row in news.jobs:
            if row.id not in self._world.jobs:
                spec = job_spec(row, tenant=news.tenants[row.tenant_id])
                self._world.jobs[row.id] = WorldJob(spec, now)
                if row.state == JobState.SUBMITTED:
                    self._world.happen(now, row.id, JobState.PENDING)
        for job_id in news.cancelled:
            if job_id in self._world.jobs and self._world.jobs[job_id].ended is None:
                self._world.end(job_id, JobState.CANCELLED, now)
        self._paused = news.paused.keys()

    def _live(self, job_id: JobId, now: float) -> None:
        job, since = self._world.jobs[job_id], self._world.jobs[job_id].at
        job.at = now
        if job.promised and not self._mischief.now("starts late"):
            job.held, job.promised = job.promised, ()
            self._world.happen(now, job_id, JobState.RUNNING)
        elif job.held and now > since:
            needed = (WORK - job.done) / len(job.held)
            spent = min(now - since, needed)
            job.done += spent * len(job.held)
            job.gpu_seconds += spent * len(job.held)
            if now - since >= needed:
                self._world.end(job_id, JobState.SUCCEEDED, since + needed)

    def _change(self, job: WorldJob, change: Change, now: float) -> None:
        if change.kind is ChangeKind.BATCH:
            return
        job_id = job.spec.id
        if change.after is None:
            job.held, job.promised = (), ()
            self._world.happen(now, job_id, JobState.PREEMPTED)
            return
        names = _names(self._cluster)
        gpus = tuple(names[gpu] for gpu in change.after.gpus)
        is_first, job.at = job.started_at is None, now
        job.started_at = now if job.started_at is None else job.started_at
        job.restarts += not is_first
        late = self._mischief.now("starts late") or self._mischief.now("starts never")
        job.held, job.promised = ((), gpus) if late else (gpus, ())
        if self._mischief.now("starts never"):
            job.promised = ()
        self._world.happen(now, job_id, JobState.STARTING if is_first else JobState.RESTARTING)

    def _lose(self, job_id: JobId) -> None:
        job = self._world.jobs[job_id]
        job.held, job.promised = (), ()
        if job.ended is None:
            self._world.happen(self._clock.now(), job_id, JobState.PREEMPTED)

    # ---- what it tells

    def _tell(self, now: float) -> list[Event]:
        news, self._event_count = self._world.events[self._event_count :], len(self._world.events)
        mischief, some = self._mischief, [*self._world.jobs, "nobody"]
        chosen = mischief.chance.choice
        if mischief.now("tells no events"):
            news = []
        if self._world.events and mischief.now("repeats events"):
            news += mischief.chance.choices(self._world.events, k=4)
        if mischief.now("tells of unknown jobs"):
            news.append(Event(now, "nobody", EventKind.STATE, JobState.RUNNING))
        if mischief.now("tells of impossible times"):
            for time in (math.nan, now + 1e6, -1e6):
                news.append(Event(time, chosen(some), EventKind.STATE, JobState.RUNNING))
        if mischief.now("tells impossible states"):
            states = [state for state in JobState if state not in TERMINAL]
            news.append(Event(now, chosen(some), EventKind.STATE, chosen(states), {"x": math.nan}))
        if mischief.now("ends jobs that run"):
            news.append(Event(now, chosen(some), EventKind.STATE, JobState.SUCCEEDED))
        if mischief.now("tells events out of order"):
            mischief.chance.shuffle(news)
        return news

    def _go_wrong(self, job_id: JobId, now: float) -> None:
        job, mischief = self._world.jobs[job_id], self._mischief
        if mischief.now("loses GPUs"):
            job.held, job.promised = (), ()
        if mischief.now("takes other GPUs"):
            job.held = tuple(mischief.chance.sample(list(self._first), k=2))
        if mischief.now("loses jobs"):
            del self._world.jobs[job_id]

    def _statuses(self, job_ids: Sequence[JobId]) -> list[JobStatus]:
        statuses = [
            self._status(self._world.jobs[job_id])
            for job_id in job_ids
            if not self._mischief.now("leaves answers out")
        ]
        if statuses and self._mischief.now("answers twice about a job"):
            statuses.append(statuses[0]._replace(allocation=None))
        if statuses and self._mischief.now("answers with no numbers"):
            statuses[-1] = statuses[-1]._replace(remaining_work=math.nan)
        return statuses

    def _status(self, job: WorldJob) -> JobStatus:
        return JobStatus(
            job.spec.id,
            job.done / WORK,
            max(WORK - job.done, 0.0),
            job.gpu_seconds,
            job.restarts,
            job.started_at,
            self._allocation(job.held),
            float(len(job.held)) or None,
            None,
            job.ended,
            bool(job.promised),
        )

    def _seen(self, job: WorldJob) -> Job:
        return Job(
            job.spec,
            Belief(),
            max(WORK - job.done, 1e-6),
            self._allocation(job.held or job.promised),
            restarts=job.restarts,
            restarting=bool(job.promised),
            started_at=job.started_at,
        )

    def _allocation(self, gpus: Sequence[tuple[str, int]]) -> Allocation | None:
        if not gpus:
            return None
        numbers = tuple(sorted(self._first[gpu] for gpu in gpus))
        kinds = self._cluster.gpu_type_of[list(numbers)].tolist()
        return Allocation(self._cluster.type_names[kinds[0]], numbers)


def _names(cluster: Cluster) -> list[tuple[str, int]]:
    """Node and index of every GPU, by its number."""
    return [(node.id, index) for node in cluster.nodes for index in range(node.gpu_count)]
