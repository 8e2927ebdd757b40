"""Jobs on rented nodes, their number chosen by an autoscaler: one training, or a workload.

Gives cost and duration (Pollux section 5.4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from maat.laboratory.shares import OnShare, Stalled, ending_stalled, ignore_share
from maat.scheduling.autoscaling import Autoscaler, ScalingInput
from maat.scheduling.cluster import Cluster
from maat.scheduling.efficiency import efficiency
from maat.scheduling.errors import TraceError
from maat.scheduling.events import Event
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Job
from maat.scheduling.loop import RoundLoop
from maat.scheduling.pins import why_pinned
from maat.scheduling.placement.packed import PackedSticky
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, Decision, Grant, RoundInput, StoredState
from maat.scheduling.solving.report import SolveReport
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import Fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.world import World
from maat.simulation.world_models import Model
from maat.vocabulary import ProfilingMode
from maat.workloads.workloads import TraceJob


@dataclass(frozen=True)
class Training:
    """A training: `cluster` has all nodes that may be rented.

    `profiling`: what is known of the model's speed before it runs.
    """

    model: Model
    cluster: Cluster
    fidelity: Fidelity
    round_seconds: float = 60.0
    profiling: ProfilingMode = ProfilingMode.ORACLE

    def __post_init__(self) -> None:
        """Raise TraceError if the model was not measured on the nodes' type."""
        if not any(self.model.runs_on(name) for name in self.cluster.type_names):
            raise TraceError(
                f"cannot run on {self.cluster.describe()}",
                field="model",
                value=self.model.name,
                remedy=f"Measured are: {', '.join(self.model.memory)}.",
            )


@dataclass(frozen=True)
class Rented:
    """The result of a training.

    `seconds`: to the end of the last job; `avg_jct_seconds`: of those that ended. `rented`: (time,
    nodes) of every change. `efficiency`: mean statistical efficiency over time, of all jobs while
    they train; `efficiencies`: (time, mean of the jobs that train then), where it changes; None
    while none does.
    """

    autoscaler: str
    seconds: float
    node_seconds: float
    restarts: int
    efficiency: float
    rented: tuple[tuple[float, int], ...]
    avg_jct_seconds: float = 0.0
    unfinished: int = 0
    efficiencies: tuple[tuple[float, float | None], ...] = ()

    def over(self, other: Rented) -> dict[str, float | None]:
        """Return cost and completion time over those of another run, less one.

        None if no job of the other has finished.
        """
        return {
            "cost": _excess(self.node_seconds, other.node_seconds),
            "completion_time": _excess(self.seconds, other.seconds),
        }


def _excess(value: float, of: float) -> float | None:
    return value / of - 1 if of else None


def train(
    training: Training, autoscaler: Autoscaler, *, on_share: OnShare = ignore_share
) -> Rented:
    """Train the model once, on as many nodes as the autoscaler chooses each round.

    It starts on one node. Raises ClusterError if the nodes are not alike.
    """
    clock = JumpingClock()
    revealed = training.fidelity.revealing(training.profiling)
    inner = SimulatedExecutor(training.cluster, clock, revealed)
    model = training.model.under(revealed)
    spec = model.job_spec(
        TraceJob(name=model.name, submit_seconds=0.0, model=model.name, gpu_count=1), revealed
    )
    inner.submit(spec, model.truth, restart_seconds=model.restart_seconds)
    executor = _RentedNodes(inner, training.cluster, autoscaler, on_share=on_share)
    loop = RoundLoop(
        policy=_Everything(autoscaler),
        placer=PackedSticky(),
        executor=executor,
        store=LatestOnly(),
        clock=clock,
        round_seconds=training.round_seconds,
    )
    with suppress(Stalled):
        loop.run()
    return executor.outcome()


def rent(scenario: Scenario, autoscaler: Autoscaler, *, on_share: OnShare = ignore_share) -> Rented:
    """Play a workload on as many nodes of the scenario's cluster as the autoscaler chooses.

    The scenario's policy shares out the nodes that are rented, from one on; the autoscaler counts
    every job with an equal share of them. Under a policy that grants requests, as many nodes are
    rented as the largest present request needs. Raises ClusterError if the nodes are not alike.
    """
    world, clock = World.of(scenario), JumpingClock()
    inner = SimulatedExecutor(world.cluster, clock, world.fidelity, slowdowns=world.slowdowns)
    for one in world.submissions:
        inner.submit(
            one.spec,
            one.truth,
            restart_seconds=one.restart_seconds,
            work_scale=one.work_scale,
            regimes=one.regimes,
        )
    chooses = getattr(world.policy, "chooses_gpu_counts", False)
    executor = _RentedNodes(
        inner, world.cluster, autoscaler, on_share=on_share, grants_requests=not chooses
    )
    loop = RoundLoop(
        policy=world.policy,
        placer=world.placer,
        executor=executor,
        store=LatestOnly(),
        clock=clock,
        round_seconds=world.round_seconds,
        quotas=scenario.conditions.quotas,
        stability=scenario.conditions.stability,
        interference=world.interference,
        projection=world.projection,
        seed=scenario.seed,
    )
    last = max((job.submit_seconds for job in scenario.workload.jobs), default=0.0)
    with suppress(Stalled):
        loop.run(until=last + scenario.max_rounds * loop.round_seconds)
    return executor.outcome()


