"""Runs attempts on this machine: one supervisor per attempt, which outlives the worker.

The nodes are declared, and all of them are here. Each attempt's folder is ROOT/attempts/ID; a file
ROOT/nodes/NAME.down takes a node out of service, as its death would.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from backend.attempts.folders import attempt_folder, attempts_folder
from maat.launch import control
from maat.launch.attempt_dir import AttemptDir, Limits, Spec, Standing
from maat.launch.processes import NeedsLinux, end_marked
from worker.engines.protocol import (
    Capabilities,
    EngineNode,
    Order,
    Phase,
    Refused,
    Seen,
    Unreachable,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PHASES = {
    Standing.STARTING: Phase.QUEUED,
    Standing.RUNNING: Phase.RUNNING,
    Standing.LOST: Phase.RUNNING,  # until nothing of it is left
}


class LocalEngine:
    """The engine of one machine.

    `cuda_devices`: by node, what CUDA calls the GPU of each slot. A node that is not in it has
    slots without GPUs, for emulated devices.
    """

    def __init__(
        self,
        root: Path,
        nodes: Sequence[EngineNode],
        *,
        cuda_devices: Mapping[str, Sequence[str]] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._root = root.resolve()
        self._nodes = {node.name: node for node in nodes}
        self._cuda_devices = cuda_devices or {}
        self._limits = limits or Limits()
        slots = sum(node.gpu_count for node in nodes)
        self._threads_per_slot = max((os.cpu_count() or 1) // max(slots, 1), 1)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(names_gpus=True, shares=True, uneven=True, several_nodes=True)

    def directory(self, attempt_id: str) -> Path:
        """Return where an attempt's folder is."""
        return attempt_folder(self._root, attempt_id)

    def nodes(self) -> Sequence[EngineNode]:
        return [self._as_it_is(node) for node in self._nodes.values()]

    def set_down(self, name: str, reason: str) -> None:
        """Take a node out of service and kill what runs on it, as its death would."""
        down = self._down_file(name)
        down.parent.mkdir(parents=True, exist_ok=True)
        down.write_text(reason)
        for attempt in self._attempts():
            # What is being launched and has no spec yet looks at its nodes itself.
            spec = (attempt.read("spec.json") or {}) if _is_alive(attempt) else {}
            if name in spec.get("gpus_by_node", ()):
                control.kill(attempt, lost=self._why_down(name))

    def set_up(self, name: str) -> None:
        self._down_file(name).unlink(missing_ok=True)

    def launch(self, order: Order) -> str:
        attempt = self._attempt_of(order)
        if attempt.standing() is not Standing.ABSENT:
            return order.attempt_id
        self._check(order)
        try:
            order.checkpoint_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            control.start(attempt, self._spec(order), token=order.token, secrets=order.secrets)
        except NeedsLinux as error:
            raise Refused(str(error)) from error
        except (OSError, control.StartFailed) as error:
            raise Unreachable(f"{order.attempt_id} could not be started: {error}") from error
        for node in order.gpus_by_node:  # it may have gone down meanwhile
            if not self._as_it_is(self._nodes[node]).up:
                control.kill(attempt, lost=self._why_down(node))
        return order.attempt_id

    def look(self, attempt_ids: Sequence[str]) -> Mapping[str, Seen]:
        attempts = {each: self._attempt(each) for each in attempt_ids if _NAME.fullmatch(each)}
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
        if _NAME.fullmatch(attempt_id):
            control.stop(self._attempt(attempt_id))

    def kill(self, attempt_id: str) -> None:
        if _NAME.fullmatch(attempt_id):
            control.kill(self._attempt(attempt_id))

    def strays(self, known: Collection[str]) -> Sequence[str]:
        unknown = [each for each in self._attempts() if _id(each.path) not in known]
        alive = [each for each in unknown if _is_alive(each)]
        for attempt in alive:
            control.kill(attempt)
        killed, _ = end_marked(self._is_unsupervised, seconds=control.SWEEP_SECONDS)
        found = {each.path for each in alive} | set(killed)
        return sorted({_id(path) for path in found} - set(known))

    def forget(self, attempt_id: str) -> None:
        if _NAME.fullmatch(attempt_id):
            control.forget(self._attempt(attempt_id))

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
        if name not in self._nodes:
            raise KeyError(f"There is no node {name!r}; the nodes are {', '.join(self._nodes)}.")
        return self._root / "nodes" / f"{quote(name, safe='')}.down"

    def _as_it_is(self, node: EngineNode) -> EngineNode:
        try:
            reason = self._down_file(node.name).read_text()
        except FileNotFoundError:
            return node
        return replace(node, up=False, reason=reason)

    def _why_down(self, name: str) -> str:
        return f"Node {name} is down: {self._as_it_is(self._nodes[name]).reason}"

    def _attempt_of(self, order: Order) -> AttemptDir:
        if not _NAME.fullmatch(order.attempt_id):
            raise Refused(f"An attempt cannot be called {order.attempt_id!r}.")
        here = self.directory(order.attempt_id)
        if order.directory.resolve() != here:
            raise Refused(f"The folder of {order.attempt_id} is {here}, not {order.directory}.")
        return self._attempt(order.attempt_id)

    def _check(self, order: Order) -> None:
        """Raise Refused for an order that cannot be carried out here as it stands."""
        if not order.argv:
            raise Refused("The command is empty.")
        if not order.cwd.is_absolute():
            raise Refused(f"The folder to run in must be absolute, and {order.cwd} is not.")
        if not (math.isfinite(order.stop_seconds) and order.stop_seconds >= 0):
            raise Refused(f"stop_seconds must be a number from 0 on, not {order.stop_seconds}.")
        _check_strings(order)
        if order.gpus_per_replica < 1:
            raise Refused(f"gpus_per_replica must be 1 or more, not {order.gpus_per_replica}.")
        if not order.gpus_by_node:
            raise Refused("The order names no node.")
        for name, gpus in order.gpus_by_node.items():
            self._check_gpus(name, gpus, gpus_per_replica=order.gpus_per_replica)

    def _check_gpus(self, name: str, gpus: Sequence[int], *, gpus_per_replica: int) -> None:
        declared = self._nodes.get(name)
        if declared is None:
            raise Refused(f"There is no node {name!r}; the nodes are {', '.join(self._nodes)}.")
        if not self._as_it_is(declared).up:
            raise Refused(self._why_down(name))
        if not gpus or len(set(gpus)) < len(gpus) or len(gpus) % gpus_per_replica:
            raise Refused(
                f"Node {name!r} must give different GPUs, {gpus_per_replica} for each replica, "
                f"not {list(gpus)}."
            )
        absent = [gpu for gpu in gpus if gpu not in range(declared.gpu_count)]
        if absent:
            raise Refused(
                f"Node {name!r} has no GPU {absent[0]}: its {declared.gpu_count} count from 0."
            )

    def _spec(self, order: Order) -> Spec:
        return Spec(
            attempt_id=order.attempt_id,
            job_id=order.job_id,
            number=order.number,
            argv=order.argv,
            cwd=str(order.cwd),
            env=dict(order.env),
            secret_names=tuple(order.secrets),
            gpu_type=order.gpu_type,
            gpus_by_node=dict(order.gpus_by_node),
            gpus_per_replica=order.gpus_per_replica,
            cuda_devices={
                node: tuple(self._cuda_devices[node][gpu] for gpu in gpus)
                for node, gpus in order.gpus_by_node.items()
                if node in self._cuda_devices
            },
            threads=self._threads_per_slot * order.gpus_per_replica,
            stop_seconds=order.stop_seconds,
            limits=self._limits,
            plan=order.plan,
            checkpoint_directory=str(order.checkpoint_directory),
            profile=order.profile,
        )


