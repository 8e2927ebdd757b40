"""The engine of this machine, where the contract of engines says nothing."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maat.launch.attempt_dir import AttemptDir
from maat.launch.processes import identity, marked
from worker.engines.local import LocalEngine
from worker.engines.protocol import EngineNode, Order, Phase, Refused, Unreachable

NODES = (EngineNode("t4-0", "t4", 4, up=True), EngineNode("cpu/0 a", "cpu", 2, up=True))
WAITS = ("/bin/sh", "-c", "setsid sleep 1000 & sleep 1000 & echo ready; wait")


def _until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(tmp_path, NODES)
    yield engine
    _until(lambda: not engine.strays(known=()))


def _order(engine: LocalEngine, attempt_id: str = "att_1", **changes: Any) -> Order:
    directory = engine.directory(attempt_id)
    order = Order(
        attempt_id=attempt_id,
        job_id="job_1",
        number=1,
        directory=directory,
        checkpoint_directory=directory.parent.parent / "jobs" / "job_1" / "checkpoints",
        argv=WAITS,
        cwd=Path("/"),
        gpu_type="t4",
        gpus_by_node={"t4-0": (1, 3)},
        stop_seconds=1000.0,
        token="token",
    )
    return replace(order, **changes)


def _launched(engine: LocalEngine, attempt_id: str = "att_1", **changes: Any) -> Order:
    order = _order(engine, attempt_id, **changes)
    engine.launch(order)
    logs = [order.directory / f"rank-{rank}.log" for rank in range(order.rank_count)]
    _until(lambda: all(log.exists() and "ready" in log.read_text() for log in logs))
    return order


def _kill_supervisor(order: Order) -> None:
    pid, started = json.loads((order.directory / "started.json").read_text())["shim"]
    assert identity(pid) == (pid, started)
    os.kill(pid, signal.SIGKILL)
    _until(lambda: identity(pid) != (pid, started))


def _processes(order: Order) -> list[int]:
    return [pid for pid, folder in marked() if folder == str(order.directory)]


def test_a_slot_is_no_gpu(engine: LocalEngine) -> None:
    order = _launched(engine, argv=("/bin/sh", "-c", "echo ready; echo [$CUDA_VISIBLE_DEVICES]"))
    _until(lambda: engine.look([order.attempt_id])[order.attempt_id].exits)
    assert (order.directory / "rank-1.log").read_text() == "ready\n[]\n"


def test_launch_makes_the_folders_that_a_job_needs(engine: LocalEngine) -> None:
    order = _launched(engine)
    assert order.checkpoint_directory.is_dir()
    assert (order.directory / "token").read_text() == "token"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpus_by_node": {}}, "names no node"),
        ({"gpus_by_node": {"a": (0,)}}, "There is no node 'a'; the nodes are t4-0, cpu/0 a."),
        ({"gpus_by_node": {"t4-0": (4,)}}, "'t4-0' has no GPU 4: its 4 count from 0"),
        ({"gpus_by_node": {"t4-0": (0, 0)}}, r"different GPUs, 1 for each replica, not \[0, 0\]"),
        ({"gpus_by_node": {"t4-0": ()}}, r"not \[\]"),
        ({"gpus_per_replica": 2, "gpus_by_node": {"t4-0": (0, 1, 2)}}, "2 for each replica"),
        ({"gpus_per_replica": 0}, "gpus_per_replica must be 1 or more"),
        ({"argv": ()}, "command is empty"),
        ({"argv": ("a\0b",)}, "without NUL"),
        ({"argv": ("\ud800",)}, "must be text"),
        ({"cwd": Path("here")}, "must be absolute, and here is not"),
        ({"env": {"A=B": "1"}}, "cannot be called 'A=B'"),
        ({"secrets": {"": "1"}}, "cannot be called ''"),
        ({"secrets": {"A": "x\0"}}, "without NUL"),
        ({"stop_seconds": math.nan}, "stop_seconds must be a number from 0 on, not nan"),
        ({"stop_seconds": -1.0}, "stop_seconds"),
        ({"attempt_id": "../att_1"}, r"cannot be called '\.\./att_1'"),
        ({"directory": Path("/tmp/elsewhere")}, "is .*/attempts/att_1, not /tmp/elsewhere"),
    ],
)
def test_what_can_never_run_is_refused_with_the_reason(
    engine: LocalEngine, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        engine.launch(_order(engine, **changes))
    assert not engine.directory("att_1").exists()


def test_other_systems_refuse_and_say_why(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Refused, match="on Linux only"):
        engine.launch(_order(engine))


def test_a_disk_that_takes_nothing_may_be_tried_again(engine: LocalEngine, tmp_path: Path) -> None:
    (tmp_path / "attempts").write_text("no folder")
    with pytest.raises(Unreachable, match=r"att_1 could not be started: .* Not a directory"):
        engine.launch(_order(engine))
    (tmp_path / "attempts").unlink()
    _launched(engine)


def test_a_killed_supervisor_loses_the_attempt_and_nothing_of_it_stays(
    engine: LocalEngine,
) -> None:
    lost, other = _launched(engine, "att_1"), _launched(engine, "att_2")
    _kill_supervisor(lost)
    seen = engine.look(["att_1", "att_2"])
    assert seen["att_1"].phase is Phase.ENDED
    assert (seen["att_1"].by_engine, seen["att_1"].reason) == (True, "Its supervisor was killed.")
    assert _processes(lost) == []
    assert seen["att_2"].phase is Phase.RUNNING
    assert _processes(other)
    assert engine.look(["att_1"])["att_1"] == seen["att_1"]
    assert engine.launch(lost) == "att_1"
    assert engine.look(["att_1"])["att_1"] == seen["att_1"]


def test_what_a_lost_attempt_left_is_a_stray_too(engine: LocalEngine) -> None:
    known, unknown = _launched(engine, "att_1"), _launched(engine, "att_2")
    _kill_supervisor(known)
    _kill_supervisor(unknown)
    _until(lambda: len(_processes(known)) == len(_processes(unknown)) == 4)
    assert engine.strays(known=["att_1"]) == ["att_2"]
    assert _processes(known) + _processes(unknown) == []


def test_what_was_forgotten_while_its_supervisor_was_still_there_is_cleaned_up_later(
    engine: LocalEngine,
) -> None:
    order = _launched(engine, argv=("/bin/sh", "-c", "echo ready"))
    _until(lambda: engine.look(["att_1"])["att_1"].phase is Phase.ENDED)
    folder = AttemptDir(str(order.directory))
    _until(lambda: not folder.is_locked())
    lock = folder.take_lock()
    assert lock is not None
    engine.forget("att_1")
    assert folder.has("token"), "what runs is not forgotten"
    os.close(lock)

    assert engine.strays(known=["att_1"]) == []
    assert folder.has("token"), "its end is not stored yet"
    assert engine.strays(known=()) == []
    assert not folder.has("token")
    assert engine.look(["att_1"])["att_1"].phase is Phase.ENDED


def test_strays_of_another_maat_on_this_machine_are_left_alone(
    engine: LocalEngine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    running, lost = _launched(engine, "att_1"), _launched(engine, "att_2")
    _kill_supervisor(lost)
    other = LocalEngine(tmp_path_factory.mktemp("other"), NODES)
    assert other.strays(known=()) == []
    assert engine.look(["att_1"])["att_1"].phase is Phase.RUNNING
    assert _processes(running)
    assert _processes(lost)


def test_a_node_that_goes_down_between_check_and_start_takes_the_attempt_along(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from worker.engines import local

    real_start = local.control.start

    def start_and_lose_the_node(*args: Any, **kwargs: Any) -> bool:
        (engine.directory("x").parent.parent / "nodes").mkdir()
        (engine.directory("x").parent.parent / "nodes" / "t4-0.down").write_text("power")
        return real_start(*args, **kwargs)

    monkeypatch.setattr(local.control, "start", start_and_lose_the_node)
    engine.launch(_order(engine))
    _until(lambda: engine.look(["att_1"])["att_1"].phase is Phase.ENDED)
    assert engine.look(["att_1"])["att_1"].reason == "Node t4-0 is down: power"


def test_a_node_may_have_any_name(engine: LocalEngine) -> None:
    order = _launched(engine, gpus_by_node={"cpu/0 a": (1,)})
    engine.set_down("cpu/0 a", "power")
    assert [node.up for node in engine.nodes()] == [True, False]
    _until(lambda: engine.look(["att_1"])["att_1"].by_engine)
    assert _processes(order) == []
    engine.set_up("cpu/0 a")
    engine.set_up("cpu/0 a")
    assert all(node.up for node in engine.nodes())
    with pytest.raises(KeyError, match="There is no node 'b'"):
        engine.set_down("b", "power")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"codes": 1}', '{"codes": {"x": 1}}'])
def test_a_job_that_spoils_its_folder_harms_itself_only(engine: LocalEngine, text: str) -> None:
    spoilt, other = _launched(engine, "att_1"), _launched(engine, "att_2")
    engine.kill("att_1")
    _until(lambda: engine.look(["att_1"])["att_1"].phase is Phase.ENDED)
    (spoilt.directory / "exit.json").write_text(text)
    for order in (spoilt, other):
        (order.directory / "rank-x.exit").write_text("")
        (order.directory / "rank-7.exit").write_text("[")
    seen = engine.look(["att_1", "att_2"])
    assert (seen["att_1"].phase, seen["att_2"].phase) == (Phase.UNKNOWN, Phase.RUNNING)
    assert str(spoilt.directory) in seen["att_1"].reason
    assert seen["att_2"].exits == {}


def test_a_look_starts_no_process_and_asks_of_none_that_runs(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _launched(engine)

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(subprocess, "run", forbidden)
    monkeypatch.setattr("maat.launch.processes._pids", forbidden)
    assert engine.look(["att_1"])["att_1"].phase is Phase.RUNNING
