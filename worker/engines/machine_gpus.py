"""This machine's NVIDIA GPUs as nodes: each type is a node, whose slots keep their GPUs for ever.

What was found is remembered in ROOT/gpus.json, so that slot 2 of a node is the same GPU after a
restart, and after another GPU fell off the bus.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from maat.agent.files import write_whole
from maat.launch.nvidia import Gpu, NoGpus, find_gpus
from worker.engines.protocol import EngineNode, Unreachable

log = logging.getLogger(__name__)

_LOOK_EVERY_SECONDS = 30.0  # nvidia-smi takes up to some seconds


@dataclass
class _Node:
    name: str
    gpu_type: str
    memory_gib: float
    uuids: list[str]


class MachineGpus:
    """The GPUs that nvidia-smi lists, as it did at most 30 s ago."""

    def __init__(
        self,
        root: Path,
        *,
        find: Callable[[], list[Gpu]] = find_gpus,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file, self._find, self._now = root / "gpus.json", find, now
        self._looked, self._nodes, self._absent = self._read()

    def nodes(self) -> list[EngineNode]:
        """Return the nodes; one that misses a GPU is down. Raises Unreachable if none is known.

        If nvidia-smi fails, what it said before still holds: work that runs is not moved for that.
        """
        if self._now() - self._looked >= _LOOK_EVERY_SECONDS:
            self._look()
        return [self._as_it_is(node) for node in self._nodes]

    def devices(self, node: str, gpus: Sequence[int]) -> tuple[str, ...]:
        """Return what CUDA calls these GPUs of a node."""
        uuids = next(each.uuids for each in self._nodes if each.name == node)
        return tuple(uuids[gpu] for gpu in gpus)

    def _look(self) -> None:
        try:
            found = self._find()
        except NoGpus as error:
            if not self._nodes:
                raise Unreachable(str(error)) from error
            log.warning("the GPUs of this machine cannot be listed: %s", error)
            self._looked = self._now()  # one that hangs would hold up every look of the worker
            self._write()
            return
        known = {uuid for node in self._nodes for uuid in node.uuids}
        new = [gpu for gpu in found if gpu.uuid not in known]
        for kind in dict.fromkeys(gpu.kind for gpu in new):
            gpus = [gpu for gpu in new if gpu.kind == kind]
            self._nodes.append(
                _Node(
                    self._free_name(kind),
                    kind,
                    min(gpu.memory_gib for gpu in gpus),
                    [gpu.uuid for gpu in gpus],
                )
            )
        self._absent = known - {gpu.uuid for gpu in found}
        self._looked = self._now()
        self._write()

    def _free_name(self, kind: str) -> str:
        taken = {node.name for node in self._nodes}
        return next(name for name in (f"{kind}-{index}" for index in count()) if name not in taken)

    def _as_it_is(self, node: _Node) -> EngineNode:
        lost = [index for index, uuid in enumerate(node.uuids) if uuid in self._absent]
        reason = "".join(
            f"nvidia-smi no longer lists GPU {index} ({node.uuids[index]}). " for index in lost
        )
        return EngineNode(
            node.name,
            node.gpu_type,
            len(node.uuids),
            up=not lost,
            reason=reason.strip(),
            memory_gib=node.memory_gib,
            down_gpus=frozenset(lost),
        )

    def _read(self) -> tuple[float, list[_Node], set[str]]:
        try:
            data = json.loads(self._file.read_text())
        except FileNotFoundError:
            return 0.0, [], set()
        return data["looked"], [_Node(**each) for each in data["nodes"]], set(data["absent"])

    def _write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "looked": self._looked,
            "nodes": [asdict(node) for node in self._nodes],
            "absent": sorted(self._absent),
        }
        write_whole(self._file, json.dumps(data))