def _is_alive(attempt: AttemptDir) -> bool:
    return attempt.standing() in {Standing.STARTING, Standing.RUNNING}


def _id(path: str) -> str:
    return os.path.basename(path)


def _seen(attempt_id: str, attempt: AttemptDir, standing: Standing) -> Seen:
    if standing is Standing.ABSENT:
        return Seen(Phase.ABSENT)
    try:
        if standing is Standing.ENDED:
            return _ended(attempt_id, attempt.read("exit.json") or {})
        return Seen(_PHASES[standing], engine_id=attempt_id, exits=attempt.exit_codes())
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        # The job can write there too.
        return Seen(Phase.UNKNOWN, reason=f"{attempt.path} cannot be read: {error!r}")


def _ended(attempt_id: str, ended: Mapping[str, Any]) -> Seen:
    return Seen(
        Phase.ENDED,
        engine_id=attempt_id,
        exits={int(rank): code for rank, code in ended["codes"].items()},
        first_failed=ended["first_failed"],
        reason=ended["lost"] or "",
        by_engine=ended["lost"] is not None,
    )


def _check_strings(order: Order) -> None:
    """Raise Refused for what no process can be given."""
    variables = {**order.env, **order.secrets}
    for name in variables:
        if not name or "=" in name:
            raise Refused(f"An environment variable cannot be called {name!r}.")
    for text in (*order.argv, str(order.cwd), *variables, *variables.values()):
        try:
            impossible = b"\0" in os.fsencode(text)
        except UnicodeEncodeError:
            impossible = True
        if impossible:
            raise Refused("The command, its folder and environment must be text without NUL.")
