"""Plays one draw of the future: the live policy in the simulator, from the present state on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from maat.forecasting.present import Present, PresentJob
from maat.forecasting.restarts import UnpaidRestarts
from maat.models.truth import Truth
from maat.scheduling.belief import Fitter, TypeBelief
from maat.scheduling.events import Event
from maat.scheduling.job import JobId, JobSpec
from maat.scheduling.loop import RoundLoop
from maat.scheduling.parameters import knobs_of, rebuilt
from maat.scheduling.protocols import Policy
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, StoredState
from maat.scheduling.standing import RoundGrid, RoundsAhead, stands_until
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor, epoch_ends
from maat.simulation.job_ledger import JobLedger
from maat.simulation.job_snapshot import JobSnapshot
from maat.simulation.simulated_job import SimulatedJob, shape_of
from maat.simulation.slowdowns import SharedGpus, Slowdown, UnequalGpus

HORIZON_SECONDS = 14 * 86_400.0
MOST_ROUNDS = 20_000
_STEPS = 10  # after so many, the distance of rounds is looked at again
_HANDOVER = 0.1  # of a resolution: how finely ends are seen while other jobs wait


@dataclass(frozen=True)
class Life:
    """What a job truly is in a draw. `work_scale`: share of the truth's training.

    `restarts_per_second`: of training, where rounds are as often as in the live cluster.
    `restart_seed`: by which those of rounds that are left out are drawn; without, their mean.
    """

    truth: Truth
    restart_seconds: float
    work_scale: float = 1.0
    restarts_per_second: float = 0.0
    restart_seed: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Arrival:
    """A job that may be submitted later, at `spec.submitted_at`."""

    spec: JobSpec
    life: Life


@dataclass(frozen=True)
class Draw:
    """One draw of what is unknown: the life of every job that has not ended, and later jobs.

    `arrivals`: in order of their submission; they need not end. `round_delay`: seconds by which
    rounds come after they are due.
    """

    lives: Mapping[JobId, Life]
    arrivals: Iterable[Arrival] = ()
    round_delay: float = 0.0


@dataclass(frozen=True)
class Pacing:
    """How often a draw decides. With both at 0, in every round, as the live cluster does.

    `resolution`: rounds are as far apart as this share of the time from now; between them jobs go
    on. While some wait, the end of another is seen ten times as early: idle GPUs put off all who
    wait, one end after the other. `standing`: a decision stands for this share, unless a job ends
    or comes. Where rounds are left out, jobs still pay for the restarts that these would cause.
    After `played_seconds`, and whenever that time has doubled, a draw ends if all jobs that are
    left have run since half of it: they go on at their mean speed since then.
    `tolerance`: the gap at which a programme counts as solved, where the policy has one and it is
    smaller; 0 leaves it.
    `fine_job_rounds`: a draw that has decided for so many jobs, counted in every round, is long:
    from then on its rounds are twice as far apart whenever it has decided for another quarter.
    """

    resolution: float = 0.0
    standing: float = 0.0
    played_seconds: float = math.inf
    fine_job_rounds: float = math.inf
    tolerance: float = 0.0


@dataclass(frozen=True)
class Span:
    """From `at` (cluster seconds) on, the job holds these GPUs; 0 for none."""

    at: float
    gpu_type: str | None
    gpu_count: int


@dataclass(frozen=True)
class Played:
    """What became of the jobs that had not ended. Cluster seconds; missing: not within the draw.

    `starts`: when a job that held no GPUs first got some. `spans`: changes of what it holds.
    """

    starts: Mapping[JobId, float]
    ends: Mapping[JobId, float]
    spans: Mapping[JobId, Sequence[Span]]
    rounds: int


def play(
    present: Present,
    draw: Draw,
    *,
    pacing: Pacing = Pacing(),
    fitter: Fitter | None = None,
    horizon_seconds: float = HORIZON_SECONDS,
    look: Callable[[], object] = lambda: None,
) -> Played:
    """Play until every job of the present has ended, or can never run, or the horizon is reached.

    `fitter`: one with a memory, if many draws fit the same samples. `look` is called before every
    round; what it raises ends the draw. Raises ContractViolation if the policy breaks a rule.
    """
    return _Player(present, draw, pacing, fitter).play(horizon_seconds, look)


def _slowdowns(present: Present) -> tuple[Slowdown, ...]:
    """Return what slows jobs besides their lives: partners, and GPUs that differ."""
    shared = () if present.slowdowns is None else (SharedGpus(present.slowdowns),)
    return (*shared, *((UnequalGpus(present.cluster),) if present.cluster.scores else ()))


def _tolerant(present: Present, tolerance: float) -> Policy:
    """Return the policy with this gap of its programme, if it has a smaller one.

    One that remembers keeps its own: it knows its memory by its parameters.
    """
    own = knobs_of(present.policy).get("tolerance")
    if not isinstance(own, float) or own >= tolerance or present.state.policy_state.data:
        return present.policy
    return rebuilt(present.policy, {"tolerance": tolerance}, owner=present.policy.name)


@dataclass(frozen=True)
class _Done:
    """The work that jobs had done which had begun, after so many seconds of a draw."""

    played: float
    work: Mapping[JobId, float]


class _Player:
    def __init__(self, present: Present, draw: Draw, pacing: Pacing, fitter: Fitter | None) -> None:
        self._present, self._draw, self._pacing = present, draw, pacing
        self._policy = _tolerant(present, pacing.tolerance)
        self._clock = JumpingClock()
        self._clock.sleep_until(present.now)
        cluster = present.cluster
        self._executor = SimulatedExecutor(
            cluster,
            self._clock,
            present.fidelity,
            fitter=fitter,
            slowdowns=_slowdowns(present),
        )
        self._left = set(present.job_ids)
        self._following = {one.spec.id: one for one in present.waiting if one.after & self._left}
        self._store = _Notes(present.state, self._left.copy())
        self._unpaid = UnpaidRestarts(present.round_seconds)
        self._arrivals = iter(draw.arrivals)
        self._coming = next(self._arrivals, None)
        self._halfway: _Done | None = None
        self._job_rounds = 0
        self._begin()

    def _begin(self) -> None:
        present, known = self._present, dict[JobId, tuple[JobSnapshot, Mapping[str, TypeBelief]]]()
        for one in present.jobs:
            self._submit(one.job.spec, self._draw.lives[one.job.id])
            snapshot = _snapshot(one, self._draw.lives[one.job.id], present)
            known[one.job.id] = (snapshot, one.job.belief.by_type)
        for waiting in present.waiting:
            if waiting.spec.id not in self._following:
                self._submit(waiting.spec, self._draw.lives[waiting.spec.id])
        self._executor.resume(present.now, known)

    def _submit(self, spec: JobSpec, life: Life) -> None:
        self._executor.submit(
            spec, life.truth, restart_seconds=life.restart_seconds, work_scale=life.work_scale
        )
        self._unpaid.know(
            spec.id,
            restart_seconds=life.restart_seconds,
            per_second=life.restarts_per_second,
            most_per_second=self._present.stability.with_those_of(spec).most_moves_per_second,
            seed=life.restart_seed,
        )

    def _bring(self, until: float) -> None:
        """Submit the jobs that are to come until then."""
        while self._coming is not None and self._coming.spec.submitted_at <= until:
            self._submit(self._coming.spec, self._coming.life)
            self._coming = next(self._arrivals, None)

    def play(self, horizon_seconds: float, look: Callable[[], object]) -> Played:
        at = self._present.next_round_at + self._draw.round_delay
        end, rounds = self._present.now + horizon_seconds, 0
        foreseen: Mapping[JobId, float] = {}
        while self._left and at <= end and rounds < MOST_ROUNDS:
            look()
            foreseen = self._foreseen(end)
            if foreseen:
                break
            rounds += 1
            self._clock.sleep_until(at)
            self._bring(at)
            self._job_rounds += len(self._executor.jobs)
            grid = RoundGrid(at, self._gap(at, self._pacing.resolution))
            stepped = self._loop(grid.round_seconds).step()
            self._left -= self._executor.finished.keys()
            self._unpaid.charge(at, self._executor.jobs, self._executor.finished)
            self._release()
            if stepped is not None and self._is_stuck(*stepped):
                break
            at = grid.time(1) if stepped is None else self._next(grid, stepped[0])
        return self._played(rounds, foreseen)

    def _foreseen(self, until: float) -> Mapping[JobId, float]:
        """Return the ends of all jobs that are left, at their speed in the last half of the time.

        Infinite: later than `until`. Empty while one of them has not run in all of that half.
        """
        now = self._executor.now
        played = now - self._present.now
        if self._halfway is None:
            if 2 * played >= self._pacing.played_seconds:
                self._halfway = self._done(now)
            return {}
        if played < self._pacing.played_seconds or played < 2 * self._halfway.played:
            return {}
        before, self._halfway = self._halfway, self._done(now)
        ends: dict[JobId, float] = {}
        for job_id in self._left:
            job, done = self._executor.jobs.get(job_id), before.work.get(job_id)
            gained = 0.0 if job is None or done is None else job.ledger.done_work - done
            if job is None or gained <= 0:
                return {}
            seconds = played - before.played
            at = now + (job.total_work - job.ledger.done_work) * seconds / gained
            ends[job_id] = at if at <= until else math.inf
        return ends

    def _done(self, now: float) -> _Done:
        jobs = self._executor.jobs.items()
        begun = {i: one.ledger.done_work for i, one in jobs if one.ledger.started_at is not None}
        return _Done(now - self._present.now, begun)

    def _coarser(self) -> float:
        """How many times as far apart as at first the rounds of this draw are by now."""
        beyond = self._job_rounds / self._pacing.fine_job_rounds - 1.0
        return math.pow(2.0, min(max(4.0 * beyond, 0.0), 10.0))

    def _gap(self, at: float, share: float) -> float:
        """Seconds to the next possible round: a multiple of the cluster's own interval."""
        interval = self._present.round_seconds
        away = min(share * self._coarser(), 1.0) * (at - self._present.now)
        return interval * max(math.floor(away / interval), 1)

    def _next(self, grid: RoundGrid, result: RoundResult) -> float:
        """Let jobs live on; return the time of the next round that must decide."""
        own = min(self._pacing.standing * self._coarser(), 2.0) * (grid.begin - self._present.now)
        until = stands_until(result, self._present.reservations) if self._pacing.standing else 0.0
        end = min(max(grid.begin + own, until), self._present.now + HORIZON_SECONDS)
        waits = any(job.allocation is None for job in self._executor.jobs.values())
        share = self._pacing.resolution * (_HANDOVER if waits else 1.0)
        at, ended = grid.begin + self._gap(grid.begin, share), len(self._executor.finished)
        while at < end:
            steps = RoundGrid(at, self._gap(at, share))
            stop = min(end, steps.time(_STEPS))
            self._bring(at if waits else stop)
            skipped = self._executor.pass_over(RoundsAhead(steps, 0, stop))
            at = steps.time(skipped)
            if skipped == 0 or len(self._executor.finished) != ended:
                break
        return at

    def _loop(self, round_seconds: float) -> RoundLoop:
        present = self._present
        return RoundLoop(
            policy=self._policy,
            placer=present.placer,
            executor=self._executor,
            store=self._store,
            clock=self._clock,
            round_seconds=round_seconds,
            reservations=present.reservations,
            quotas=present.quotas,
            stability=present.stability,
            interference=present.interference,
            projection=present.projection,
            seed=present.seed,
        )

    def _release(self) -> None:
        """Submit the jobs that follow others, once those have ended."""
        for job_id in [
            job_id for job_id, one in self._following.items() if not one.after & self._left
        ]:
            self._submit(self._following.pop(job_id).spec, self._draw.lives[job_id])

    def _is_stuck(self, result: RoundResult, observed: ClusterState) -> bool:
        """Whether no later round can differ: nothing runs, and nothing is to come."""
        waits = any(one.end > observed.now for one in self._present.reservations)
        holds = bool(result.placement.placement.job_ids)
        return not holds and not observed.jobs_to_come and not waits and not self._more_to_come

    @property
    def _more_to_come(self) -> bool:
        to_come = self._executor.unfinished - self._executor.jobs.keys()
        return self._coming is not None or bool(to_come)

    def _played(self, rounds: int, foreseen: Mapping[JobId, float]) -> Played:
        mine = set(self._present.job_ids)
        late = self._unpaid.late
        ends = {job_id: at for job_id, at in foreseen.items() if at < math.inf} | {
            job_id: job.finished_at + late.get(job_id, 0.0)
            for job_id, job in self._executor.finished.items()
            if job_id in mine and job.finished_at is not None
        }
        held = {one.job.id for one in self._present.jobs if one.job.allocation is not None}
        starts = {
            job_id: first
            for job_id, spans in self._store.spans.items()
            if job_id not in held and (first := _first_start(spans)) is not None
        }
        return Played(starts, ends, dict(self._store.spans), rounds)


