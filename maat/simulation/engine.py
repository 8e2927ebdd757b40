"""Plays a scenario through: the live round loop on a clock that jumps."""

from __future__ import annotations

import time

from maat.scheduling.belief import Fitter
from maat.scheduling.loop import RoundLoop
from maat.scheduling.reservations import check_reservations
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.failures import Outages
from maat.simulation.record import Cancelled, Progress, Recorder, SimulationResult
from maat.simulation.scenario import (
    Scenario,
    build_parts,
    conditions_of,
    projection_of,
    round_seconds_of,
    slowdowns_of,
    submit,
    with_scores,
)


def simulate(scenario: Scenario, *, on_progress: Progress | None = None, fitter: Fitter | None = None) -> SimulationResult:
    """Run a scenario to the end of its last job. Raises TraceError where a job of it could never run on this cluster.

    `fitter`: one that remembers, where many runs fit the same samples; it changes no result.
    """
    began = time.perf_counter()
    scenario = with_scores(scenario)
    check_reservations(scenario.reservations, scenario.cluster, job_ids={job.name for job in scenario.workload.jobs})
    clock = JumpingClock()
    outages = Outages(scenario.cluster, scenario.failures, seed=scenario.seed)
    slowdowns = slowdowns_of(scenario)
    told = scenario.fidelity.told_to(scenario.policy)
    conditions = conditions_of(scenario, slowdowns)
    executor = SimulatedExecutor(scenario.cluster, clock, told, fitter=fitter, outages=outages, conditions=conditions)
    submit(scenario, executor)
    policy, placer = build_parts(scenario)
    recorder = Recorder(scenario, executor, on_progress)
    loop = RoundLoop(
        policy=policy,
        placer=placer,
        executor=executor,
        store=recorder,
        clock=clock,
        round_seconds=round_seconds_of(scenario, policy),
        reservations=scenario.reservations,
        interference=slowdowns,
        projection=projection_of(scenario),
        seed=scenario.seed,
    )
    complete = True
    try:
        loop.run(until=scenario.max_rounds * loop.round_seconds)
    except Cancelled:
        complete = False
    failed = len(outages.between(-1.0, clock.now()))
    return recorder.result(loop.round_seconds, time.perf_counter() - began, complete and not executor.jobs, failures=failed)


class JumpingClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep_until(self, time: float) -> None:
        self._now = max(self._now, time)
