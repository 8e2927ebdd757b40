"""One simulated job: its truth, and the agent inside it that measures, reports and adapts its batch size. Time comes from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from maat.models.truth import Shape, Truth, gain
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, Fitter, GradientStatistics, TypeBelief
from maat.scheduling.efficiency import efficiency
from maat.scheduling.errors import ContractViolation
from maat.scheduling.fitting import Sample
from maat.scheduling.goodput import (
    BatchLimits,
    BatchPlan,
    Candidates,
    batch_candidates,
    plan_for_batch,
    throughput_of,
)
from maat.scheduling.job import Allocation, Job, JobSpec
from maat.scheduling.matrix import NO_LOSS
from maat.scheduling.regimes import Regime, batch_size_at, epochs_begun


@dataclass
class SimulatedJob:
    """A job in the simulator. `done_work`: effective samples. `restart_left`: seconds of checkpoint-restore still to pay.

    `saved_work`: what its last checkpoint holds, taken at the end of every epoch and when the scheduler takes GPUs away or moves it;
    `unsaved_gpu_seconds`: GPU-seconds held since. `pace`: true over nominal seconds of a step, for where and beside whom it runs.
    `regimes`: the batch sizes that the job sets itself, whatever is granted; () where scheduler or agent choose. `waited_seconds`: without GPUs
    since submission, until it last got some; `waiting_since`: when it last had to do without, None while it holds GPUs. `applied_round`: the last
    round whose changes reached it.
    """

    spec: JobSpec
    truth: Truth
    restart_seconds: float
    epoch_ends: tuple[float, ...]
    max_batch_size: int
    belief: Belief = field(default_factory=Belief)
    done_work: float = 0.0
    epoch: int = 0
    allocation: Allocation | None = None
    shape: Shape = ()
    fixed_plan: BatchPlan | None = None
    plan: BatchPlan | None = None
    goodput: float = 0.0
    pace: float = 1.0
    restart_left: float = 0.0
    restarts: int = 0
    started_at: float | None = None
    finished_at: float | None = None
    gpu_seconds: dict[str, float] = field(default_factory=dict)
    profiling_gpu_seconds: dict[str, float] = field(default_factory=dict)
    saved_work: float = 0.0
    unsaved_gpu_seconds: float = 0.0
    interruptions: int = 0
    lost_gpu_seconds: float = 0.0
    waited_seconds: float = 0.0
    waiting_since: float | None = None
    applied_round: int = -1
    regimes: tuple[Regime, ...] = ()
    _speeds: tuple[object, Candidates, FloatArray] | None = None
    _steps: tuple[int, float] | None = None
    _ran: tuple[object, float] | None = None
    _rated: tuple[int, float] | None = None

    def __post_init__(self) -> None:
        self.waiting_since = self.spec.submitted_at

    @property
    def total_work(self) -> float:
        return self.epoch_ends[-1]

    def as_seen(self, *, remaining_steps: float | None = None) -> Job:
        """What the scheduler may know of it; `remaining_steps` where it may know those too."""
        return Job(
            spec=self.spec,
            belief=self.belief,
            remaining_work=max(self.total_work - self.done_work, 0.0),
            allocation=self.allocation,
            attained_gpu_seconds=dict(self.gpu_seconds),
            restarts=self.restarts,
            restarting=self.restart_left > 0,
            started_at=self.started_at,
            epochs_begun=epochs_begun(self.regimes, self.epoch)
            if self.started_at is not None
            else {},
            remaining_steps=remaining_steps,
        )

    def steps_left(self, *, from_epoch_end: bool = False) -> float:
        """Optimiser steps at the requested batch size to the end of training.

        `from_epoch_end`: those after the present epoch alone, at least 1, as the published Optimus is told.
        """
        if self.regimes:
            done = self.epoch_ends[self.epoch] if from_epoch_end else self.done_work
            return max(
                (self.total_work - done) / self.spec.requested_batch_size,
                1.0 if from_epoch_end else 0.0,
            )
        if self._steps is None or self._steps[0] != self.epoch:
            share = self.total_work / self.truth.epoch_ends[-1]
            self._steps = (
                self.epoch,
                share * self.truth.steps_after(self.epoch, self.spec.requested_batch_size),
            )
        return (
            max(self._steps[1], 1.0) if from_epoch_end else self._steps[1] + self._steps_in_epoch()
        )

    def _steps_in_epoch(self) -> float:
        """Steps at the requested batch size that the present epoch has left."""
        total, initial = self.spec.requested_batch_size, self.truth.initial_batch_size
        gradient = self.truth.gradient(min(self.epoch, len(self.truth.epoch_ends) - 1), total)
        per_step = initial * (
            gain(gradient, total / initial) if self.spec.learns else total / initial
        )
        return (self.epoch_ends[self.epoch] - self.done_work) / per_step

    def advance(
        self, now: float, until: float, *, fitter: Fitter, whole_second_epochs: bool
    ) -> None:
        """Live from `now` to `until` on the present allocation; stops at the end of training, whose time is kept."""
        if self.allocation is None or self.finished_at is not None:
            return
        pause = min(self.restart_left, until - now)
        self.restart_left -= pause
        self._spend(pause)
        now += pause
        while until - now > 1e-9 and self.finished_at is None:
            rate = self._work_rate(fitter)
            needed = (self.epoch_ends[self.epoch] - self.done_work) / rate
            if needed > until - now:
                self.done_work += rate * (until - now)
                self._spend(until - now)
                return
            spent = float(round(needed)) if whole_second_epochs else needed
            self._spend(spent)
            now += spent
            self._end_epoch(now)

    def hold(
        self,
        allocation: Allocation | None,
        shape: Shape,
        fixed_plan: BatchPlan | None,
        *,
        restarts: bool,
        now: float,
    ) -> None:
        """Take these GPUs (None: give all back); with `restarts`, pay for checkpoint, start and restore."""
        if allocation is None or restarts:
            self._checkpoint()
        if allocation is not None and restarts:
            self.restart_left = self.restart_seconds
            if self.started_at is None:
                self.started_at = now
            else:
                self.restarts += 1
        if allocation is None:
            self.restart_left, self.goodput, self.plan, self.waiting_since = 0.0, 0.0, None, now
        elif self.waiting_since is not None:
            self.waited_seconds, self.waiting_since = (
                self.waited_seconds + now - self.waiting_since,
                None,
            )
        same_type = (
            allocation is None
            or self.allocation is None
            or allocation.gpu_type == self.allocation.gpu_type
        )
        if fixed_plan != self.fixed_plan or shape != self.shape or not same_type:
            self.plan = None
        self.allocation, self.shape, self.fixed_plan = allocation, shape, fixed_plan

    def interrupt(self, now: float) -> None:
        """Lose the GPUs to a failed node, and with them all that was done since the last checkpoint."""
        self.waiting_since = now
        self.interruptions += 1
        self.lost_gpu_seconds += self.unsaved_gpu_seconds
        self.done_work, self.unsaved_gpu_seconds = self.saved_work, 0.0
        self.allocation, self.shape, self.fixed_plan, self.plan = None, (), None, None
        self.restart_left, self.goodput = 0.0, 0.0

    def progress(self) -> Mapping[str, object]:
        """How the job stands, for `put_back`."""
        return {**vars(self), "gpu_seconds": dict(self.gpu_seconds)}

    def put_back(self, progress: Mapping[str, object]) -> None:
        """Stand as it did when `progress` was taken; what is put back is not taken again."""
        vars(self).update(progress)

    def learn(self, gpu_type: str, samples: list[Sample], *, fitter: Fitter) -> None:
        """Samples from outside the job's own running: its profile on one GPU."""
        self.belief = self.belief.with_samples(gpu_type, samples, fitter=fitter)

    def replicas(self) -> int:
        return self._held.gpu_count // self.spec.replica_gpus(self._held.gpu_type)

    @property
    def _held(self) -> Allocation:
        if self.allocation is None:
            raise ContractViolation(f"job {self.spec.id} runs without GPUs")
        return self.allocation

    def _spend(self, seconds: float) -> None:
        held = self._held
        gpu_seconds = seconds * len(held.gpus)
        self.gpu_seconds[held.gpu_type] = self.gpu_seconds.get(held.gpu_type, 0.0) + gpu_seconds
        self.unsaved_gpu_seconds += gpu_seconds

    def _checkpoint(self) -> None:
        self.saved_work, self.unsaved_gpu_seconds = self.done_work, 0.0

    def _end_epoch(self, now: float) -> None:
        self.done_work = self.epoch_ends[self.epoch]
        self._checkpoint()
        self.epoch += 1
        if self.epoch == len(self.epoch_ends):
            self.finished_at = now

    def _work_rate(self, fitter: Fitter) -> float:
        """Choose the batch plan by what the agent believes, run it in truth, learn from it. Effective samples per second.

        A step's time is learnt once per allocation and plan, the gradients once per epoch.
        """
        kind = self._held.gpu_type
        if self.plan is None or self.fixed_plan is None or self.regimes:
            self.plan = self._choose(kind, self.replicas())
        as_before = (kind, self.shape, self.plan, self.pace)
        if self._ran is None or self._ran[0] != as_before:
            self._ran, self._rated = (as_before, self._step_seconds(kind, self.plan, fitter)), None
        if self._rated is None or self._rated[0] != self.epoch:
            self._rated = (self.epoch, self._rate(self.plan, self._ran[1]))
        self.goodput = self._rated[1]
        return self.goodput

    def _step_seconds(self, kind: str, plan: BatchPlan, fitter: Fitter) -> float:
        """What an optimiser step truly takes with this plan; the agent measures it, without what slows the job from outside."""
        replicas, time = self.replicas(), self.truth.step(kind, self.shape, plan.per_gpu_batch_size)
        sample = Sample(
            len(self.shape), replicas, plan.per_gpu_batch_size, time.step_seconds, time.sync_seconds
        )
        belief = self.belief.with_samples(kind, (sample,), fitter=fitter)
        self.belief = replace(belief, peak_replica_count=max(belief.peak_replica_count, replicas))
        return time.with_accumulation(plan.accumulation_steps) * self.truth.slowdown * self.pace

    def _rate(self, plan: BatchPlan, step_seconds: float) -> float:
        """Effective samples per second in the present epoch, whose gradients the agent measures."""
        gradient = self.truth.gradient(
            min(self.epoch, len(self.truth.epoch_ends) - 1), plan.total_batch_size
        )
        self.belief = Belief(self.belief.by_type, gradient, self.belief.peak_replica_count)
        scale = plan.total_batch_size / self.truth.initial_batch_size
        return (
            self.truth.initial_batch_size
            * (gain(gradient, scale) if self.spec.learns else scale)
            / step_seconds
        )

    def _choose(self, kind: str, replicas: int) -> BatchPlan:
        if self.regimes:
            per_gpu = -(-batch_size_at(self.regimes, self.epoch) // replicas)
            return BatchPlan(per_gpu * replicas, per_gpu, 0)
        if self.fixed_plan is not None:
            return self._as_told(self.fixed_plan, kind, replicas)
        if self.spec.has_fixed_batch and self.spec.batch_size is not None:
            return self._within_memory(self.spec.batch_size, kind, replicas)
        known = self.belief.by_type.get(kind)
        if known is None or self.belief.gradient is None:
            least = max(self.truth.initial_batch_size, self.truth.smallest_per_gpu(kind) * replicas)
            return self._within_memory(least, kind, replicas)
        return self._best(kind, replicas, known.parameters, self.belief.gradient)

    def _as_told(self, plan: BatchPlan, kind: str, replicas: int) -> BatchPlan:
        """A given plan; split again where memory or the number of replicas is not what it was made for."""
        meant_for_this = plan.total_batch_size == replicas * plan.per_gpu_batch_size * (
            plan.accumulation_steps + 1
        )
        if meant_for_this and plan.per_gpu_batch_size <= self.truth.largest_per_gpu(
            kind, self._held.gpu_count
        ):
            return plan
        return self._within_memory(plan.total_batch_size, kind, replicas)

    def _within_memory(self, total: int, kind: str, replicas: int) -> BatchPlan:
        return self.plan_for(total, kind, gpu_count=self._held.gpu_count, replicas=replicas)

    def plan_for(self, total: int, kind: str, *, gpu_count: int, replicas: int) -> BatchPlan:
        """A given total batch size with the fewest accumulation steps that fit."""
        return plan_for_batch(
            total,
            replicas=replicas,
            largest_per_gpu=self.truth.largest_per_gpu(kind, gpu_count),
            largest_total=max(self.max_batch_size, self.spec.requested_batch_size),
            accumulate_above=self.truth.initial_batch_size if self.spec.learns else total,
        )

    def _best(
        self, kind: str, replicas: int, parameters: FloatArray, gradient: GradientStatistics
    ) -> BatchPlan:
        """The candidate of highest believed goodput. Speeds are kept until the model or the shape changes; only phi moves every epoch."""
        found, throughput = self._candidate_speeds(kind, replicas, parameters)
        initial = np.asarray(float(self.truth.initial_batch_size))
        phi = np.asarray(
            initial * gradient.variance / max(gradient.square, 1e-300)
            if self.spec.learns
            else NO_LOSS
        )
        best = int(np.argmax(throughput * efficiency(phi, initial, found.total[0])))
        per_gpu, accumulation = int(found.per_gpu[0, best]), int(found.accumulation[0, best])
        most = int(self.max_batch_size // (replicas * (accumulation + 1)))
        per_gpu = max(min(per_gpu, most), 1)
        return BatchPlan(replicas * per_gpu * (accumulation + 1), per_gpu, accumulation)

    def _candidate_speeds(
        self, kind: str, replicas: int, parameters: FloatArray
    ) -> tuple[Candidates, FloatArray]:
        key = (kind, self.shape, id(parameters))
        if self._speeds is None or self._speeds[0] != key:
            wide = [
                np.array([float(x)])
                for x in (len(self.shape), replicas, self.truth.initial_batch_size)
            ]
            smallest, largest = (
                self.truth.smallest_per_gpu(kind),
                self.truth.largest_per_gpu(kind, self._held.gpu_count),
            )
            limits = (self.truth.initial_batch_size, self.max_batch_size, smallest, largest)
            found = batch_candidates(
                BatchLimits(*(np.array([float(x)]) for x in limits)), wide[1], wide[2]
            )
            speed = throughput_of(
                parameters[None, :], found, node_count=wide[0], replica_count=wide[1]
            )[0]
            self._speeds = (key, found, speed)
        return self._speeds[1], self._speeds[2]


def shape_of(gpus: tuple[int, ...], gpu_node: list[int], *, fullest_first: bool = False) -> Shape:
    """GPUs on each node that an allocation touches: nodes in order, or those of most GPUs first."""
    counts: dict[int, int] = {}
    for gpu in gpus:
        counts[gpu_node[gpu]] = counts.get(gpu_node[gpu], 0) + 1
    return tuple(sorted(counts.values(), reverse=True)) if fullest_first else tuple(counts.values())


def snapshot(job: SimulatedJob) -> Mapping[str, object]:
    """What a restarted executor needs beside the job's declaration, as JSON data."""
    return {**standing_of(job), "samples": samples_of(job.belief.by_type)}


def standing_of(job: SimulatedJob) -> Mapping[str, object]:
    """All of `snapshot` but the samples, which seldom change. Shares nothing with the job."""
    gradient = job.belief.gradient
    return {
        "done_work": job.done_work,
        "epoch": job.epoch,
        "gpu_type": job.allocation.gpu_type if job.allocation else None,
        "gpus": list(job.allocation.gpus) if job.allocation else None,
        "shape": list(job.shape),
        "fixed_plan": None if job.fixed_plan is None else _plan_data(job.fixed_plan),
        "plan": None if job.plan is None else _plan_data(job.plan),
        "goodput": job.goodput,
        "pace": job.pace,
        "restart_left": job.restart_left,
        "restarts": job.restarts,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "gpu_seconds": dict(job.gpu_seconds),
        "profiling_gpu_seconds": dict(job.profiling_gpu_seconds),
        "saved_work": job.saved_work,
        "unsaved_gpu_seconds": job.unsaved_gpu_seconds,
        "interruptions": job.interruptions,
        "lost_gpu_seconds": job.lost_gpu_seconds,
        "waited_seconds": job.waited_seconds,
        "waiting_since": job.waiting_since,
        "applied_round": job.applied_round,
        "gradient": None if gradient is None else [gradient.square, gradient.variance],
        "peak_replica_count": job.belief.peak_replica_count,
    }


def samples_of(by_type: Mapping[str, TypeBelief]) -> Mapping[str, object]:
    """The samples behind a belief, by GPU type, as JSON data."""
    return {kind: [list(s) for s in known.samples] for kind, known in by_type.items()}


def beliefs_from(
    samples: Mapping[str, Sequence[Sequence[float]]], *, fitter: Fitter
) -> Mapping[str, TypeBelief]:
    """What `samples_of` gave, as a belief; its models are fitted again once somebody reads them."""
    belief = Belief()
    for kind, rows in samples.items():
        belief = belief.with_samples(
            kind,
            [Sample(int(n), int(k), int(m), step, sync) for n, k, m, step, sync in rows],
            fitter=fitter,
        )
    return belief.by_type


def restore(
    job: SimulatedJob, standing: Mapping[str, object], by_type: Mapping[str, TypeBelief]
) -> None:
    """Put a job back as `standing_of` found it, with what it believed of each GPU type."""
    state = dict(standing)
    gradient, peak = state.pop("gradient"), state.pop("peak_replica_count")
    gpu_type, gpus = state.pop("gpu_type"), state.pop("gpus")
    job.allocation = Allocation(str(gpu_type), tuple(gpus)) if gpus is not None else None  # type: ignore[arg-type]  # as standing_of wrote it, here and below
    job.shape = tuple(state.pop("shape"))  # type: ignore[arg-type]
    for name in ("fixed_plan", "plan"):
        plan = state.pop(name)
        setattr(job, name, None if plan is None else BatchPlan(*plan))  # type: ignore[misc]
    for name, value in state.items():
        setattr(job, name, value)
    job.belief = Belief(
        by_type, None if gradient is None else GradientStatistics(*gradient), int(peak)
    )  # type: ignore[misc, call-overload]


def _plan_data(plan: BatchPlan) -> list[int]:
    return [plan.total_batch_size, plan.per_gpu_batch_size, plan.accumulation_steps]
