"""Runs attempts on this machine: one supervisor per attempt, which outlives the worker.

All nodes are here: declared ones, whose slots are no GPUs, or this machine's own GPUs. Each
attempt's folder is ROOT/attempts/ID; a file ROOT/nodes/NAME.down takes a node out of service, as
its death would.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from backend.attempts.folders import attempt_folder, attempts_folder
from maat.launch import control
from maat.launch.attempt_dir import AttemptDir, Limits, Standing
from maat.launch.processes import NeedsLinux, end_marked
from maat.launch.room import NO_ROOM
from worker.engines.in_folders import (
    SPOILT,
    check,
    ended_as_written,
    folder_of,
    is_attempt,
    spec_of,
    unreadable,
    why_down,
)
from worker.engines.machine_gpus import MachineGpus
from worker.engines.protocol import (
    Capabilities,
    EngineNode,
    Order,
    Phase,
    Refused,
    Seen,
    Unreachable,
)

_PHASES = {
    Standing.STARTING: Phase.QUEUED,
    Standing.RUNNING: Phase.RUNNING,
    Standing.LOST: Phase.RUNNING,  # until nothing of it is left
}


class LocalEngine:
    """The engine of one machine.

    `nodes`: those declared, whose slots have no GPUs, for emulated devices; None takes the GPUs
    that the machine has.
    """

    def __init__(
        self,
        root: Path,
        nodes: Sequence[EngineNode] | None,
        *,
        gpus: MachineGpus | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._root = root.resolve()
        self._declared = nodes
        self._gpus = gpus or MachineGpus(self._root)
        self._limits = limits or Limits()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            names_gpus=True,
            shares=True,
            uneven=True,
            several_nodes=True,
            finds_nodes=self._declared is None,
            looks_cheaply=True,
        )

    def directory(self, attempt_id: str) -> Path:
        """Return where an attempt's folder is."""
        return attempt_folder(self._root, attempt_id)

    def nodes(self) -> Sequence[EngineNode]:
        return [self._as_it_is(node) for node in self._all().values()]

    def set_down(self, name: str, reason: str) -> None:
        """Take a node out of service and kill what runs on it, as its death would."""
        down = self._down_file(self._node(name).name)
        down.parent.mkdir(parents=True, exist_ok=True)
        down.write_text(reason)
        for attempt in self._attempts():
            # What is being launched and has no spec yet looks at its nodes itself.
            spec = (attempt.read("spec.json") or {}) if _is_alive(attempt) else {}
            if name in spec.get("gpus_by_node", ()):
                control.kill(attempt, lost=self._why_down(name))

    def set_up(self, name: str) -> None:
        self._down_file(self._node(name).name).unlink(missing_ok=True)

    def launch(self, order: Order) -> str:
        attempt = folder_of(order, self.directory(order.attempt_id))
        if attempt.standing() is not Standing.ABSENT:
            return order.attempt_id
        nodes = self._all()
        check(order, {name: self._as_it_is(node) for name, node in nodes.items()})
        try:
            order.checkpoint_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            spec = spec_of(
                order,
                cuda_devices=self._devices(order),
                threads=_threads_per_slot(nodes.values()) * order.gpus_per_replica,
                limits=self._limits,
            )
            control.start(attempt, spec, token=order.token, secrets=order.secrets)
        except NeedsLinux as error:
            raise Refused(str(error)) from error
        except (OSError, control.StartFailed) as error:
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise Refused(f"The disk of {self._root} is full: make room there.") from error
            raise Unreachable(f"{order.attempt_id} could not be started: {error}") from error
        for node in order.gpus_by_node:  # it may have gone down meanwhile
            if not self._as_it_is(nodes[node]).up:
                control.kill(attempt, lost=self._why_down(node))
        return order.attempt_id

    def look(self, attempt_ids: Sequence[str]) -> Mapping[str, Seen]:
        attempts = {each: self._attempt(each) for each in attempt_ids if is_attempt(each)}
        standings = {each: attempt.standing() for each, attempt in attempts.items()}
        lost = [each for each, standing in standings.items() if standing is Standing.LOST]
        if lost:
            control.conclude_lost([attempts[each] for each in lost])
            standings |= {each: attempts[each].standing() for each in lost}
        return {
            each: _seen(each, attempts[each], standings[each])
            if each in attempts
            else Seen(Phase.ABSENT)
            for each in attempt_ids
        }

    def stop(self, attempt_id: str) -> None:
        self._order(attempt_id, control.stop)

    def kill(self, attempt_id: str) -> None:
        self._order(attempt_id, control.kill)

    def strays(self, known: Collection[str]) -> Sequence[str]:
        unknown = [each for each in self._attempts() if _id(each.path) not in known]
        alive = [each for each in unknown if _is_alive(each)]
        for attempt in alive:
            control.kill(attempt)
        for attempt in unknown:  # its supervisor may still have been there when it was forgotten
            if attempt not in alive and attempt.has("token"):
                control.forget(attempt)
        killed, _ = end_marked(self._is_unsupervised, seconds=control.SWEEP_SECONDS)
        found = {each.path for each in alive} | set(killed)
        return sorted({_id(path) for path in found} - set(known))

    def forget(self, attempt_id: str) -> None:
        self._order(attempt_id, control.forget)

    def _order(self, attempt_id: str, order: Callable[[AttemptDir], None]) -> None:
        if not is_attempt(attempt_id):
            return
        try:
            order(self._attempt(attempt_id))
        except OSError as error:
            raise Unreachable(f"The folder of {attempt_id} cannot be written: {error}") from error

    def _attempt(self, attempt_id: str) -> AttemptDir:
        return AttemptDir(str(self.directory(attempt_id)))

    def _attempts(self) -> list[AttemptDir]:
        folder = attempts_folder(self._root)
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        return [self._attempt(name) for name in names]

    def _is_unsupervised(self, folder: str) -> bool:
        """Return whether a folder of ours has no supervisor, so that nothing may run for it."""
        is_ours = os.path.dirname(folder) == str(attempts_folder(self._root))
        return is_ours and not AttemptDir(folder).is_locked()

    def _down_file(self, name: str) -> Path:
        return self._root / "nodes" / f"{quote(name, safe='')}.down"

    def _all(self) -> dict[str, EngineNode]:
        nodes = self._gpus.nodes() if self._declared is None else self._declared
        return {node.name: node for node in nodes}

    def _node(self, name: str) -> EngineNode:
        nodes = self._all()
        if name not in nodes:
            raise KeyError(f"There is no node {name!r}; the nodes are {', '.join(nodes)}.")
        return nodes[name]

    def _as_it_is(self, node: EngineNode) -> EngineNode:
        try:
            reason = self._down_file(node.name).read_text()
        except FileNotFoundError:
            return node
        return replace(node, up=False, reason=reason)

    def _why_down(self, name: str) -> str:
        return why_down(self._as_it_is(self._node(name)))

    def _devices(self, order: Order) -> dict[str, tuple[str, ...]]:
        if self._declared is not None:
            return {}
        return {node: self._gpus.devices(node, gpus) for node, gpus in order.gpus_by_node.items()}


def _threads_per_slot(nodes: Iterable[EngineNode]) -> int:
    slots = sum(node.gpu_count for node in nodes)
    return max((os.cpu_count() or 1) // max(slots, 1), 1)


def _is_alive(attempt: AttemptDir) -> bool:
    return attempt.standing() in {Standing.STARTING, Standing.RUNNING}


def _id(path: str) -> str:
    return os.path.basename(path)


def _seen(attempt_id: str, attempt: AttemptDir, standing: Standing) -> Seen:
    if standing is Standing.ABSENT:
        return Seen(Phase.ABSENT)
    try:
        if standing is Standing.ENDED:
            return ended_as_written(attempt_id, attempt.read("exit.json") or {})
        return Seen(_PHASES[standing], engine_id=attempt_id, exits=attempt.exit_codes())
    except SPOILT as error:
        return unreadable(attempt, error)
