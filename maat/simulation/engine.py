"""Runs a scenario: the round loop of the live service, on a clock that jumps."""

from __future__ import annotations

import time

from maat.scheduling.belief import Fitter
from maat.scheduling.loop import RoundLoop, SkipRounds
from maat.scheduling.quotas import check_quotas
from maat.scheduling.reservations import check_reservations
from maat.scheduling.standing import RoundsAhead
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.failures import Outages
from maat.simulation.job_recorder import JobRecorder
from maat.simulation.record import Cancelled, Progress, Recorder, SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world import World


def simulate(
    scenario: Scenario,
    *,
    on_progress: Progress | None = None,
    fitter: Fitter | None = None,
    every_round: bool = False,
) -> SimulationResult:
    """Run a scenario to the end of its last job.

    `fitter`: one with a memory, if many runs fit the same samples. `every_round`: also run rounds
    that would repeat the one before. Neither changes a figure. Raises TraceError if a job can never
    run on this cluster.
    """
    began, began_cpu = time.perf_counter(), time.process_time()
    world, conditions = World.of(scenario), scenario.conditions
    names = {job.name for job in scenario.workload.jobs}
    check_reservations(conditions.reservations, world.cluster, job_ids=names)
    check_quotas(conditions.quotas, world.cluster)
    clock = JumpingClock()
    outages = Outages(world.cluster, conditions.failures, seed=scenario.seed)
    executor = SimulatedExecutor(
        world.cluster,
        clock,
        world.fidelity,
        fitter=fitter,
        outages=outages,
        slowdowns=world.slowdowns,
        recorder=JobRecorder(world.cluster, world.unequal_gpus),
    )
    for job in world.submissions:
        executor.submit(
            job.spec,
            job.truth,
            restart_seconds=job.restart_seconds,
            work_scale=job.work_scale,
            regimes=job.regimes,
        )
    recorder = Recorder(
        world.scenario_with_scores, executor, on_progress, placer_state=world.placer_state
    )
    loop = RoundLoop(
        policy=world.policy,
        placer=world.placer,
        executor=executor,
        store=recorder,
        clock=clock,
        round_seconds=world.round_seconds,
        reservations=conditions.reservations,
        quotas=conditions.quotas,
        stability=conditions.stability,
        interference=world.interference,
        projection=world.projection,
        seed=scenario.seed,
        skip_rounds=None if every_round else _passing_over(executor, recorder),
    )
    stopped = False
    try:
        last = max((job.submit_seconds for job in scenario.workload.jobs), default=0.0)
        loop.run(until=last + scenario.max_rounds * loop.round_seconds)
    except Cancelled:
        stopped = True
    return recorder.result(
        loop.round_seconds,
        stopped=stopped,
        outages=outages,
        cpu_seconds=time.process_time() - began_cpu,
        wall_seconds=time.perf_counter() - began,
    )


def _passing_over(executor: SimulatedExecutor, recorder: Recorder) -> SkipRounds:
    """Return a function that advances jobs through skipped rounds, and records them."""

    def pass_over(ahead: RoundsAhead) -> int:
        count = executor.pass_over(ahead)
        if count:
            recorder.passed_over(ahead, count)
        return count

    return pass_over


class JumpingClock:
    """A clock whose time passes only in `sleep_until`."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep_until(self, time: float) -> None:
        self._now = max(self._now, time)
