"""What Slurm answers means for Maat: its nodes as the engine's, its jobs as attempts. Pure.

maat.slurm reads the JSON of every version.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from maat.slurm.gres import SHARD, count_of, gpus_by_type, resources
from maat.slurm.jobs import JobRecord, jobs_in
from maat.slurm.json_values import SlurmSays, UnreadableAnswer, answer_in
from maat.slurm.nodes import NodeRecord, nodes_in
from worker.engines.protocol import EngineNode, Phase

Gpus: TypeAlias = Mapping[str, tuple[int, ...]]

MARK = "maat-"
"""What the names of Maat's jobs begin with; the attempt's id follows."""

_UNTYPED = "gpu"  # the GPU type of nodes whose GPUs have no type in Slurm
_BOOTS = "CONFIGURING"  # it has its nodes, and they wake
_WAITS = {"PENDING", _BOOTS, "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
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
_NOT_IN_A_TYPE = re.compile(r"[^a-z0-9_.-]")


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
        wakes: It has its nodes, and they boot.
    """

    id: int
    attempt_id: str
    phase: Phase
    state: str
    why: str
    gpus_by_node: Gpus | None
    exit_code: int
    ended_at: float
    wakes: bool = False


def nodes_of(text: str, *, partition: str | None) -> list[SlurmNode]:
    """Return the nodes that have GPUs, by name, from the JSON of scontrol or sinfo.

    Raises UnreadableAnswer.
    """
    with _answered("Slurm"):
        records = nodes_in(answer_in(text))
    nodes = [_node(each) for each in records if partition is None or partition in each.partitions]
    return sorted((each for each in nodes if each), key=lambda each: each.node.name)


def jobs_of(text: str, *, folder: str) -> dict[str, SlurmJob]:
    """Return Maat's jobs by attempt, from `squeue --json`. Raises UnreadableAnswer.

    Each job runs in a folder of its attempt's name in `folder`. Of two jobs of one attempt the
    living one counts, and else the newest.
    """
    with _answered("squeue"):
        records = jobs_in(answer_in(text), prefix=MARK)
    components: dict[int, list[JobRecord]] = {}
    for each in records:
        where = os.path.join(folder, each.name.removeprefix(MARK))
        if each.folder == where:
            components.setdefault(each.leader_id, []).append(each)
    return _by_attempt(components)


def _by_attempt(components: Mapping[int, Sequence[JobRecord]]) -> dict[str, SlurmJob]:
    jobs: dict[str, SlurmJob] = {}
    for job_id in sorted(components):
        job = _job(job_id, components[job_id])
        before = jobs.get(job.attempt_id)
        if before is None or before.phase is Phase.ENDED or job.phase is not Phase.ENDED:
            jobs[job.attempt_id] = job
    return jobs


@contextmanager
def _answered(command: str) -> Iterator[None]:
    try:
        yield
    except SlurmSays:
        raise
    except UnreadableAnswer as error:
        raise UnreadableAnswer(f"{command} answered what cannot be read: {error}") from None


def _node(record: NodeRecord) -> SlurmNode | None:
    """Return a node; None if it has no GPU, or is not there yet."""
    listed = resources(record.gres)
    gpus = gpus_by_type(listed)
    if not gpus or record.state.is_future:
        return None
    reason = _why_out_of_service(record)
    if len(gpus) > 1:
        reason = f"It has GPUs of several types: {', '.join(gpus)}. A node of Maat has one."
    slurm_type, count = next(iter(gpus.items()))
    gpu_type = _NOT_IN_A_TYPE.sub("-", slurm_type.lower()).strip("-._") or _UNTYPED
    node = EngineNode(record.name, gpu_type, count, up=not reason, reason=reason)
    return SlurmNode(node, slurm_type or None, count_of(listed, SHARD) // count)


def _why_out_of_service(record: NodeRecord) -> str:
    """Return why Slurm starts nothing there; nothing if it does, or wakes the node for it."""
    if record.state.serves:
        return ""
    words = f"Slurm has it as {record.state}"
    return f"{words}: {record.reason}" if record.reason else f"{words}."


def _job(job_id: int, records: Sequence[JobRecord]) -> SlurmJob:
    phases = [_phase(each.states) for each in records]
    phase = next(
        (each for each in (Phase.UNKNOWN, Phase.RUNNING, Phase.QUEUED) if each in phases),
        Phase.ENDED,
    )
    words = [word for each in records for word in each.states]
    wakes = phase is Phase.QUEUED and _BOOTS in words
    worst = _BOOTS if wakes else next((word for word in words if word in ENDED_BY_SLURM), None)
    bad = next((word for word in words if word != "COMPLETED"), "COMPLETED")
    return SlurmJob(
        job_id,
        records[0].name.removeprefix(MARK),
        phase,
        worst or bad,
        records[0].reason,
        _gpus(records) if phase is Phase.RUNNING else None,
        max(each.exit_code for each in records),
        max(each.ended_at for each in records),
        wakes,
    )


def _phase(words: Sequence[str]) -> Phase:
    for known, phase in ((_WAITS, Phase.QUEUED), (_RUNS, Phase.RUNNING), (_ENDED, Phase.ENDED)):
        if any(word in known for word in words):
            return phase
    return Phase.UNKNOWN


def _gpus(records: Iterable[JobRecord]) -> Gpus | None:
    """Return the indices by node of all components; None if Slurm does not name them all."""
    gpus: dict[str, tuple[int, ...]] = {}
    for record in records:
        if record.gpus_by_node is None:
            return None
        for node, devices in record.gpus_by_node.items():
            gpus[node] = tuple(sorted({*gpus.get(node, ()), *devices}))
    return gpus
