"""What slows a simulated job besides its own step times."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from simulation.small import spec, truth, under

from maat.laboratory.setup import GeneratedTrace, Setup
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.iteration_models import shipped_models
from maat.simulation.simulated_job import SimulatedJob
from maat.simulation.slowdowns import SharedNetwork, Slowdown, UnequalGpus
from maat.simulation.world import World

CLUSTER = Cluster(Cluster.parse("t4=1x4").nodes, Cluster.parse("t4=1x4").gpu_types, jobs_per_gpu=2)


class Company:
    """Twice as slow for every partner."""

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        return float(2 ** len(partners))

    def contended(self, job: SimulatedJob) -> Sequence[int]:
        return job.allocation.gpus if job.allocation else ()


def test_a_cause_slows_exactly_the_jobs_that_share_a_gpu_until_they_no_longer_do() -> None:
    clock = JumpingClock()
    executor = SimulatedExecutor(CLUSTER, clock, FIDELITIES["sia-artifact"], slowdowns=(Company(),))
    for name in ("a", "b", "c"):
        executor.submit(spec(name), truth(), restart_seconds=0.0)
    executor.observe()

    _start(executor, 1, {"a": (0, 1), "b": (1, 2), "c": (3,)})
    together = {name: executor.jobs[name].pace for name in ("a", "b", "c")}
    _start(executor, 2, {"b": ()})

    assert together == {"a": 2.0, "b": 2.0, "c": 1.0}
    assert executor.jobs["a"].pace == 1.0


def test_pace_divides_the_work_done() -> None:
    done = {}
    for slowdowns in ((), (Company(),)):
        clock = JumpingClock()
        executor = SimulatedExecutor(
            CLUSTER, clock, FIDELITIES["sia-artifact"], slowdowns=slowdowns
        )
        for name in ("a", "b"):
            executor.submit(spec(name), truth(), restart_seconds=0.0)
        executor.observe()
        _start(executor, 1, {"a": (0,), "b": (0,)})
        clock.sleep_until(20.0)
        executor.observe()
        done[len(slowdowns)] = executor.jobs["a"].ledger.done_work

    assert done[1] == done[0] / 2 > 0


def test_distributed_jobs_on_one_node_lose_the_contention_and_no_others_do() -> None:
    """Four nodes of four GPUs: a and b meet on node 1, b and c on node 2, d is alone there."""
    executor, _ = _contending(0.5)

    _start(executor, 1, {"a": (3, 4), "b": (5, 8), "c": (9, 12, 13), "d": (10, 11), "e": (14, 15)})
    paces = {name: executor.jobs[name].pace for name in "abcde"}
    _start(executor, 2, {"b": ()})

    assert paces == {"a": 2.0, "b": 2.0, "c": 2.0, "d": 1.0, "e": 1.0}
    assert {name: executor.jobs[name].pace for name in "ac"} == {"a": 1.0, "c": 1.0}


def test_a_job_gets_its_speed_back_the_moment_the_other_distributed_job_ends() -> None:
    """A step takes 1 s and, without noise, is worth the initial batch: 10 effective samples.

    At half the speed the short job's 400 take 80 s. The other has done as many by then, and 100
    in 10 s at full speed.
    """
    executor, clock = _contending(0.5, "ab")
    executor.submit(spec("short"), truth(work=400.0), restart_seconds=0.0)
    executor.submit(spec("long"), truth(work=4000.0), restart_seconds=0.0)
    executor.observe()

    _start(executor, 1, {"short": (3, 4), "long": (5, 8)})
    clock.sleep_until(90.0)
    executor.observe()

    assert executor.finished["short"].finished_at == 80.0
    assert executor.jobs["long"].ledger.done_work == pytest.approx(500.0)


@pytest.mark.parametrize(("contention", "pace"), [(0.0, 1.0), (0.25, 4 / 3), (0.5, 2.0)])
def test_the_condition_gives_a_scenario_its_network(contention: float, pace: float) -> None:
    """A job that keeps 1 - 0.25 of its speed takes 4/3 of the time."""
    setup = Setup(GeneratedTrace("philly", jobs=3), shipped_models(), Cluster.parse("t4=4x4"))
    slowdowns = World.of(under(setup, network_contention=contention).scenario()).slowdowns
    executor, _ = _contending(0.0, slowdowns=slowdowns)

    _start(executor, 1, {"a": (3, 4), "b": (5, 8)})

    assert executor.jobs["a"].pace == pytest.approx(pace)


def test_a_job_across_racks_pays_for_nodes_and_racks() -> None:
    """Racks of two nodes of two GPUs: 1.5 across nodes, twice that across racks."""
    cluster, clock = Cluster.parse("t4=4x2/2", racks=True), JumpingClock()
    executor = SimulatedExecutor(
        cluster, clock, FIDELITIES["sia-artifact"], slowdowns=(UnequalGpus(cluster),)
    )
    for name in "abc":
        declared = spec(name, locality_penalty=1.5, rack_penalty=2.0)
        executor.submit(declared, truth(), restart_seconds=0.0)
    executor.observe()

    _start(executor, 1, {"a": (0, 1), "b": (4, 6), "c": (2, 5)})

    assert {name: executor.jobs[name].pace for name in "abc"} == {"a": 1.0, "b": 1.5, "c": 3.0}


def _contending(
    contention: float, names: str = "abcde", slowdowns: Sequence[Slowdown] | None = None
) -> tuple[SimulatedExecutor, JumpingClock]:
    cluster, clock = Cluster.parse("t4=4x4"), JumpingClock()
    causes = (SharedNetwork(cluster, contention),) if slowdowns is None else slowdowns
    executor = SimulatedExecutor(cluster, clock, FIDELITIES["sia-artifact"], slowdowns=causes)
    for name in names:
        executor.submit(spec(name), truth(), restart_seconds=0.0)
    executor.observe()
    return executor, clock


def _start(executor: SimulatedExecutor, number: int, gpus_of: dict[str, tuple[int, ...]]) -> None:
    items = []
    for name, gpus in gpus_of.items():
        after = Allocation("t4", gpus) if gpus else None
        kind = ChangeKind.START if gpus else ChangeKind.PREEMPT
        items.append(
            Change(
                name,
                kind,
                executor.jobs[name].allocation,
                after,
                Grant("t4", len(gpus)) if gpus else None,
            )
        )
    executor.apply(Changes(number, 0.0, tuple(items)))
