"""Nodes in JSON, of every version since 21.08.

`sinfo --json` had a list of nodes until 22.05; since 23.02 it has groups of equal nodes for each
partition, and `scontrol show node --json` has the list. It names no GPU type of Maat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from maat.slurm.gres import gpus_by_type, resources
from maat.slurm.hosts import host_names
from maat.slurm.json_values import UnreadableAnswer, reading, text_of
from maat.slurm.states import NodeState, node_state

LeaveOut: TypeAlias = Callable[[int, str, str], None]
"""Called for what is left out: its row, its name and why."""

_SLURMS = frozenset({"gres", "state", "partitions"})


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as Slurm describes it.

    `gres`: its generic resources, as text. `row`: where it stands: a line, or the place in a list.
    `reason`: why it is out of service, as its administrator wrote it.
    """

    row: int
    name: str
    gres: str
    state: NodeState
    reason: str = ""
    partitions: frozenset[str] = field(default_factory=frozenset)


def has_nodes(data: Mapping[str, Any]) -> bool:
    """Return whether an answer is one about nodes."""
    nodes = data.get("nodes")
    return "sinfo" in data or (isinstance(nodes, list) and any(map(_is_slurms, nodes)))


def nodes_in(data: Mapping[str, Any], *, leave_out: LeaveOut | None = None) -> list[NodeRecord]:
    """Return the nodes of an answer in its order, each once with all its partitions.

    `leave_out`: called for each record that cannot be read, and for each that contradicts another;
    without it, one that cannot be read makes the answer unreadable, and the first of a node counts.
    Raises UnreadableAnswer, also if no record can be read.
    """
    key, read = ("sinfo", _of_group) if "sinfo" in data else ("nodes", _of_node)
    entries = data.get(key)
    if not isinstance(entries, list):
        raise UnreadableAnswer(f"it has no list of {key}")
    nodes: dict[str, NodeRecord] = {}
    first_wrong: UnreadableAnswer | None = None
    for row, entry in enumerate(entries, start=1):
        try:
            with reading():
                listed = list(read(entry, row))
        except UnreadableAnswer as wrong:
            first_wrong = first_wrong or wrong
            if leave_out is None:
                raise
            leave_out(row, f"record {row}", str(wrong))
            continue
        for node in listed:
            known = nodes.setdefault(node.name, node)
            if known is not node:
                partitions = known.partitions | node.partitions
                nodes[node.name] = replace(known, partitions=partitions)
                if leave_out is not None and (why := contradiction(known, node)):
                    leave_out(row, node.name, why)
    if first_wrong is not None and not nodes:
        raise first_wrong
    return list(nodes.values())


def contradiction(known: NodeRecord, other: NodeRecord) -> str:
    """Return in which way two records of one node disagree; "" if they do not."""
    if gpus_by_type(resources(known.gres)) != gpus_by_type(resources(other.gres)):
        first, second = (each.gres[:80] or "no GPUs" for each in (known, other))
        return f"has {second} here and {first} in row {known.row}, which counts"
    if known.state.is_out != other.state.is_out:
        return f"is {other.state} here and {known.state} in row {known.row}, which counts"
    return ""


def _is_slurms(entry: object) -> bool:
    return isinstance(entry, Mapping) and "name" in entry and not _SLURMS.isdisjoint(entry)


def _of_node(entry: Mapping[str, Any], row: int) -> Iterator[NodeRecord]:
    yield NodeRecord(
        row,
        str(entry["name"]),
        text_of(entry.get("gres")),
        node_state(entry.get("state"), entry.get("state_flags")),
        text_of(entry.get("reason")),
        frozenset(_names(entry.get("partitions"))),
    )


def _of_group(entry: Mapping[str, Any], row: int) -> Iterator[NodeRecord]:
    """Yield the nodes of a group. A partition without nodes has one too, of none."""
    gres = entry.get("gres")
    node = entry.get("node") or {}
    for name in _names(entry["nodes"].get("nodes")):
        yield NodeRecord(
            row,
            name,
            text_of(gres.get("total") if isinstance(gres, Mapping) else gres),
            node_state(node.get("state"), node.get("state_flags")),
            text_of(entry.get("reason")),
            frozenset(_partition(entry.get("partition"))),
        )


def _partition(value: object) -> list[str]:
    return _names(value.get("name") if isinstance(value, Mapping) else value)


def _names(value: object) -> list[str]:
    """Return names that are a list, or text with commas and ranges."""
    listed = value if isinstance(value, list) else [value]
    return [name for each in listed if each for name in host_names(str(each))]
