"""What Slurm answers, as text: the JSON of sinfo and squeue. Pure.

The JSON is that of Slurm 22.05 (data parser 0.0.38); later versions give states as lists and
numbers as objects, which are read too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from worker.engines.protocol import EngineNode, Phase

Gpus: TypeAlias = Mapping[str, tuple[int, ...]]

MARK = "maat-"
"""What the names of Maat's jobs begin with; the attempt's id follows."""

_UNTYPED = "gpu"  # the GPU type of nodes whose GPUs have no type in Slurm
_WAITS = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
_RUNS = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
ENDED_BY_SLURM = {
    "CANCELLED": "It was cancelled in Slurm, not by Maat.",
    "NODE_FAIL": "Slurm lost a node of it.",
    "TIMEOUT": "It ran into a time limit of Slurm.",
    "DEADLINE": "It ran into a deadline of Slurm.",
    "PREEMPTED": "Slurm preempted it for another job.",
    "BOOT_FAIL": "Slurm could not boot a node of it.",
    "REVOKED": "Slurm handed it to another cluster.",
}
_ENDED = {"COMPLETED", "FAILED", "OUT_OF_MEMORY", *ENDED_BY_SLURM}
_SERVES = {"IDLE", "ALLOCATED", "MIXED", "COMPLETING"}
_OUT_OF_SERVICE = {
    "DRAIN",
    "FAIL",
    "INVALID",
    "INVALID_REG",
    "MAINTENANCE",
    "NOT_RESPONDING",
    "POWERED_DOWN",
    "POWERING_DOWN",
    "REBOOT_ISSUED",
    "REBOOT_REQUESTED",
}
_NOT_IN_A_TYPE = re.compile(r"[^a-z0-9_.-]")
_DETAIL = re.compile(r"(gpu|shard)(?::[^:(]+)?:\d+\((?:IDX:)?([\d,/-]*)\)")
_AVAILABLE = re.compile(r"(gpu|shard)(?::([^:(,]+))?:(\d+)(?:\([^)]*\))?")


class UnreadableAnswer(Exception):
    """An answer of Slurm is not what it should be. The text says how."""


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node with GPUs of one type.

    `slurm_type`: as Slurm writes it; None if its GPUs have no type there. `shards_per_gpu`: places
    for jobs that share a GPU.
    """

    node: EngineNode
    slurm_type: str | None
    shards_per_gpu: int


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job of ours, all components of it together.

    Attributes:
        state: Slurm's word for it; of several components, for one that did not complete.
        why: Slurm's word for why it waits, or waited last.
        gpus_by_node: The indices that Slurm gave it; None while it does not say.
        exit_code: Of the job script.
        ended_at: Unix seconds; of a job that has not ended, a guess.
    """

    id: int
    attempt_id: str
    phase: Phase
    state: str
    why: str
    gpus_by_node: Gpus | None
    exit_code: int
    ended_at: float


def nodes_of(text: str, *, partition: str | None) -> list[SlurmNode]:
    """Return the nodes that have GPUs, by name, from `sinfo --json`.

    Raises UnreadableAnswer.
    """
    with _reading("sinfo"):
        entries = _entries(text, "nodes")
        found = [_node(entry) for entry in entries if _is_in(entry, partition)]
        return sorted((each for each in found if each), key=lambda each: each.node.name)


def jobs_of(text: str, *, folder: str) -> dict[str, SlurmJob]:
    """Return Maat's jobs by attempt, from `squeue --json`. Raises UnreadableAnswer.

    Each job runs in a folder of its attempt's name in `folder`. Of two jobs of one attempt the
    living one counts, and else the newest.
    """
    with _reading("squeue"):
        components: dict[int, list[Mapping[str, Any]]] = {}
        for entry in _entries(text, "jobs"):
            name = str(entry.get("name", ""))
            where = os.path.join(folder, name.removeprefix(MARK))
            if name.startswith(MARK) and entry.get("current_working_directory") == where:
                leader = _number(entry.get("het_job_id")) or _number(entry["job_id"])
                components.setdefault(leader, []).append(entry)
        return _by_attempt(components)


def _by_attempt(components: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[str, SlurmJob]:
    found: dict[str, SlurmJob] = {}
    for job_id in sorted(components):
        job = _job(job_id, components[job_id])
        before = found.get(job.attempt_id)
        if before is None or before.phase is Phase.ENDED or job.phase is not Phase.ENDED:
            found[job.attempt_id] = job
    return found


@contextmanager
def _reading(command: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableAnswer(f"{command} answered what cannot be read: {error!r}") from None


def _entries(text: str, name: str) -> list[Mapping[str, Any]]:
    data = json.loads(text)
    if data.get("errors"):
        said = _said(data["errors"])
        raise UnreadableAnswer(f"Slurm says: {said}. See whether slurmctld runs: `scontrol ping`.")
    return list(data[name])


def _said(errors: Any) -> str:
    """`Unspecified error`: what a list of errors says, each once."""
    listed = errors if isinstance(errors, list) else [errors]
    texts = [
        str(one.get("description") or one.get("error") or one) if isinstance(one, dict) else one
        for one in listed
    ]
    return "; ".join(dict.fromkeys(map(str, texts)))[:300]


def _is_in(entry: Mapping[str, Any], partition: str | None) -> bool:
    return partition is None or partition in entry.get("partitions", ())


def _node(entry: Mapping[str, Any]) -> SlurmNode | None:
    """Return a node; None if it has no GPU."""
    gpus: dict[str, int] = {}
    shards = 0
    for kind, gpu_type, count in _AVAILABLE.findall(str(entry.get("gres", ""))):
        if kind == "shard":
            shards += int(count)
        elif int(count):
            gpus[gpu_type] = gpus.get(gpu_type, 0) + int(count)
    if not gpus:
        return None
    reason = _why_out_of_service(entry)
    if len(gpus) > 1:
        reason = f"It has GPUs of several types: {', '.join(gpus)}. A node of Maat has one."
    slurm_type, count = next(iter(gpus.items()))
    gpu_type = _NOT_IN_A_TYPE.sub("-", slurm_type.lower()).strip("-._") or _UNTYPED
    node = EngineNode(str(entry["name"]), gpu_type, count, up=not reason, reason=reason)
    return SlurmNode(node, slurm_type or None, shards // count)


def _why_out_of_service(entry: Mapping[str, Any]) -> str:
    """Return why Slurm starts nothing there; nothing if it does."""
    words = [word.rstrip("*") for word in (*_words(entry.get("state")), *_flags(entry))]
    wrong = [word for word in words if word in _OUT_OF_SERVICE]
    if not wrong and any(word in _SERVES for word in words):
        return ""
    state = " ".join(dict.fromkeys(words))
    reason = str(entry.get("reason") or "")
    return f"Slurm has it as {state}: {reason}" if reason else f"Slurm has it as {state}."


def _flags(entry: Mapping[str, Any]) -> list[str]:
    return _words(entry.get("state_flags"))


def _job(job_id: int, entries: Sequence[Mapping[str, Any]]) -> SlurmJob:
    states = [_words(entry.get("job_state")) for entry in entries]
    phases = [_phase(words) for words in states]
    phase = next(
        (each for each in (Phase.UNKNOWN, Phase.RUNNING, Phase.QUEUED) if each in phases),
        Phase.ENDED,
    )
    words = [word for state in states for word in state]
    worst = next((word for word in words if word in ENDED_BY_SLURM), None)
    bad = next((word for word in words if word != "COMPLETED"), "COMPLETED")
    return SlurmJob(
        job_id,
        str(entries[0]["name"]).removeprefix(MARK),
        phase,
        worst or bad,
        str(entries[0].get("state_reason") or "None"),
        _gpus(entries) if phase is Phase.RUNNING else None,
        max(_exit_code(entry.get("exit_code")) for entry in entries),
        max(float(_number(entry.get("end_time"))) for entry in entries),
    )


def _phase(words: Sequence[str]) -> Phase:
    for known, phase in ((_WAITS, Phase.QUEUED), (_RUNS, Phase.RUNNING), (_ENDED, Phase.ENDED)):
        if any(word in known for word in words):
            return phase
    return Phase.UNKNOWN


def _gpus(entries: Sequence[Mapping[str, Any]]) -> Gpus | None:
    """Return the indices by node; None if Slurm does not name them all."""
    found: dict[str, tuple[int, ...]] = {}
    for entry in entries:
        details = entry.get("gres_detail") or ()
        nodes = [
            str(node.get("nodename"))
            for node in (entry.get("job_resources") or {}).get("allocated_nodes") or ()
        ]
        if not nodes or len(details) != len(nodes):
            return None
        for node, detail in zip(nodes, details, strict=True):
            indices = [
                index for _, text in _DETAIL.findall(str(detail)) for index in _indices(text)
            ]
            if not indices:
                return None
            found[node] = tuple(sorted(set(indices)))
    return found


def _indices(text: str) -> Iterator[int]:
    """Yield the numbers of `0-2,5`; of a shard's `0(1/2)` only the first part is asked."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            yield from range(int(first), int(last or first) + 1)


def _words(value: object) -> list[str]:
    """Return a state, which is one word or several, in capitals."""
    if value is None:
        return []
    values = value if isinstance(value, list) else str(value).split("+")
    return [str(each).upper() for each in values]


def _number(value: object) -> int:
    """Return a number, which later versions wrap; 0 if there is none."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set", True) else 0
    return int(value) if isinstance(value, int | float) else 0


def _exit_code(value: object) -> int:
    """Return the code of a job script: 128 and more for a signal."""
    if isinstance(value, Mapping) and "return_code" in value:
        return _number(value["return_code"])
    status = _number(value)
    return status >> 8 if status >> 8 else status and 128 + (status & 127)
