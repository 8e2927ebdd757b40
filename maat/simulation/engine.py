"""Plays a scenario through: the live round loop on a clock that jumps."""

from __future__ import annotations

import time

from maat.scheduling.belief import Fitter
from maat.scheduling.loop import RoundLoop, SkipRounds
from maat.scheduling.reservations import check_reservations
from maat.scheduling.standing import RoundsAhead
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.failures import Outages
from maat.simulation.record import Cancelled, Progress, Recorder, SimulationResult
from maat.simulation.scenario import (
    Scenario,
    build_parts,
    first_state_of,
    interference_of,
    projection_of,
    round_seconds_of,
    run_sequence,
    slowdowns_of,
    submit,
    with_scores,
)


def simulate(
    scenario: Scenario,
    *,
    on_progress: Progress | None = None,
    fitter: Fitter | None = None,
    every_round: bool = False,
) -> SimulationResult:
    """Run a scenario to the end of its last job. Raises TraceError where a job of it could never run on this cluster.

    `fitter`: one that remembers, where many runs fit the same samples. `every_round`: play the rounds, too, that would repeat the one before.
    Neither changes a figure.
    """
    began, began_cpu = time.perf_counter(), time.process_time()
    sequence = run_sequence(scenario)
    scenario = with_scores(scenario, sequence)
    conditions = scenario.conditions
    check_reservations(
        conditions.reservations,
        scenario.cluster,
        job_ids={job.name for job in scenario.workload.jobs},
    )
    clock = JumpingClock()
    outages = Outages(scenario.cluster, conditions.failures, seed=scenario.seed)
    interference = interference_of(scenario)
    told = conditions.fidelity.told_to(scenario.policy)
    slowdowns = slowdowns_of(scenario, interference)
    executor = SimulatedExecutor(
        scenario.cluster, clock, told, fitter=fitter, outages=outages, slowdowns=slowdowns
    )
    submit(scenario, executor)
    policy, placer = build_parts(scenario)
    recorder = Recorder(
        scenario, executor, on_progress, placer_state=first_state_of(placer, sequence)
    )
    loop = RoundLoop(
        policy=policy,
        placer=placer,
        executor=executor,
        store=recorder,
        clock=clock,
        round_seconds=round_seconds_of(scenario, policy),
        reservations=conditions.reservations,
        interference=interference,
        projection=projection_of(scenario),
        seed=scenario.seed,
        skip_rounds=None if every_round else _passing_over(executor, recorder),
    )
    stopped = False
    try:
        last = max((job.submit_seconds for job in scenario.workload.jobs), default=0.0)
        loop.run(until=last + scenario.max_rounds * loop.round_seconds)
    except Cancelled:
        stopped = True
    failed = len(outages.between(-1.0, clock.now()))
    return recorder.result(
        loop.round_seconds,
        stopped=stopped,
        failures=failed,
        cpu_seconds=time.process_time() - began_cpu,
        wall_seconds=time.perf_counter() - began,
    )


def _passing_over(executor: SimulatedExecutor, recorder: Recorder) -> SkipRounds:
    """Live through rounds that need not be played, and count them."""

    def pass_over(ahead: RoundsAhead) -> int:
        count = executor.pass_over(ahead)
        if count:
            recorder.passed_over(ahead, count)
        return count

    return pass_over


class JumpingClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep_until(self, time: float) -> None:
        self._now = max(self._now, time)
