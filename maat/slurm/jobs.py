"""Jobs in the JSON of squeue, of every version since 21.08."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from maat.slurm.gres import GPU, SHARD, indices, resources
from maat.slurm.hosts import host_names
from maat.slurm.json_values import number, reading, text_of
from maat.slurm.states import state_words

GpusByNode: TypeAlias = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job, or one component of a heterogeneous job.

    Attributes:
        leader_id: Of the job that it is a component of; else its own id.
        folder: Where it runs.
        states: Slurm's words for its state, in capitals.
        reason: Slurm's word for why it waits, or waited last.
        gpus_by_node: The indices that Slurm gave it; None while it does not name them all.
        exit_code: Of its script; 128 and more for a signal.
        ended_at: Unix seconds; of a job that has not ended, a guess.
    """

    id: int
    leader_id: int
    name: str
    folder: str
    states: tuple[str, ...]
    reason: str
    gpus_by_node: GpusByNode | None
    exit_code: int
    ended_at: float


def jobs_in(data: Mapping[str, Any], *, prefix: str = "") -> list[JobRecord]:
    """Return the jobs of an answer whose names begin with `prefix`, in its order.

    A site may have thousands of others: only these are read. Raises UnreadableAnswer.
    """
    with reading():
        entries = [each for each in data["jobs"] if text_of(each.get("name")).startswith(prefix)]
        return [_job(entry) for entry in entries]


def _job(entry: Mapping[str, Any]) -> JobRecord:
    job_id = number(entry["job_id"])
    return JobRecord(
        job_id,
        number(entry.get("het_job_id")) or job_id,
        text_of(entry.get("name")),
        text_of(entry.get("current_working_directory")),
        tuple(state_words(entry.get("job_state"))),
        text_of(entry.get("state_reason")) or "None",
        _gpus_by_node(entry),
        _exit_code(entry.get("exit_code")),
        float(number(entry.get("end_time"))),
    )


def _gpus_by_node(entry: Mapping[str, Any]) -> GpusByNode | None:
    details, nodes = entry.get("gres_detail") or (), _nodes(entry)
    if not nodes or len(details) != len(nodes):
        return None
    gpus = {node: _devices(str(detail)) for node, detail in zip(nodes, details, strict=True)}
    return gpus if all(gpus.values()) else None


def _nodes(entry: Mapping[str, Any]) -> Sequence[str]:
    """Return a job's nodes in the order of its details.

    Until 23.11 they are `allocated_nodes`, in 21.08 without names; since 24.05 `nodes.allocation`.
    """
    given = entry.get("job_resources") or {}
    nodes = given.get("nodes")
    listed = nodes.get("allocation") if isinstance(nodes, Mapping) else given.get("allocated_nodes")
    if isinstance(listed, list) and listed:
        return [str(node.get("name") or node["nodename"]) for node in listed]
    named = nodes.get("list") if isinstance(nodes, Mapping) else nodes
    return host_names(text_of(named))


def _devices(detail: str) -> tuple[int, ...]:
    """Return the indices of GPUs, or of those whose shards it has; none if one is not named."""
    devices: set[int] = set()
    for each in resources(detail):
        if each.name not in (GPU, SHARD) or each.count == 0:
            continue
        named = indices(each)
        is_short = each.name == GPU and each.count not in (None, len(named))
        if not named or is_short:
            return ()
        devices.update(named)
    return tuple(sorted(devices))


def _exit_code(value: object) -> int:
    """Return the code of a job's script, which older versions write as wait() gives it."""
    if isinstance(value, Mapping) and "return_code" in value:
        signal = value.get("signal")
        killed_by = number(signal.get("id")) if isinstance(signal, Mapping) else 0
        return number(value["return_code"]) or (killed_by and 128 + killed_by)
    status = number(value)
    return status >> 8 if status >> 8 else status and 128 + (status & 127)