class _RentedNodes:
    """An executor with only the rented nodes in service.

    It asks the autoscaler at every observation.
    """

    def __init__(
        self,
        inner: SimulatedExecutor,
        cluster: Cluster,
        autoscaler: Autoscaler,
        *,
        on_share: OnShare,
        grants_requests: bool = False,
    ) -> None:
        self._inner, self._cluster, self._autoscaler = inner, cluster, autoscaler
        self._on_share, self._grants_requests = ending_stalled(on_share), grants_requests
        self._parts: dict[int, Cluster] = {len(cluster.nodes): cluster}
        self._changes: list[tuple[float, int]] = [(0.0, 1)]
        self._shares: list[float] = []  # since the nodes changed
        self._efficiency: list[float] = []
        self._efficiencies: list[tuple[float, float | None]] = []

    def observe(self) -> ClusterState:
        state = self._inner.observe()
        self._on_share(self._share_done())
        if state.jobs:
            self._rent(state)
            self._record_efficiency(state)
        return replace(state, cluster=self._part(self._changes[-1][1]))

    def _share_done(self) -> float:
        """Return the mean over all jobs, also those to come, of the share that each has done."""
        finished = len(self._inner.finished)
        jobs = self._inner.jobs.values()
        done = sum(job.ledger.done_work / job.total_work for job in jobs)
        return (finished + done) / max(finished + len(self._inner.unfinished), 1)

    def _record_efficiency(self, state: ClusterState) -> None:
        each = (_efficiency(job, self._inner) for job in state.jobs if job.allocation is not None)
        training = [value for value in each if value is not None]
        self._efficiency += training
        mean = float(np.mean(training)) if training else None
        if (self._efficiencies[-1][1] if self._efficiencies else None) != mean:
            self._efficiencies.append((state.now, mean))

    def _rent(self, state: ClusterState) -> None:
        scaling = ScalingInput(state.jobs, self._cluster, self._changes[-1][1])
        self._shares.append(self._autoscaler.share(scaling))
        scaling = replace(scaling, recent_shares=tuple(self._shares))
        wanted = max(self._autoscaler.node_count(scaling), self._least(state))
        if wanted != scaling.node_count:
            self._changes.append((state.now, wanted))
            self._shares.clear()

    def _least(self, state: ClusterState) -> int:
        """Return the nodes without which some job would never run: its request must fit."""
        if not self._grants_requests:
            return 1
        most = max(job.spec.requested_gpus for job in state.jobs)
        return min(-(-most // self._cluster.nodes[0].gpu_count), len(self._cluster.nodes))

    def apply(self, changes: Changes) -> Sequence[Event]:
        return self._inner.apply(changes)

    def outcome(self) -> Rented:
        jobs = self._inner.finished.values()
        end = max((job.finished_at or 0.0 for job in jobs), default=0.0)
        times = [min(time, end) for time, _ in self._changes] + [end]
        cost = sum(
            nodes * (until - since)
            for (_, nodes), since, until in zip(self._changes, times, times[1:], strict=False)
        )
        mean = float(np.mean(self._efficiency)) if self._efficiency else 1.0
        restarts = sum(job.ledger.restarts for job in jobs)
        jct = [(job.finished_at or 0.0) - job.spec.submitted_at for job in jobs]
        return Rented(
            self._autoscaler.name,
            end,
            cost,
            restarts,
            mean,
            tuple(self._changes),
            avg_jct_seconds=float(np.mean(jct)) if jct else 0.0,
            unfinished=len(self._inner.unfinished),
            efficiencies=tuple(self._efficiencies),
        )

    def _part(self, count: int) -> Cluster:
        if count not in self._parts:
            nodes = (
                node if number < count else replace(node, drained=frozenset(range(node.gpu_count)))
                for number, node in enumerate(self._cluster.nodes)
            )
            self._parts[count] = replace(self._cluster, nodes=tuple(nodes))
        return self._parts[count]


def _efficiency(job: Job, executor: SimulatedExecutor) -> float | None:
    """The believed statistical efficiency of the present batch; None in a restart."""
    plan = executor.jobs[job.id].plan
    initial = job.spec.initial_batch_size
    if plan is None or job.restarting:
        return None
    return float(
        efficiency(
            np.asarray(job.belief.noise_scale(initial)),
            np.asarray(float(initial)),
            np.asarray(float(plan.total_batch_size)),
        )
    )


@dataclass(frozen=True)
class _Everything:
    """A policy for a single job: it gets all GPUs in service.

    The autoscaler chooses its batch there.
    """

    autoscaler: Autoscaler
    name: str = "everything"
    default_round_seconds: ClassVar[float] = 60.0

    def allocate(self, round_input: RoundInput) -> Decision:
        grants = dict(round_input.pinned)
        for job in round_input.jobs:
            if job.id not in grants:
                grants[job.id] = self._grant(job, round_input)
        reasons = {
            job.id: why_pinned(job) if job.id in round_input.pinned else Reasons(ReasonCode.GRANTED)
            for job in round_input.jobs
        }
        return Decision(grants, SolveReport(), reasons)

    def _grant(self, job: Job, round_input: RoundInput) -> Grant:
        cluster = round_input.cluster
        count = min(int(cluster.usable_gpus[0]), job.spec.max_gpus or cluster.gpu_count)
        scaling = ScalingInput(
            (job,), cluster, -(-count // cluster.nodes[0].gpu_count), round_input.projection
        )
        return Grant(
            cluster.type_names[0], count, batch=self.autoscaler.batch(scaling, job, gpu_count=count)
        )


class LatestOnly:
    """A RoundStore that keeps only the position of the loop."""

    def __init__(self) -> None:
        self._stored = StoredState()

    def load(self) -> StoredState:
        return self._stored

    def commit(self, result: RoundResult, observed: ClusterState) -> bool:
        self._stored = StoredState(
            result.round_number + 1, result.decision.state, result.placement.state
        )
        return True

    def unapplied(self) -> Sequence[Changes]:
        return ()

    def applied(self, changes: Changes, events: Sequence[Event]) -> None:
        """Do nothing: applied changes are not kept."""
