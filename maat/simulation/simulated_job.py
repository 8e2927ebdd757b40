"""One simulated job, which runs by its truth and its agent. Takes time as input."""

from __future__ import annotations

from dataclasses import dataclass

from maat.models.truth import Shape, Truth, gain
from maat.scheduling.belief import Fitter
from maat.scheduling.errors import ContractViolation
from maat.scheduling.goodput import BatchPlan
from maat.scheduling.job import Allocation, Job, JobSpec
from maat.scheduling.regimes import Regime, epochs_begun
from maat.simulation.adaptive_agent import AdaptiveAgent, AgentState, Replicas
from maat.simulation.job_changes import JobChanges, Mark
from maat.simulation.job_ledger import JobLedger


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """The end of a total batch size on GPUs that stay: when, and the samples processed by then."""

    at: float
    total_batch_size: int
    processed_samples: float


@dataclass(frozen=True, slots=True)
class JobProgress:
    """All that changes in a job while time passes, for `SimulatedJob.put_back`."""

    ledger: JobLedger
    agent: AgentState
    allocation: Allocation | None
    shape: Shape
    fixed_plan: BatchPlan | None
    plan: BatchPlan | None
    goodput: float
    batch_ends: tuple[BatchEnd, ...]
    last_total: int | None
    changes: Mark | None


