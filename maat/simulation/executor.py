"""The simulated executor: runs jobs by their truth and applies changes.

It shows the scheduler only what a real cluster would show.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from maat.models.truth import Shape, Truth
from maat.scheduling.belief import Fitter, TypeBelief
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import MaatError
from maat.scheduling.events import Event, EventKind
from maat.scheduling.job import Job, JobId, JobSpec
from maat.scheduling.protocols import Clock
from maat.scheduling.regimes import Regime
from maat.scheduling.rounds import Change, ChangeKind, Changes, ClusterState
from maat.scheduling.standing import RoundsAhead
from maat.simulation.failures import NodeFailure, Outages
from maat.simulation.fidelity import Fidelity
from maat.simulation.job_recorder import JobRecorder
from maat.simulation.job_snapshot import JobSnapshot, beliefs_from_json, samples_to_json
from maat.simulation.profiling import profiled_shapes, revealed_samples
from maat.simulation.simulated_job import SimulatedJob, shape_of
from maat.simulation.slowdowns import Slowdown, coupled, set_paces
from maat.vocabulary import JobState, ProfilingMode


class SimulatedExecutor:
    """Jobs by id, advanced to the clock's time at each observation.

    `apply` is idempotent by (round, job). `dump` and `load` carry the state over a restart.
    `outages`: node failures; the GPUs of a failed node appear as drained until its repair, and jobs
    on them return to their last checkpoint and wait. `recorder`: keeps what jobs hold and achieve
    over time, if that is wanted.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        fidelity: Fidelity,
        *,
        fitter: Fitter | None = None,
        outages: Outages | None = None,
        slowdowns: Sequence[Slowdown] = (),
        recorder: JobRecorder | None = None,
    ) -> None:
        self.cluster = cluster
        self._outages = Outages(cluster, ()) if outages is None else outages
        self._slowdowns = tuple(slowdowns)
        self._recorder = recorder
        self._clock = clock
        self._fidelity = fidelity
        self._fitter = fidelity.fitter() if fitter is None else fitter
        self._gpu_node: list[int] = cluster.gpu_node.tolist()
        self._now = self._look = clock.now()
        self._to_come: list[tuple[float, int, SimulatedJob]] = []
        self._ids_to_come: set[JobId] = set()
        self._submitted = 0
        self._unseen: list[Event] = []
        self.jobs: dict[JobId, SimulatedJob] = {}
        self.finished: dict[JobId, SimulatedJob] = {}

    # ---- jobs come and go

    def submit(
        self,
        spec: JobSpec,
        truth: Truth,
        *,
        restart_seconds: float,
        work_scale: float = 1.0,
        regimes: tuple[Regime, ...] = (),
    ) -> None:
        """Accept a job. The scheduler sees it once it is submitted and profiled.

        `work_scale`: share of the standard training. `regimes`: batch sizes that the job sets
        itself, epoch by epoch. Raises MaatError if the id is taken.
        """
        if spec.id in self.jobs or spec.id in self.finished or spec.id in self._ids_to_come:
            raise MaatError(f"job {spec.id} was submitted before")
        ends = epoch_ends(truth, work_scale, regimes)
        beyond_plan = self._fidelity.plan_within_trace_batch
        most = (
            truth.max_batch_size if beyond_plan else min(spec.max_batch_size, truth.max_batch_size)
        )
        job = SimulatedJob(spec, truth, restart_seconds, ends, most, regimes=regimes)
        if self._recorder is not None:
            self._recorder.begin(job)
        bisect.insort(self._to_come, (self._visible_at(spec), self._submitted, job))
        self._ids_to_come.add(spec.id)
        self._submitted += 1

    def cancel(self, job_id: JobId) -> None:
        """Remove a job; its GPUs are free from the next round on.

        No effect on an unknown or finished job.
        """
        self.jobs.pop(job_id, None)
        self._ids_to_come.discard(job_id)
        self._to_come = [entry for entry in self._to_come if entry[2].spec.id != job_id]

    def withdraw(self, job_ids: Collection[JobId]) -> None:
        """Take the GPUs of these jobs away, as of the last observation; they save their work."""
        for job_id in job_ids:
            job = self.jobs.get(job_id)
            if job is not None and job.allocation is not None:
                job.hold(None, (), None, restarts=False, now=self._now)

    def _visible_at(self, spec: JobSpec) -> float:
        shapes = [len(self._profiled_shapes(spec, kind)) for kind in self._usable_types(spec)]
        runs = max(shapes, default=0)  # of each type at once, one shape after the other
        return spec.submitted_at + runs * self._fidelity.profiling_seconds_per_type

    def _usable_types(self, spec: JobSpec) -> list[str]:
        return [kind for kind in self.cluster.type_names if spec.may_use(kind)]

    def _profiled_shapes(self, spec: JobSpec, kind: str) -> list[Shape]:
        return profiled_shapes(spec, kind, self._fidelity.profiling, self.cluster)

    @property
    def unfinished(self) -> Set[JobId]:
        """The jobs that have not finished, including those still to be submitted."""
        return self.jobs.keys() | self._ids_to_come

    @property
    def now(self) -> float:
        """The time up to which every job has been advanced."""
        return self._now

    # ---- Executor

    def observe(self) -> ClusterState:
        """Advance every job to now; return the events and the jobs to schedule."""
        now = self._clock.now()
        for job in self.jobs.values():
            job.forget_batch_ends()
        events = [*self._unseen, *self._advance_all(now), *self._arrivals(now)]
        self._unseen = []
        in_service = self._outages.cluster_at(now)
        more_later = bool(self._to_come) or (bool(self.jobs) and in_service is not self.cluster)
        return ClusterState(now, in_service, self._as_seen(), tuple(events), more_later)

    def pass_over(self, rounds: RoundsAhead) -> int:
        """Advance jobs through these rounds without scheduling.

        Returns how many were skipped: stops before the first round that would see an event. Without
        any jobs, all rounds up to the next submission are skipped at once.
        """
        quiet = rounds.before(self._next_change())
        if not self.jobs:
            return len(quiet)
        count = 0
        for time in quiet:
            self._unseen = self._advance_all(time)
            if self._unseen:
                break
            count += 1
        return count

    def _next_change(self) -> float:
        """The time of the next submission, arrival, node failure or repair.

        Infinite if there is none.
        """
        visible_at, submitted_at = (
            (self._to_come[0][0], self._to_come[0][2].spec.submitted_at)
            if self._to_come
            else (math.inf, math.inf)
        )
        return min(
            submitted_at if submitted_at > self._now else visible_at,
            self._outages.next_change(self._now),
        )

    def _advance_all(self, now: float) -> list[Event]:
        """Advance every job to `now` and return the events.

        Finished jobs move to `finished`.
        """
        self._look = now
        failures = self._outages.between(self._now, now)
        running = tuple(job for job in self.jobs.values() if job.allocation is not None)
        alone, groups = coupled(running, self._slowdowns) if self._slowdowns else (running, ())
        events = [
            event
            for job in alone
            for event in self._advance_unless_hit(job, failures, self._now, now)
        ]
        for group in groups:
            events += self._advance_group(group, failures, now)
        for job_id in [job_id for job_id, job in self.jobs.items() if job.finished_at is not None]:
            self.finished[job_id] = self.jobs.pop(job_id)
        self._now = now
        return events

    def _as_seen(self) -> tuple[Job, ...]:
        if self._fidelity.profiling is not ProfilingMode.REQUEST_ORACLE:
            return tuple(job.as_seen() for job in self.jobs.values())
        late = self._fidelity.steps_from_epoch_end
        return tuple(
            job.as_seen(remaining_steps=job.steps_left(from_epoch_end=late))
            for job in self.jobs.values()
        )

    def apply(self, changes: Changes) -> Sequence[Event]:
        """Carry out the changes of a round.

        Skips changes that were carried out before, and those of jobs that have finished.
        """
        events = []
        for change in changes.items:
            job = self.jobs.get(change.job_id)
            if job is not None and job.applied_round < changes.round_number:
                job.applied_round = changes.round_number
                events += self._change(job, change, changes.time)
        if self._slowdowns:
            set_paces(tuple(self.jobs.values()), self._slowdowns)
        return events

    def _advance_group(
        self, group: Sequence[SimulatedJob], failures: Sequence[NodeFailure], now: float
    ) -> list[Event]:
        """Advance jobs that slow each other, event by event: each event changes their pace.

        Advance every job to `now`. If one finishes or loses its GPUs earlier, roll the others back
        and advance them to that moment instead; then continue with the remaining jobs at their new
        pace.
        """
        begin, events, left = self._now, list[Event](), list(group)
        while left:
            before = [job.progress() for job in left]
            lived = [self._advance_unless_hit(job, failures, begin, now) for job in left]
            ends = [_left_at(job, happened) for job, happened in zip(left, lived, strict=True)]
            first = min(range(len(left)), key=lambda i: ends[i])
            if ends[first] >= now:
                return events + [event for happened in lived for event in happened]
            events += lived[first]
            for i, job in enumerate(left):
                if i != first:
                    job.put_back(before[i])
                    events += self._advance_unless_hit(job, failures, begin, ends[first])
            left = [
                job
                for i, job in enumerate(left)
                if i != first and job.allocation is not None and job.finished_at is None
            ]
            set_paces(left, self._slowdowns)
            begin = ends[first]
        return events

    def _advance_unless_hit(
        self, job: SimulatedJob, failures: Sequence[NodeFailure], begin: float, now: float
    ) -> list[Event]:
        """Advance a job to `now`, or to the failure of one of its nodes."""
        if not failures:
            return self._advance(job, begin, now)
        hit = next(
            (
                failure
                for failure in failures
                if begin < failure.time <= now and failure.node in self._nodes_of(job)
            ),
            None,
        )
        events = self._advance(job, begin, now if hit is None else hit.time)
        if hit is not None and job.finished_at is None:
            undone = job.ledger.done_work - job.ledger.saved_work
            job.interrupt(hit.time)
            self._record_holding(job, hit.time)
            data: dict[str, object] = {
                "cause": EventKind.NODE_FAILED.value,
                "node": hit.node,
                "lost_work": undone,
            }
            events.append(Event(hit.time, job.spec.id, EventKind.STATE, JobState.PREEMPTED, data))
        return events

    def _nodes_of(self, job: SimulatedJob) -> set[str]:
        return (
            set()
            if job.allocation is None
            else {self.cluster.nodes[self._gpu_node[gpu]].id for gpu in job.allocation.gpus}
        )

    def _advance(self, job: SimulatedJob, begin: float, now: float) -> list[Event]:
        events, left = list[Event](), job.ledger.restart_left
        job.advance(
            begin, now, fitter=self._fitter, whole_second_epochs=self._fidelity.whole_second_epochs
        )
        if job.finished_at is not None and self._fidelity.completion_at_round_end:
            job.ledger.finished_at = self._look
        if left > 0 and job.ledger.restart_left <= 0 and job.allocation is not None:
            events.append(Event(begin + left, job.spec.id, EventKind.STATE, JobState.RUNNING))
        if job.finished_at is not None:
            events.append(Event(job.finished_at, job.spec.id, EventKind.STATE, JobState.SUCCEEDED))
        return events

    def _arrivals(self, now: float) -> list[Event]:
        events = []
        while self._to_come and self._to_come[0][0] <= now:
            visible_at, _, job = self._to_come.pop(0)
            self._ids_to_come.discard(job.spec.id)
            self.jobs[job.spec.id] = job
            self._profile(job)
            events.append(Event(visible_at, job.spec.id, EventKind.STATE, JobState.PENDING))
        return events

    def _change(self, job: SimulatedJob, change: Change, now: float) -> list[Event]:
        grant, after = change.grant, change.after
        plan = grant.batch if grant is not None else None
        shape = (
            shape_of(after.gpus, self._gpu_node, fullest_first=self._fidelity.fullest_node_first)
            if after is not None
            else ()
        )
        moved = after != job.allocation
        same_place = (
            job.allocation is not None
            and after is not None
            and job.allocation.gpu_type == after.gpu_type
            and shape == job.shape
        )
        free = not moved or (self._fidelity.free_moves_of_same_shape and same_place)
        first = job.ledger.started_at is None
        if not free and job.allocation is not None:
            job.ledger.move(now)
        job.hold(after, shape, plan, restarts=not free, now=now)
        if not moved:
            return []
        self._record_holding(job, now)
        data: dict[str, object] = {"change": change.kind.value}
        if after is not None:
            data |= {
                "gpu_type": after.gpu_type,
                "gpu_count": after.gpu_count,
                "node_count": len(shape),
            }
        if change.kind is ChangeKind.PREEMPT:
            state = JobState.PREEMPTED
        elif free:
            return [Event(now, job.spec.id, EventKind.ALLOCATED, None, data)]
        else:
            state = JobState.STARTING if first else JobState.RESTARTING
        return [Event(now, job.spec.id, EventKind.STATE, state, data)]

    def _record_holding(self, job: SimulatedJob, now: float) -> None:
        if self._recorder is not None:
            self._recorder.enter_holding(job, now)

    def _profile(self, job: SimulatedJob, *, but: Collection[str] = ()) -> None:
        """Give the agent the samples that the profiling mode reveals.

        `but`: types of which it has some; others are new to the cluster, or to what it may use.
        """
        mode = self._fidelity.profiling
        if mode is ProfilingMode.NO_PROFILE:
            return
        for kind in self._usable_types(job.spec):
            if kind in but:
                continue
            samples = revealed_samples(job, kind, mode, self.cluster)
            if samples:
                job.agent.learn(kind, samples, fitter=self._fitter)
            if shapes := self._profiled_shapes(job.spec, kind):
                gpus = sum(sum(shape) for shape in shapes)
                cost = self._fidelity.profiling_seconds_per_type * gpus
                job.ledger.profiling_gpu_seconds[kind] = cost

    # ---- over a restart

    def forget_finished(self) -> None:
        """Drop the finished jobs, once the caller has stored them."""
        self.finished.clear()

    def dump(self) -> dict[str, object]:
        """Return everything except the declarations of the jobs, as JSON data."""
        jobs = {
            job_id: {
                **JobSnapshot.of(job).to_json(),
                "samples": samples_to_json(job.agent.belief.by_type),
            }
            for job_id, job in self.jobs.items()
        }
        return {"now": self.now, "jobs": jobs}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `dump`, once every unfinished job has been submitted again.

        Jobs that the state does not have are new. Raises SnapshotError.
        """
        jobs = {
            job_id: (
                JobSnapshot.from_json(data),
                beliefs_from_json(data["samples"], fitter=self._fitter),
            )
            for job_id, data in state["jobs"].items()
        }
        self.resume(state["now"], jobs)

    def resume(
        self, now: float, jobs: Mapping[JobId, tuple[JobSnapshot, Mapping[str, TypeBelief]]]
    ) -> None:
        """Continue at `now`, as `load`, with each job's snapshot and belief by GPU type."""
        self._now, waiting = now, []
        for entry in self._to_come:
            job = entry[2]
            known = jobs.get(job.spec.id)
            if known is None:
                waiting.append(entry)
            else:
                snapshot, by_type = known
                snapshot.restore(job, by_type)
                self.jobs[job.spec.id] = job
                if job.allocation is None:
                    self._profile(job, but=by_type.keys())
        self._to_come, self._ids_to_come = waiting, {entry[2].spec.id for entry in waiting}


def epoch_ends(truth: Truth, work_scale: float, regimes: tuple[Regime, ...]) -> tuple[float, ...]:
    """Return the effective samples at the end of each epoch of a job.

    `work_scale`: length relative to the model's standard training. Usually there are as many epochs
    as the model has. A job that sets its own batch sizes has as many epochs as fit at the length of
    the model's first epoch; the last one may be shorter.
    """
    if not regimes:
        return tuple(end * work_scale for end in truth.epoch_ends)
    one, total = truth.epoch_ends[0], truth.epoch_ends[-1] * work_scale
    whole = max(math.ceil(total / one - 1e-9), 1)
    return (*(one * (epoch + 1) for epoch in range(whole - 1)), total)


def _left_at(job: SimulatedJob, lived: Sequence[Event]) -> float:
    """The time when a job gave up its GPUs: its end, or a node failure.

    Infinite if it holds them.
    """
    if job.finished_at is not None:
        return job.finished_at
    return lived[-1].time if job.allocation is None else float("inf")
