"""The contract of every engine, through worker.engines.protocol, with real programmes.

It also runs on an engine in memory: the contract asks for nothing that only processes have.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
from fake_engine import KILLED, STOPPED, FakeEngine, FakeWorld, Program
from slurm_cluster import SlurmCluster

from worker.engines.local import LocalEngine
from worker.engines.protocol import Engine, EngineNode, Order, Phase, Refused, Seen
from worker.engines.slurm import SlurmEngine

NODES = (
    EngineNode("t4-0", "t4", 4, up=True),
    EngineNode("t4-1", "t4", 2, up=True),
    EngineNode("a100-0", "a100", 2, up=True),
)
RUNS = Program()
STUBBORN = Program(obeys=False)
DONE = Program(exits=((0, 0), (1, 0)))
FIRST_DONE = Program(exits=((0, 0),))
SECOND_FAILS = Program(exits=((1, 3),))
SECOND_FAILS_OTHERS_STUBBORN = Program(exits=((1, 3),), obeys=False)
PROGRAMS = (RUNS, STUBBORN, DONE, FIRST_DONE, SECOND_FAILS, SECOND_FAILS_OTHERS_STUBBORN)

FOR_EVER = 10_000.0
PATIENCE_SECONDS = 60.0


class Breakable(Engine, Protocol):
    """An engine whose nodes can be taken down."""

    def set_down(self, name: str, reason: str) -> None: ...
    def set_up(self, name: str) -> None: ...


class BreakableSlurm(SlurmEngine):
    """Slurm, whose operator takes nodes down."""

    def __init__(self, root: Path, cluster: SlurmCluster) -> None:
        super().__init__(root, cluster.parameters(root))
        self.set_down, self.set_up = cluster.set_down, cluster.set_up


def _fake(root: Path, _: pytest.FixtureRequest) -> Callable[[], Breakable]:
    world = FakeWorld()
    return lambda: FakeEngine(world, NODES, PROGRAMS)


def _local(root: Path, _: pytest.FixtureRequest) -> Callable[[], Breakable]:
    return lambda: LocalEngine(root, NODES)


def _slurm(root: Path, request: pytest.FixtureRequest) -> Callable[[], Breakable]:
    cluster: SlurmCluster = request.getfixturevalue("slurm")
    cluster.settle()
    return lambda: BreakableSlurm(root, cluster)


ENGINES: Mapping[str, Callable[[Path, pytest.FixtureRequest], Callable[[], Breakable]]] = {
    "fake": _fake,
    "local": _local,
    "slurm": _slurm,
}


@dataclass
class Site:
    """An engine and its world. A new worker builds a new engine in the same world."""

    root: Path
    new_engine: Callable[[], Breakable]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.engine = self.new_engine()

    def order(
        self,
        program: Program = RUNS,
        gpus_by_node: Mapping[str, tuple[int, ...]] | None = None,
        stop_seconds: float = FOR_EVER,
    ) -> Order:
        number, shape = next(self.numbers), gpus_by_node or {"t4-0": (0, 1)}
        return Order(
            attempt_id=f"att_{number}",
            job_id="job_1",
            number=number,
            directory=self.root / "attempts" / f"att_{number}",
            checkpoint_directory=self.root / "jobs" / "job_1",
            argv=program.argv,
            cwd=self.root,
            gpu_type=next(iter(shape)).partition("-")[0],
            gpus_by_node=shape,
            stop_seconds=stop_seconds,
        )

    def launched(self, *args: object, **kwargs: object) -> Order:
        """Launch an order and wait until all of its ranks are ready."""
        order = self.order(*args, **kwargs)  # type: ignore[arg-type]
        self.engine.launch(order)
        self.until(lambda: all(each == "ready" for each in self.logs(order)))
        return order

    def logs(self, order: Order) -> list[str]:
        paths = [order.directory / f"rank-{rank}.log" for rank in range(order.rank_count)]
        return [path.read_text().strip() if path.exists() else "" for path in paths]

    def seen(self, order: Order) -> Seen:
        return self.engine.look([order.attempt_id])[order.attempt_id]

    def ended(self, order: Order) -> Seen:
        self.until(lambda: self.seen(order).phase is Phase.ENDED)
        return self.seen(order)

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.02)


def _counts(gpus_by_node: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    return {node: len(set(gpus)) for node, gpus in gpus_by_node.items()}


def _name(node: EngineNode) -> str:
    return node.name


@pytest.fixture(params=sorted(ENGINES))
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, ENGINES[request.param](tmp_path, request))
    yield site
    site.until(lambda: not site.engine.strays(known=()))


def test_it_says_which_nodes_it_has(site: Site) -> None:
    assert sorted(site.engine.nodes(), key=_name) == sorted(NODES, key=_name)


def test_a_launched_attempt_runs_under_the_name_that_launch_returned(site: Site) -> None:
    order = site.order()
    name = site.engine.launch(order)
    site.until(lambda: site.seen(order).phase is Phase.RUNNING)
    assert site.seen(order).engine_id == name
    told = site.seen(order).gpus_by_node
    assert told is None or _counts(told) == _counts(order.gpus_by_node)


def test_launched_twice_is_once(site: Site) -> None:
    order = site.launched()
    assert site.engine.launch(order) == site.seen(order).engine_id
    site.engine.stop(order.attempt_id)
    site.ended(order)
    assert site.logs(order) == ["ready", "ready"]


def test_launched_by_many_at_the_same_time_is_once(site: Site) -> None:
    order = site.order()
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: site.new_engine().launch(order), range(8)))
    assert len(set(names)) == 1
    site.until(lambda: all(site.logs(order)))
    site.engine.stop(order.attempt_id)
    assert site.ended(order).exits == {0: STOPPED, 1: STOPPED}
    assert site.logs(order) == ["ready", "ready"]


def test_what_has_ended_is_never_started_again(site: Site) -> None:
    order = site.launched(DONE)
    before = site.ended(order)
    site.engine.launch(order)
    assert site.ended(order) == before
    assert site.logs(order) == ["ready", "ready"]


def test_what_was_forgotten_is_never_started_again_and_its_logs_stay(site: Site) -> None:
    order = site.launched(DONE)
    site.ended(order)
    site.engine.forget(order.attempt_id)
    site.engine.forget(order.attempt_id)
    site.engine.launch(order)
    assert site.seen(order).phase in {Phase.ENDED, Phase.ABSENT}
    assert site.logs(order) == ["ready", "ready"]


def test_a_new_worker_finds_what_runs_and_can_end_it(site: Site) -> None:
    order = site.launched()
    site.engine = site.new_engine()
    assert site.seen(order).phase is Phase.RUNNING
    site.engine.stop(order.attempt_id)
    assert site.ended(order).exits == {0: STOPPED, 1: STOPPED}


def test_ranks_that_all_end_well_end_the_attempt(site: Site) -> None:
    ended = site.ended(site.launched(DONE))
    assert ended.exits == {0: 0, 1: 0}
    assert (ended.first_failed, ended.by_engine) == (None, False)


def test_a_rank_that_ends_well_leaves_the_others_alone(site: Site) -> None:
    order = site.launched(FIRST_DONE)
    site.until(lambda: site.seen(order).exits == {0: 0})
    assert site.seen(order).phase is Phase.RUNNING
    site.engine.stop(order.attempt_id)
    assert site.ended(order).exits == {0: 0, 1: STOPPED}


def test_a_rank_that_fails_takes_the_others_with_it(site: Site) -> None:
    order = site.order(SECOND_FAILS, {"t4-0": (0, 1, 2)})
    site.engine.launch(order)
    ended = site.ended(order)
    assert ended.first_failed == 1
    assert ended.exits[1] == 3
    # A shell that is told before it has set its trap ends by the signal.
    assert {ended.exits[0], ended.exits[2]} <= {STOPPED, -15}
    assert not ended.by_engine


def test_ranks_that_outlive_a_failed_one_are_killed_after_the_grace(site: Site) -> None:
    order = site.order(SECOND_FAILS_OTHERS_STUBBORN, stop_seconds=0.3)
    site.engine.launch(order)
    ended = site.ended(order)
    assert ended.first_failed == 1
    assert ended.exits[1] == 3
    assert ended.exits[0] < 0


def test_who_is_asked_to_stop_ends_in_its_own_way(site: Site) -> None:
    order = site.launched()
    site.engine.stop(order.attempt_id)
    site.engine.stop(order.attempt_id)
    ended = site.ended(order)
    assert ended.exits == {0: STOPPED, 1: STOPPED}
    assert (ended.first_failed, ended.by_engine) == (None, False)


def test_who_ignores_the_order_to_stop_is_killed_after_the_grace(site: Site) -> None:
    order = site.launched(STUBBORN, stop_seconds=0.3)
    site.engine.stop(order.attempt_id)
    ended = site.ended(order)
    assert ended.exits == {0: KILLED, 1: KILLED}
    assert ended.first_failed is None


def test_a_kill_waits_for_nobody(site: Site) -> None:
    order = site.launched(STUBBORN)
    site.engine.stop(order.attempt_id)
    assert site.seen(order).phase is Phase.RUNNING
    site.engine.kill(order.attempt_id)
    assert site.ended(order).exits == {0: KILLED, 1: KILLED}
    site.engine.kill(order.attempt_id)
    site.engine.stop(order.attempt_id)
    assert site.ended(order).exits == {0: KILLED, 1: KILLED}


def test_one_attempt_ends_and_the_other_goes_on_though_they_share_gpus(site: Site) -> None:
    first, second = site.launched(), site.launched()
    site.engine.kill(first.attempt_id)
    site.ended(first)
    assert site.seen(second).phase is Phase.RUNNING


def test_a_gang_may_be_uneven_over_nodes(site: Site) -> None:
    if not site.engine.capabilities.uneven:
        pytest.skip("this engine gives even shares only")
    order = site.launched(RUNS, {"t4-0": (0, 2, 3), "t4-1": (1,)})
    site.engine.stop(order.attempt_id)
    assert site.ended(order).exits == dict.fromkeys(range(4), STOPPED)


@pytest.mark.parametrize("gpus_by_node", [{"v100-0": (0,)}, {"t4-0": (0, 4)}, {"t4-0": (-1,)}])
def test_what_it_does_not_have_is_refused(
    site: Site, gpus_by_node: dict[str, tuple[int, ...]]
) -> None:
    order = site.order(RUNS, gpus_by_node)
    with pytest.raises(Refused):
        site.engine.launch(order)
    assert site.seen(order).phase is Phase.ABSENT


def test_what_is_absent_can_be_asked_stopped_killed_and_forgotten(site: Site) -> None:
    running = site.launched()
    for absent in ("att_none", "", "../att_1", "a/b", "x\0y", "."):
        site.engine.stop(absent)
        site.engine.kill(absent)
        site.engine.forget(absent)
        seen = site.engine.look([absent, running.attempt_id])
        assert seen[absent].phase is Phase.ABSENT
        assert seen[running.attempt_id].phase is Phase.RUNNING
    assert site.engine.look([]) == {}


def test_strays_are_ended_and_those_that_are_known_go_on(site: Site) -> None:
    known, stray = site.launched(), site.launched(STUBBORN)
    assert list(site.engine.strays([known.attempt_id, "att_none"])) == [stray.attempt_id]
    site.ended(stray)
    assert list(site.engine.strays([known.attempt_id])) == []
    assert site.seen(known).phase is Phase.RUNNING


def test_a_node_that_goes_down_takes_its_attempts_along(site: Site) -> None:
    across = site.launched(STUBBORN, {"t4-0": (0,), "t4-1": (0,)})
    beside = site.launched(RUNS, {"a100-0": (0,)})
    site.engine.set_down("t4-1", "power")
    ended = site.ended(across)
    assert ended.by_engine
    assert "t4-1" in ended.reason
    assert "power" in ended.reason
    assert site.seen(beside).phase is Phase.RUNNING
    (down,) = [node for node in site.engine.nodes() if not node.up]
    assert down.name == "t4-1"
    assert "power" in down.reason


def test_a_node_that_is_down_takes_no_order_and_one_that_is_back_does(site: Site) -> None:
    site.engine.set_down("t4-1", "power")
    order = site.order(DONE, {"t4-1": (0, 1)})
    with pytest.raises(Refused):
        site.engine.launch(order)
    site.engine.set_up("t4-1")
    assert all(node.up for node in site.engine.nodes())
    site.engine.launch(order)
    assert site.ended(order).exits == {0: 0, 1: 0}


def test_an_attempt_that_ended_is_not_lost_with_its_node(site: Site) -> None:
    order = site.launched(DONE)
    before = site.ended(order)
    site.engine.set_down("t4-0", "power")
    assert site.ended(order) == before
    assert site.engine.launch(order)