class _Notes:
    """The round store of a draw: the state of policy and placer, and what changed for whom."""

    def __init__(self, state: StoredState, jobs: set[JobId]) -> None:
        self._state, self._jobs = state, jobs
        self.spans: dict[JobId, list[Span]] = {}

    def load(self) -> StoredState:
        return self._state

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        self._state = StoredState(
            result.round_number + 1, result.decision.state, result.placement.state
        )
        for change in result.changes.items:
            if change.after != change.before and change.job_id in self._jobs:
                after = change.after
                kind, count = (None, 0) if after is None else (after.gpu_type, after.gpu_count)
                self.spans.setdefault(change.job_id, []).append(Span(observed.now, kind, count))
        return True

    def unapplied(self) -> Sequence[Changes]:
        return ()

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        """Keep nothing: the executor knows how its jobs stand."""


def _first_start(spans: Sequence[Span]) -> float | None:
    return next((span.at for span in spans if span.gpu_count), None)


def _snapshot(one: PresentJob, life: Life, present: Present) -> JobSnapshot:
    """Return the job as the executor restores it: all that it needs is in what rounds see."""
    job = one.job
    ends = epoch_ends(life.truth, life.work_scale, ())
    done = max(ends[-1] - job.remaining_work, 0.0)
    held = job.allocation
    ledger = JobLedger(
        waiting_since=present.now if held is None else None,
        done_work=done,
        saved_work=done,
        epoch=_epoch(done, ends),
        restart_left=one.restart_left,
        restarts=job.restarts,
        started_at=job.started_at,
        gpu_seconds=dict(job.attained_gpu_seconds),
        held_since=job.held_since,
        moved_at=job.moved_at,
    )
    owner: list[int] = present.cluster.gpu_node.tolist()
    first = present.fidelity.fullest_node_first
    return JobSnapshot(
        ledger=ledger,
        allocation=held,
        shape=() if held is None else shape_of(held.gpus, owner, fullest_first=first),
        fixed_plan=one.fixed_plan,
        plan=one.plan,
        goodput=0.0,
        pace=1.0,
        applied_round=-1,
        gradient=job.belief.gradient,
        peak_replica_count=job.belief.peak_replica_count,
    )


def _epoch(done: float, ends: Sequence[float]) -> int:
    """Return the epoch in which a job is that has not ended."""
    return next((i for i, end in enumerate(ends) if done < end), len(ends) - 1)


def present_jobs(jobs: Mapping[JobId, SimulatedJob]) -> Iterator[PresentJob]:
    """Yield simulated jobs as those of a present state."""
    for job in jobs.values():
        yield PresentJob(job.as_seen(), job.ledger.restart_left, job.plan, job.fixed_plan)