class SimulatedJob:
    """A job in the simulator: its truth, ledger, agent and present allocation.

    `restart_seconds`: cost of one restart. `epoch_ends`: effective samples at the end of each
    epoch. `shape`: GPUs on each node of the allocation. `fixed_plan`: the scheduler's batch plan,
    if it gives one; `plan`: the one that runs. `goodput`: effective samples per second. `pace`:
    true over nominal seconds of a step, for where the job runs and with which partners.
    `applied_round`: the last round whose changes reached the job. `batch_ends`: of the batch sizes
    that ended since the last observation, in order. `changes`: what it held and achieved, if that
    is recorded.
    """

    def __init__(
        self,
        spec: JobSpec,
        truth: Truth,
        restart_seconds: float,
        epoch_ends: tuple[float, ...],
        max_batch_size: int,
        *,
        regimes: tuple[Regime, ...] = (),
    ) -> None:
        self.spec, self.truth = spec, truth
        self.restart_seconds, self.epoch_ends, self.regimes = restart_seconds, epoch_ends, regimes
        self.ledger = JobLedger(waiting_since=spec.submitted_at)
        self.agent = AdaptiveAgent(spec, truth, max_batch_size, regimes)
        self.allocation: Allocation | None = None
        self.shape: Shape = ()
        self.fixed_plan: BatchPlan | None = None
        self.plan: BatchPlan | None = None
        self.goodput, self.pace, self.applied_round = 0.0, 1.0, -1
        self.batch_ends: list[BatchEnd] = []
        self.changes: JobChanges | None = None
        self._last_total: int | None = None  # batch size of the last step on the present GPUs
        self._samples_per_second = self._efficiency = 0.0
        self._replicas: Replicas | None = None
        self._steps_after_epoch: tuple[int, float] | None = None

    @property
    def total_work(self) -> float:
        """Effective samples of the whole training."""
        return self.epoch_ends[-1]

    @property
    def finished_at(self) -> float | None:
        return self.ledger.finished_at

    def as_seen(self, *, remaining_steps: float | None = None) -> Job:
        """Return what the scheduler may know; `remaining_steps` if it may know those too."""
        ledger = self.ledger
        return Job(
            spec=self.spec,
            belief=self.agent.belief,
            remaining_work=max(self.total_work - ledger.done_work, 0.0),
            allocation=self.allocation,
            attained_gpu_seconds=dict(ledger.gpu_seconds),
            restarts=ledger.restarts,
            restarting=ledger.restart_left > 0,
            started_at=ledger.started_at,
            epochs_begun=epochs_begun(self.regimes, ledger.epoch)
            if ledger.started_at is not None
            else {},
            remaining_steps=remaining_steps,
            held_since=ledger.held_since,
            moved_at=ledger.moved_at,
        )

    # ---- what is left

    def steps_left(self, *, from_epoch_end: bool = False) -> float:
        """Return the optimiser steps at the requested batch size to the end of training.

        `from_epoch_end`: only those after the present epoch, at least 1, as the published Optimus
        knows them.
        """
        epoch = self.ledger.epoch
        if self.regimes:
            done = self.epoch_ends[epoch] if from_epoch_end else self.ledger.done_work
            steps = (self.total_work - done) / self.spec.requested_batch_size
            return max(steps, 1.0 if from_epoch_end else 0.0)
        if self._steps_after_epoch is None or self._steps_after_epoch[0] != epoch:
            share = self.total_work / self.truth.epoch_ends[-1]
            steps = share * self.truth.steps_after(epoch, self.spec.requested_batch_size)
            self._steps_after_epoch = (epoch, steps)
        after = self._steps_after_epoch[1]
        return max(after, 1.0) if from_epoch_end else after + self._steps_in_epoch()

    def _steps_in_epoch(self) -> float:
        """Steps at the requested batch size to the end of the present epoch."""
        epoch, done = self.ledger.epoch, self.ledger.done_work
        total, initial = self.spec.requested_batch_size, self.truth.initial_batch_size
        gradient = self.truth.gradient(min(epoch, len(self.truth.epoch_ends) - 1), total)
        scale = total / initial
        per_step = initial * (gain(gradient, scale) if self.spec.learns else scale)
        return (self.epoch_ends[epoch] - done) / per_step

    # ---- time passes

    def advance(
        self, now: float, until: float, *, fitter: Fitter, whole_second_epochs: bool
    ) -> None:
        """Run from `now` to `until` on the present allocation, or to the end of training.

        Pays for a restart first. `whole_second_epochs`: round the time to an epoch's end to a
        second.
        """
        ledger = self.ledger
        if self.allocation is None or ledger.finished_at is not None:
            return
        held = self._present_allocation
        pause = min(ledger.restart_left, until - now)
        ledger.pay_restart(held.gpu_type, held.gpu_count, pause)
        now += pause
        while until - now > 1e-9 and ledger.finished_at is None:
            rate = self._work_rate(fitter)
            self._note_batch_end(now)
            self._note_training(now)
            needed = (self.epoch_ends[ledger.epoch] - ledger.done_work) / rate
            if needed > until - now:
                ledger.done_work += rate * (until - now)
                ledger.processed_samples += self._samples_per_second * (until - now)
                self._spend(until - now)
                return
            spent = float(round(needed)) if whole_second_epochs else needed
            self._spend(spent)
            now += spent
            ledger.processed_samples += self._samples_per_second * needed
            ledger.end_epoch(self.epoch_ends[ledger.epoch])
            if ledger.epoch == len(self.epoch_ends):
                ledger.finished_at = now

    def _spend(self, seconds: float) -> None:
        held = self._present_allocation
        self.ledger.spend(held.gpu_type, held.gpu_count, seconds)

    def _work_rate(self, fitter: Fitter) -> float:
        """Let the agent choose a batch plan and run it.

        Returns effective samples per second.
        """
        epoch, replicas = self.ledger.epoch, self.replicas()
        plan = self.plan
        if plan is None or self.fixed_plan is None or self.regimes:
            plan = self.plan = self.agent.choose(replicas, epoch, self.fixed_plan)
        step_seconds = self.agent.step_seconds(replicas, plan, fitter=fitter) * self.pace
        self._samples_per_second = plan.total_batch_size / step_seconds
        effective = self.agent.samples_per_step(epoch, plan)
        self._efficiency = effective / plan.total_batch_size
        self.goodput = effective / step_seconds
        return self.goodput

    def _note_batch_end(self, now: float) -> None:
        total = None if self.plan is None else self.plan.total_batch_size
        if self._last_total is not None and total != self._last_total:
            ended = BatchEnd(now, self._last_total, self.ledger.processed_samples)
            self.batch_ends.append(ended)
        self._last_total = total

    def _note_training(self, now: float) -> None:
        if self.changes is not None and self.plan is not None:
            total = self.plan.total_batch_size
            self.changes.trains(now, total, efficiency=self._efficiency, slowdown=self.pace)

    @property
    def has_run_here(self) -> bool:
        """Whether it has run on its present GPUs: its goodput is theirs."""
        return self._last_total is not None

    def resume_plan(self, plan: BatchPlan | None) -> None:
        """Go on with the plan that ran before its executor restarted."""
        self.plan, self._last_total = plan, None if plan is None else plan.total_batch_size

    def forget_batch_ends(self) -> None:
        if self.batch_ends:
            self.batch_ends = []

    def replicas(self) -> Replicas:
        """Return the GPUs that the job holds, as its agent knows them."""
        if self._replicas is None:
            held = self._present_allocation
            count = held.gpu_count // self.spec.replica_gpus(held.gpu_type)
            self._replicas = Replicas(held.gpu_type, self.shape, count)
        return self._replicas

    @property
    def _present_allocation(self) -> Allocation:
        if self.allocation is None:
            raise ContractViolation(f"job {self.spec.id} runs without GPUs")
        return self.allocation

    # ---- GPUs come and go

    def hold(
        self,
        allocation: Allocation | None,
        shape: Shape,
        fixed_plan: BatchPlan | None,
        *,
        restarts: bool,
        now: float,
    ) -> None:
        """Take these GPUs (None: release all).

        `restarts`: pay for checkpoint, start and restore.
        """
        ledger = self.ledger
        if allocation is None or restarts:
            ledger.save()
        if allocation is None:
            ledger.wait(now)
            self.goodput, self.plan = 0.0, None
        else:
            if restarts:
                ledger.start(now, restart_seconds=self.restart_seconds)
            ledger.end_wait(now)
        same_type = (
            allocation is None
            or self.allocation is None
            or allocation.gpu_type == self.allocation.gpu_type
        )
        if fixed_plan != self.fixed_plan or shape != self.shape or not same_type:
            self.plan = None
        self.place(allocation, shape, fixed_plan)

    def interrupt(self, now: float) -> None:
        """Lose the GPUs to a failed node, with the work since the last checkpoint."""
        self.ledger.interrupt(now)
        self.place(None, (), None)
        self.plan, self.goodput = None, 0.0

    def place(
        self, allocation: Allocation | None, shape: Shape, fixed_plan: BatchPlan | None
    ) -> None:
        """Set where the job runs, without any entry in its ledger."""
        held = self.allocation
        stays = held is not None and allocation is not None and held.gpu_type == allocation.gpu_type
        if not stays or shape != self.shape:
            self._replicas = None
        if allocation != held:
            self._last_total = None
        self.allocation, self.shape, self.fixed_plan = allocation, shape, fixed_plan

    # ---- an earlier state

    def progress(self) -> JobProgress:
        """Return the present state, for `put_back`."""
        return JobProgress(
            self.ledger.copy(),
            self.agent.state(),
            self.allocation,
            self.shape,
            self.fixed_plan,
            self.plan,
            self.goodput,
            tuple(self.batch_ends),
            self._last_total,
            None if self.changes is None else self.changes.mark(),
        )

    def put_back(self, progress: JobProgress) -> None:
        """Return to an earlier state. Keeps its ledger: a state is put back at most once."""
        self.ledger = progress.ledger
        self.agent.put_back(progress.agent)
        self.place(progress.allocation, progress.shape, progress.fixed_plan)
        self.plan, self.goodput = progress.plan, progress.goodput
        self.batch_ends, self._last_total = list(progress.batch_ends), progress.last_total
        if self.changes is not None and progress.changes is not None:
            self.changes.go_back(progress.changes)


def shape_of(gpus: tuple[int, ...], gpu_node: list[int], *, fullest_first: bool = False) -> Shape:
    """Return the GPUs on each node of an allocation.

    Nodes are in order, or the fullest first.
    """
    counts: dict[int, int] = {}
    for gpu in gpus:
        counts[gpu_node[gpu]] = counts.get(gpu_node[gpu], 0) + 1
    return tuple(sorted(counts.values(), reverse=True)) if fullest_first else tuple(counts.values())
