"""What slows a simulated job besides its own step times."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.small import spec, truth

from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation
from maat.scheduling.rounds import Change, ChangeKind, Changes, Grant
from maat.simulation.engine import JumpingClock
from maat.simulation.executor import SimulatedExecutor
from maat.simulation.fidelity import FIDELITIES
from maat.simulation.simulated_job import SimulatedJob

CLUSTER = Cluster(Cluster.parse("t4=1x4").nodes, Cluster.parse("t4=1x4").gpu_types, jobs_per_gpu=2)


class Company:
    """Twice as slow for every partner."""

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        return float(2 ** len(partners))


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
