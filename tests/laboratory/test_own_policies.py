"""Policies that no registry has, in comparisons and sweeps, and executors that are given."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from laboratory.untimed_results import outcomes_of, points_of

from maat.laboratory.comparison import Contestant, report
from maat.laboratory.comparison_run import ComparisonPlan, run_comparison
from maat.laboratory.content import content_key, has_known_content
from maat.laboratory.results import ResultCache
from maat.laboratory.setup import GeneratedTrace, Setup, Trace
from maat.laboratory.sweep import Sweep, Varied
from maat.laboratory.sweep_runner import run_sweep
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import MaatError, ParameterError
from maat.scheduling.parameters import knob
from maat.scheduling.policies.fifo import Fifo
from maat.scheduling.policies.srtf import Srtf
from maat.scheduling.rounds import Decision, RoundInput
from maat.simulation.world_models import catalog_models


@dataclass(frozen=True)
class Mine:
    """As FIFO, or as SRTF; `seen` is called with every round."""

    shortest: bool = knob(False, "Whether the shortest job is first.")
    seen: Callable[[RoundInput], object] | None = None
    name: str = "mine"
    default_round_seconds: ClassVar[float] = 60.0

    def allocate(self, round_input: RoundInput) -> Decision:
        if self.seen is not None:
            self.seen(round_input)
        return (Srtf() if self.shortest else Fifo()).allocate(round_input)


class Told(ThreadPoolExecutor):
    """Counts what it was given."""

    submitted = 0

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        return super().submit(*args, **kwargs)


FIFO = Contestant("fifo", "packed-sticky")
OWN = Contestant("mine", "packed-sticky", own_policy=Mine())
TRACE = GeneratedTrace("philly", 6, 1.0)
CLUSTER = Cluster.parse("t4=4x4,a100=2x8")


def plan(*contestants: Contestant, seeds: tuple[int, ...] = (0, 1)) -> ComparisonPlan:
    traces = (Trace("philly", TRACE),)
    return ComparisonPlan(catalog_models(), CLUSTER, contestants, traces, seeds)


def setup(policy: Mine) -> Setup:
    return Setup(
        TRACE, catalog_models(), CLUSTER, policy="mine", placer="packed-sticky", own_policy=policy
    )


def test_an_own_policy_is_compared_with_one_of_maats() -> None:
    outcomes = run_comparison(plan(FIFO, OWN))
    of_fifo, of_mine = outcomes[:2], outcomes[2:]
    assert [o.jct_hours for o in of_mine] == [o.jct_hours for o in of_fifo]
    assert report(outcomes, FIFO)["contestants"][1]["policy"] == "mine"


def test_an_own_policy_that_processes_can_make_runs_in_them() -> None:
    together, alone = run_comparison(plan(FIFO, OWN), workers=2), run_comparison(plan(FIFO, OWN))
    assert outcomes_of(together) == outcomes_of(alone)


@pytest.mark.parametrize("make", [lambda: ProcessPoolExecutor(2), lambda: None])
def test_an_own_policy_that_processes_cannot_make_runs_in_this_one(
    make: Callable[[], Executor | None],
) -> None:
    processes: set[int] = set()
    seen = Mine(seen=lambda _: processes.add(os.getpid()))
    contest = plan(FIFO, replace(OWN, own_policy=seen))
    executor = make()
    outcomes = run_comparison(contest, workers=2, executor=executor)
    if executor is not None:
        executor.shutdown()
    assert processes == {os.getpid()}
    assert [o.jct_hours for o in outcomes[2:]] == [o.jct_hours for o in outcomes[:2]]


def test_a_given_executor_runs_every_scenario_and_stays_open() -> None:
    with Told(2) as executor:
        outcomes = run_comparison(plan(FIFO, OWN), executor=executor)
        assert executor.submitted == 4
        assert executor.submit(int).result() == 0
    assert outcomes_of(outcomes) == outcomes_of(run_comparison(plan(FIFO, OWN)))


def test_a_sweep_takes_an_executor_too() -> None:
    axes = (Varied.of("arrival_rate", [1, 2]),)
    points = Sweep(setup(Mine()), axes).points()
    with Told(2) as executor:
        result = run_sweep(points, executor=executor)
        assert executor.submitted == 2
    assert points_of(result) == points_of(run_sweep(points))


def test_what_an_executor_has_not_begun_is_cancelled_with_the_comparison() -> None:
    begun: list[RoundInput] = []

    def fails(round_input: RoundInput) -> None:
        begun.append(round_input)
        raise RuntimeError("in a policy")

    bad = replace(OWN, own_policy=Mine(seen=fails))
    with Told(1) as executor, pytest.raises(MaatError, match="RuntimeError: in a policy") as failed:
        run_comparison(plan(bad, seeds=tuple(range(40))), executor=executor)
    assert isinstance(failed.value.__cause__, RuntimeError)
    assert len(begun) < 40


def test_no_result_of_an_own_policy_is_kept_but_if_it_says_what_it_is(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Named(Mine):
        def content(self) -> object:
            return "mine, 1"

    points = [
        Sweep(setup(policy), (Varied.of("arrival_rate", [1.0]),)).points()
        for policy in (Mine(), Named())
    ]
    scenarios = [point.scenario for (point,) in points]
    assert [has_known_content(scenario) for scenario in scenarios] == [False, True]
    for found in points:
        run_sweep(found, cache=ResultCache(tmp_path))
    assert len(list(tmp_path.glob("*/*.json"))) == 1


def test_two_own_policies_of_one_name_are_two() -> None:
    first, second = Mine(), Mine()
    keys = [content_key(setup(policy).scenario()) for policy in (first, first, second)]
    assert keys[0] == keys[1] != keys[2]


def test_an_own_policy_has_the_knobs_that_it_declares() -> None:
    scenario = replace(setup(Mine()), policy_parameters={"shortest": True}).scenario()
    plain = setup(Mine()).scenario()
    assert content_key(scenario) != content_key(plain)
    with pytest.raises(ParameterError, match="p: is no parameter of mine"):
        content_key(replace(scenario, policy_parameters={"p": 1}))
