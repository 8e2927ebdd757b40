"""The simulated executor: carries rounds out on jobs whose truth it knows, and shows the scheduler only what a real cluster would."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress

from maat.models.truth import Truth
from maat.scheduling.belief import Fitter, MemoisingFitter, TypeBelief
from maat.scheduling.cluster import Cluster
from maat.scheduling.configuration import sia_configurations
from maat.scheduling.errors import InputError, MaatError
from maat.scheduling.events import Event, EventKind
from maat.scheduling.fitting import Sample
from maat.scheduling.job import Job, JobId, JobSpec
from maat.scheduling.protocols import Clock
from maat.scheduling.regimes import Regime
from maat.scheduling.rounds import Change, ChangeKind, Changes, ClusterState
from maat.scheduling.standing import RoundsAhead
from maat.simulation.adaptive_job import SimulatedJob, beliefs_from, restore, shape_of, snapshot
from maat.simulation.failures import NodeFailure, Outages
from maat.simulation.fidelity import Fidelity
from maat.simulation.slowdowns import Slowdown, coupled, set_paces
from maat.vocabulary import JobState, ProfilingMode

PROFILED_BATCH_SIZES = 10  # Sia section 3.2: typically ten per GPU type
ORACLE_BATCH_SIZES = 6


class SimulatedExecutor:
    """Jobs by id, advanced lazily to the clock's time whenever somebody looks.

    `apply` is idempotent by (round, job). `dump` and `load` carry everything over a restart. `outages`: nodes that fail meanwhile; their
    GPUs are shown as drained until they are repaired, and jobs on them fall back to their last checkpoint and wait.
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
    ) -> None:
        self.cluster = cluster
        self._outages = Outages(cluster, ()) if outages is None else outages
        self._slowdowns = tuple(slowdowns)
        self._clock = clock
        self._fidelity = fidelity
        self._fitter = (
            MemoisingFitter(across_over_within=fidelity.across_over_within)
            if fitter is None
            else fitter
        )
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
        """A job that will be seen from its submission on, once it is profiled. Raises MaatError where the id is taken.

        `work_scale`: share of the standard training. `regimes`: the batch sizes that the job sets itself, epoch by epoch.
        """
        if spec.id in self.jobs or spec.id in self.finished or spec.id in self._ids_to_come:
            raise MaatError(f"job {spec.id} was submitted before")
        ends = epoch_ends(truth, work_scale, regimes)
        beyond_plan = self._fidelity.plan_within_trace_batch
        most = (
            truth.max_batch_size if beyond_plan else min(spec.max_batch_size, truth.max_batch_size)
        )
        job = SimulatedJob(spec, truth, restart_seconds, ends, most, regimes=regimes)
        bisect.insort(self._to_come, (self._visible_at(spec), self._submitted, job))
        self._ids_to_come.add(spec.id)
        self._submitted += 1

    def cancel(self, job_id: JobId) -> None:
        """Forget a job; its GPUs are free from the next round on. A job that is unknown or has ended stays as it is."""
        self.jobs.pop(job_id, None)
        self._ids_to_come.discard(job_id)
        self._to_come = [entry for entry in self._to_come if entry[2].spec.id != job_id]

    def _visible_at(self, spec: JobSpec) -> float:
        profiled = self._fidelity.profiling is ProfilingMode.BOOTSTRAP
        return spec.submitted_at + (self._fidelity.profiling_seconds_per_type if profiled else 0.0)

    @property
    def unfinished(self) -> Set[JobId]:
        """Jobs that are there or to come."""
        return self.jobs.keys() | self._ids_to_come

    @property
    def now(self) -> float:
        """Until when every job has lived."""
        return self._now

    # ---- Executor

    def observe(self) -> ClusterState:
        """Advance every job to now; what ended, and what is there to be scheduled."""
        now = self._clock.now()
        events = [*self._unseen, *self._live_until(now), *self._arrivals(now)]
        self._unseen = []
        in_service = self._outages.cluster_at(now)
        more_later = bool(self._to_come) or (bool(self.jobs) and in_service is not self.cluster)
        return ClusterState(now, in_service, self._as_seen(), tuple(events), more_later)

    def pass_over(self, rounds: RoundsAhead) -> int:
        """Live through these rounds as if each had looked, until one would see something; how many came before it.

        Where nobody is there they pass at once, however many they are, up to the next submission.
        """
        quiet = rounds.before(self._next_change())
        if not self.jobs:
            return len(quiet)
        count = 0
        for time in quiet:
            self._unseen = self._live_until(time)
            if self._unseen:
                break
            count += 1
        return count

    def _next_change(self) -> float:
        """When next a job is submitted or to be seen, a node fails or is repaired; infinite where nothing is to come."""
        visible_at, submitted_at = (
            (self._to_come[0][0], self._to_come[0][2].spec.submitted_at)
            if self._to_come
            else (math.inf, math.inf)
        )
        return min(
            submitted_at if submitted_at > self._now else visible_at,
            self._outages.next_change(self._now),
        )

    def _live_until(self, now: float) -> list[Event]:
        """What happened to the jobs until this look at them; those that ended are put aside."""
        self._look = now
        failures = self._outages.between(self._now, now)
        running = tuple(job for job in self.jobs.values() if job.allocation is not None)
        alone, groups = coupled(running) if self._slowdowns else (running, ())
        events = [event for job in alone for event in self._live(job, failures, self._now, now)]
        for group in groups:
            events += self._live_together(group, failures, now)
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
        """Carry out the changes of a round; those that were carried out before, or whose job has ended, are passed over."""
        events = []
        for change in changes.items:
            job = self.jobs.get(change.job_id)
            if job is not None and job.applied_round < changes.round_number:
                job.applied_round = changes.round_number
                events += self._change(job, change, changes.time)
        if self._slowdowns:
            set_paces(tuple(self.jobs.values()), self._slowdowns)
        return events

    def _live_together(
        self, group: Sequence[SimulatedJob], failures: Sequence[NodeFailure], now: float
    ) -> list[Event]:
        """Advance jobs that share GPUs in order of events: when one ends or loses its GPUs, the others' pace changes at that moment.

        All go ahead to now; the job that leaves first was right to do so, the others are put back and go ahead to that moment instead.
        """
        begin, events, left = self._now, list[Event](), list(group)
        while left:
            before = [job.progress() for job in left]
            lived = [self._live(job, failures, begin, now) for job in left]
            ends = [_left_at(job, happened) for job, happened in zip(left, lived, strict=True)]
            first = min(range(len(left)), key=lambda i: ends[i])
            if ends[first] >= now:
                return events + [event for happened in lived for event in happened]
            events += lived[first]
            for i, job in enumerate(left):
                if i != first:
                    job.put_back(before[i])
                    events += self._live(job, failures, begin, ends[first])
            left = [
                job
                for i, job in enumerate(left)
                if i != first and job.allocation is not None and job.finished_at is None
            ]
            set_paces(left, self._slowdowns)
            begin = ends[first]
        return events

    def _live(
        self, job: SimulatedJob, failures: Sequence[NodeFailure], begin: float, now: float
    ) -> list[Event]:
        """Advance to now, or to the failure of one of the job's nodes; it loses its GPUs then unless it ended before."""
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
            undone = job.done_work - job.saved_work
            job.interrupt(hit.time)
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
        events, left = list[Event](), job.restart_left
        job.advance(
            begin, now, fitter=self._fitter, whole_second_epochs=self._fidelity.whole_second_epochs
        )
        if job.finished_at is not None and self._fidelity.completion_at_round_end:
            job.finished_at = self._look
        if left > 0 and job.restart_left <= 0 and job.allocation is not None:
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
        first = job.started_at is None
        job.hold(after, shape, plan, restarts=not free, now=now)
        if not moved:
            return []
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

    # ---- what is revealed before a job runs

    def _profile(self, job: SimulatedJob) -> None:
        mode = self._fidelity.profiling
        if mode is ProfilingMode.NO_PROFILE:
            return
        for kind in self.cluster.type_names:
            if job.spec.may_use(kind):
                samples = self._revealed(job, kind)
                if samples:
                    job.learn(kind, samples, fitter=self._fitter)
                if mode is ProfilingMode.BOOTSTRAP:
                    cost = self._fidelity.profiling_seconds_per_type * job.spec.replica_gpus(kind)
                    job.profiling_gpu_seconds[kind] = cost

    def _revealed(self, job: SimulatedJob, kind: str) -> list[Sample]:
        """What the profiling mode tells of a job on a type."""
        match self._fidelity.profiling:
            case ProfilingMode.REQUEST_ORACLE:
                return profile_request(job, kind, self._filled_shapes(job.spec, kind))
            case ProfilingMode.REQUESTED:
                return requested_pace(job, kind, self.cluster)
            case ProfilingMode.ORACLE:
                return [
                    s
                    for shape in self._all_shapes(kind)
                    for s in profile_shape(job, kind, shape, ORACLE_BATCH_SIZES)
                ]
            case _:
                return profile_shape(
                    job, kind, (job.spec.replica_gpus(kind),), PROFILED_BATCH_SIZES
                )

    def _filled_shapes(self, spec: JobSpec, kind: str) -> list[tuple[int, ...]]:
        """Every number of GPUs that the job may have, one node after the other filled."""
        index = self.cluster.type_index[kind]
        per_node, most = (
            int(self.cluster.gpus_per_node[index]),
            int(self.cluster.usable_gpus[index]),
        )
        unit = spec.replica_gpus(kind)
        counts = range(unit, min(most, spec.max_gpus or most) + 1, unit)
        return [
            (*(per_node,) * (count // per_node), *((count % per_node,) if count % per_node else ()))
            for count in counts
        ]

    def _all_shapes(self, kind: str) -> list[tuple[int, ...]]:
        table = sia_configurations(self.cluster)
        return [
            (c.gpu_count // c.node_count,) * c.node_count
            for c in table.configurations
            if c.gpu_type == kind
        ]

    # ---- over a restart

    def forget_finished(self) -> None:
        """For an executor that lives on: who keeps what ended has kept it."""
        self.finished.clear()

    def dump(self) -> dict[str, object]:
        """Everything but the declarations of the jobs, as JSON data."""
        return {
            "now": self.now,
            "jobs": {job_id: snapshot(job) for job_id, job in self.jobs.items()},
        }

    def load(self, state: Mapping[str, object]) -> None:
        """Go on from `dump`, once every job that had not ended has been submitted again. Jobs unknown to the state are new."""
        jobs: Mapping[str, Mapping[str, object]] = state["jobs"]  # type: ignore[assignment]  # as dump wrote it, here and below
        self.resume(
            float(state["now"]), {job_id: self._parts(data) for job_id, data in jobs.items()}
        )  # type: ignore[arg-type]

    def resume(
        self,
        now: float,
        jobs: Mapping[JobId, tuple[Mapping[str, object], Mapping[str, TypeBelief]]],
    ) -> None:
        """As `load`; of every job how it stood (`standing_of`) and what it believed of each GPU type."""
        self._now, waiting = now, []
        for entry in self._to_come:
            known = jobs.get(entry[2].spec.id)
            if known is None:
                waiting.append(entry)
            else:
                restore(entry[2], *known)
                self.jobs[entry[2].spec.id] = entry[2]
        self._to_come, self._ids_to_come = waiting, {entry[2].spec.id for entry in waiting}

    def _parts(
        self, data: Mapping[str, object]
    ) -> tuple[Mapping[str, object], Mapping[str, TypeBelief]]:
        standing = dict(data)
        return standing, beliefs_from(standing.pop("samples"), fitter=self._fitter)  # type: ignore[arg-type]


def epoch_ends(truth: Truth, work_scale: float, regimes: tuple[Regime, ...]) -> tuple[float, ...]:
    """Effective samples at the end of each epoch of a training `work_scale` times as long as the model's.

    As many epochs as the model has; of a job that sets its own batch sizes, as many as it takes at the length of the model's first, the last
    perhaps shorter.
    """
    if not regimes:
        return tuple(end * work_scale for end in truth.epoch_ends)
    one, total = truth.epoch_ends[0], truth.epoch_ends[-1] * work_scale
    whole = max(math.ceil(total / one - 1e-9), 1)
    return (*(one * (epoch + 1) for epoch in range(whole - 1)), total)


def _left_at(job: SimulatedJob, lived: Sequence[Event]) -> float:
    """When the job that held GPUs gave them up: its end, or the failure of a node; infinite while it holds them."""
    if job.finished_at is not None:
        return job.finished_at
    return lived[-1].time if job.allocation is None else float("inf")


def requested_pace(job: SimulatedJob, kind: str, cluster: Cluster) -> list[Sample]:
    """The true step time, calibration included, at the job's own GPU count and batch size on as few nodes as it fits; none where it
    cannot run so or nobody measured it."""
    spec, unit, per_node = (
        job.spec,
        job.spec.replica_gpus(kind),
        int(cluster.gpus_per_node[cluster.type_index[kind]]),
    )
    count = spec.requested_gpus
    if not per_node or count % unit or count > cluster.usable_gpus[cluster.type_index[kind]]:
        return []
    whole, rest = divmod(count, per_node)
    shape = (per_node,) * whole + ((rest,) if rest else ())
    batch = job.truth.initial_batch_size if spec.batch_size is None else spec.batch_size
    plan = job.plan_for(batch, kind, gpu_count=count, replicas=count // unit)
    try:
        time = job.truth.step(kind, shape, plan.per_gpu_batch_size)
    except InputError:
        return []
    slow = job.truth.slowdown
    return [
        Sample(
            len(shape),
            count // unit,
            plan.per_gpu_batch_size,
            time.step_seconds * slow,
            time.sync_seconds * slow,
        )
    ]


def profile_shape(job: SimulatedJob, kind: str, shape: tuple[int, ...], many: int) -> list[Sample]:
    """Step times at `many` batch sizes from the smallest to what memory holds, or at those that the job sets itself; what was never measured
    is left out.
    """
    truth, count = job.truth, sum(shape)
    low, high = truth.smallest_per_gpu(kind), truth.largest_per_gpu(kind, count)
    if low > high:
        return []
    ratio = (high / low) ** (1 / max(many - 1, 1))
    if job.spec.regimes is None:
        batches = sorted({min(round(low * ratio**i), high) for i in range(many)})
    else:
        own = {-(-size // job.spec.requested_gpus) for size in job.spec.regimes.batch_sizes}
        batches = sorted(batch for batch in own if low <= batch <= high)
    samples = []
    for batch in batches:
        time = truth.step(kind, shape, batch)
        samples.append(
            Sample(
                len(shape),
                count // job.spec.replica_gpus(kind),
                batch,
                time.step_seconds,
                time.sync_seconds,
            )
        )
    return samples


def profile_request(
    job: SimulatedJob, kind: str, shapes: Iterable[tuple[int, ...]]
) -> list[Sample]:
    """Step times at the batch size that the job asks for, on every one of these shapes; those that were never measured are left out."""
    samples = []
    for shape in shapes:
        replicas = sum(shape) // job.spec.replica_gpus(kind)
        batch = job.plan_for(
            job.spec.requested_batch_size, kind, gpu_count=sum(shape), replicas=replicas
        ).per_gpu_batch_size
        if batch >= job.truth.smallest_per_gpu(kind):
            with suppress(InputError):
                time = job.truth.step(kind, shape, batch)
                samples.append(
                    Sample(len(shape), replicas, batch, time.step_seconds, time.sync_seconds)
                )
    return samples
