"""An engine in memory that keeps to the contract, and the programmes that contract tests run."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from worker.engines.protocol import (
    Capabilities,
    EngineNode,
    Order,
    Phase,
    Refused,
    Seen,
)

STOPPED, KILLED = 143, -9


@dataclass(frozen=True)
class Program:
    """What the ranks of an attempt do: those of `exits` end at once, the others when told.

    Each writes "ready" to its log, once.
    """

    exits: tuple[tuple[int, int], ...] = ()
    obeys: bool = True

    @property
    def argv(self) -> tuple[str, ...]:
        """Return it as a shell's command."""
        trap = f"trap 'exit {STOPPED}' TERM" if self.obeys else "trap '' TERM"
        ends = "".join(f"{rank}) exit {code};; " for rank, code in self.exits)
        # A shell acts on a signal only while it waits.
        rest = "sleep 1000 & while :; do wait; done"
        return ("/bin/sh", "-c", f"{trap}; echo ready; case $RANK in {ends}esac; {rest}")


@dataclass
class _Running:
    order: Order
    codes: dict[int, int] = field(default_factory=dict)
    first_failed: int | None = None
    kill_at: float | None = None
    lost: str = ""


@dataclass
class FakeWorld:
    """What outlives the worker."""

    attempts: dict[str, _Running] = field(default_factory=dict)
    down: dict[str, str] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)


class FakeEngine:
    """Runs programmes that it is told of, by their commands."""

    def __init__(
        self, world: FakeWorld, nodes: Sequence[EngineNode], programs: Collection[Program]
    ) -> None:
        self._world = world
        self._nodes = {node.name: node for node in nodes}
        self._programs = {program.argv: program for program in programs}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(names_gpus=True, shares=True, uneven=True, several_nodes=True)

    def nodes(self) -> Sequence[EngineNode]:
        down = self._world.down
        return [
            replace(node, up=node.name not in down, reason=down.get(node.name, ""))
            for node in self._nodes.values()
        ]

    def set_down(self, name: str, reason: str) -> None:
        with self._world.lock:
            self._world.down[name] = reason
            for attempt_id, running in self._world.attempts.items():
                if name in running.order.gpus_by_node and self._is_alive(attempt_id):
                    running.lost = f"Node {name} is down: {reason}"
                    self.kill(attempt_id)

    def set_up(self, name: str) -> None:
        del self._world.down[name]

    def launch(self, order: Order) -> str:
        with self._world.lock:
            if order.attempt_id not in self._world.attempts:
                self._check(order)
                self._start(order)
            return order.attempt_id

    def look(self, attempt_ids: Sequence[str]) -> Mapping[str, Seen]:
        with self._world.lock:
            return {each: self._seen(each) for each in attempt_ids}

    def stop(self, attempt_id: str) -> None:
        with self._world.lock:
            if self._is_alive(attempt_id):
                self._ask(self._world.attempts[attempt_id])

    def kill(self, attempt_id: str) -> None:
        with self._world.lock:
            if self._is_alive(attempt_id):
                self._end_all(self._world.attempts[attempt_id], KILLED)

    def strays(self, known: Collection[str]) -> Sequence[str]:
        with self._world.lock:
            found = [
                each for each in self._world.attempts if each not in known and self._is_alive(each)
            ]
            for attempt_id in found:
                self.kill(attempt_id)
            return found

    def forget(self, attempt_id: str) -> None:
        self._world.forgotten.add(attempt_id)

    def _check(self, order: Order) -> None:
        for name, gpus in order.gpus_by_node.items():
            if name not in self._nodes or name in self._world.down:
                raise Refused(f"There is no node {name!r} in service.")
            if not set(gpus) <= set(range(self._nodes[name].gpu_count)):
                raise Refused(f"Node {name!r} has not all of the GPUs {list(gpus)}.")

    def _start(self, order: Order) -> None:
        running = self._world.attempts[order.attempt_id] = _Running(order)
        order.directory.mkdir(parents=True, exist_ok=True)
        for rank in range(order.rank_count):
            with (order.directory / f"rank-{rank}.log").open("a") as log:
                log.write("ready\n")
        for rank, code in self._programs[order.argv].exits:
            if rank < order.rank_count:
                running.codes[rank] = code
                if code != 0 and running.first_failed is None:
                    running.first_failed = rank
        if running.first_failed is not None:
            self._ask(running)

    def _ask(self, running: _Running) -> None:
        if self._programs[running.order.argv].obeys:
            self._end_all(running, STOPPED)
        elif running.kill_at is None:
            running.kill_at = time.monotonic() + running.order.stop_seconds

    def _end_all(self, running: _Running, code: int) -> None:
        for rank in range(running.order.rank_count):
            running.codes.setdefault(rank, code)

    def _is_alive(self, attempt_id: str) -> bool:
        return self._seen(attempt_id).phase is Phase.RUNNING

    def _seen(self, attempt_id: str) -> Seen:
        running = self._world.attempts.get(attempt_id)
        if running is None:
            return Seen(Phase.ABSENT)
        if running.kill_at is not None and time.monotonic() >= running.kill_at:
            self._end_all(running, KILLED)
        has_ended = len(running.codes) == running.order.rank_count
        return Seen(
            Phase.ENDED if has_ended else Phase.RUNNING,
            engine_id=attempt_id,
            exits=dict(sorted(running.codes.items())),
            first_failed=running.first_failed,
            reason=running.lost,
            by_engine=bool(running.lost),
        )
