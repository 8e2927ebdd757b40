"""The nodes of a cluster as other programs write them.

`scontrol show node` (also with -o), `sinfo -N -o "%N %G %T"` or any -o with a header that has
NODELIST and GRES, `sinfo --json`, or YAML: `nodes`, each with `gpu_type`, `gpu_count` and, where
wanted, `name` and `count`; or `shape: t4=6x4,a100=2x8`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maat.models.gpu_types import GPU_TYPES, known_gpu_type, renamed
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError
from maat.vocabulary import MAX_GPUS_PER_NODE

MOST_CHARACTERS = 8 * 2**20
MOST_NODES = 20_000
_GRES = re.compile(r"gpu(?::([^:(,]+))?:(\d{1,6})(?:\([^)]*\))?(?=,|$)")
_FIELD = re.compile(r"([A-Za-z]+)=(\S+)")
_RANGES = re.compile(r"([^\[\],\s]*)\[([\d,-]{1,2000})\]([^\[\],\s]*)")
_REMEDY = 'Give what scontrol show node or sinfo -N -o "%N %G %T" writes, or YAML with nodes.'
_OUT = re.compile(r"drain|down|fail|maint|not_responding|inval|\*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A node. `row`: of the text; `out_of_service`: its state there, if it is not in service."""

    row: int
    name: str
    gpu_type: str
    gpu_count: int
    out_of_service: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A node that is left out, and why."""

    row: int
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class FoundCluster:
    """The nodes in the order of the text. `format`: as what it was read. `renamed`: GPU types."""

    format: str
    nodes: tuple[FoundNode, ...]
    left_out: tuple[LeftOut, ...]
    renamed: Mapping[str, str]

    @property
    def groups(self) -> Mapping[tuple[str, int], int]:
        """How many nodes there are by GPU type and GPUs per node."""
        found: dict[tuple[str, int], int] = {}
        for node in self.nodes:
            key = node.gpu_type, node.gpu_count
            found[key] = found.get(key, 0) + 1
        return found


def read_cluster(text: str, *, gpu_types: Mapping[str, str] | None = None) -> FoundCluster:
    """Read the nodes; the format is recognised by the text.

    `gpu_types`: what a type's name in the text stands for, besides the names that are known.
    Raises ClusterError or InputError naming line, field, value and remedy.
    """
    names = renamed(gpu_types or {})
    if len(text) > MOST_CHARACTERS or "\0" in text:
        raise _wrong("is no text of nodes, or too long", value=text[:40])
    kind, found = _recognised(text.removeprefix("\ufeff"))
    nodes: dict[str, FoundNode] = {}
    left_out: list[LeftOut] = []
    types: dict[str, str] = {}
    for each in found:
        if isinstance(each, LeftOut):
            left_out.append(each)
        elif each.name not in nodes:  # sinfo names a node once for each partition
            nodes[each.name] = replace(each, gpu_type=_known(each, names, types))
        if len(nodes) + len(left_out) > MOST_NODES:
            raise _wrong(f"has more than {MOST_NODES} nodes", value=each.name, row=each.row)
    if not nodes:
        why = f": {left_out[0].name} {left_out[0].why}" if left_out else ""
        raise _wrong(f"names no node with GPUs{why}", value=text[:40])
    return FoundCluster(
        kind,
        tuple(nodes.values()),
        tuple(left_out),
        {given: known for given, known in types.items() if given != known},
    )


def _recognised(text: str) -> tuple[str, Iterable[FoundNode | LeftOut]]:
    start = text.lstrip()
    if re.match(r"NodeName=", start):
        return "scontrol", list(_of_scontrol(text))
    if start.startswith("{"):
        return "sinfo --json", list(_of_json(text))
    first = start.partition("\n")[0].upper().split()
    if "NODELIST" in first and "GRES" in first:
        return "sinfo", list(_of_sinfo(text))
    return "yaml", list(_of_yaml(text))


def _of_scontrol(text: str) -> Iterator[FoundNode | LeftOut]:
    node: dict[str, str] = {}
    begun = 1
    for number, line in enumerate(text.splitlines(), start=1):
        fields = dict(_FIELD.findall(line))
        if "NodeName" in fields:
            if node:
                yield _of_fields(node, begun)
            node, begun = {}, number
        node |= fields
    if node:
        yield _of_fields(node, begun)


def _of_fields(fields: Mapping[str, str], row: int) -> FoundNode | LeftOut:
    return _node(fields.get("NodeName", ""), fields.get("Gres", ""), fields.get("State", ""), row)


def _of_sinfo(text: str) -> Iterator[FoundNode | LeftOut]:
    lines = [(n, line.split()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    header = [word.upper() for word in lines[0][1]]
    for number, cells in lines[1:]:
        if len(cells) != len(header):
            raise _wrong(
                f"has {len(cells)} cells where the header has {len(header)}",
                value=" ".join(cells)[:80],
                row=number,
                remedy='Write the nodes with sinfo -N -o "%N %G %T".',
            )
        row = dict(zip(header, cells, strict=True))
        for name in _expanded(row["NODELIST"], number):
            yield _node(name, row["GRES"], row.get("STATE", ""), number)


def _of_json(text: str) -> Iterator[FoundNode | LeftOut]:
    try:
        entries = json.loads(text)["nodes"]
        rows = [(str(e["name"]), str(e.get("gres") or ""), e.get("state")) for e in entries]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise _wrong("is no answer of sinfo --json with nodes", value=text[:40]) from None
    for number, (name, gres, state) in enumerate(rows, start=1):
        words = "+".join(map(str, state)) if isinstance(state, list) else str(state or "")
        yield _node(name, gres, words, number)


def _of_yaml(text: str) -> Iterator[FoundNode | LeftOut]:
    import yaml

    try:
        given = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        mark = getattr(wrong, "problem_mark", None)
        raise _wrong(
            "is neither scontrol's, nor sinfo's, nor YAML",
            value=text[:40],
            row=None if mark is None else mark.line + 1,
        ) from None
    if isinstance(given, dict) and isinstance(given.get("shape"), str):
        for place, node in enumerate(Cluster.parse(given["shape"]).nodes, start=1):
            yield FoundNode(place, node.id, node.gpu_type, node.gpu_count)
        return
    entries = given.get("nodes") if isinstance(given, dict) else None
    if not isinstance(entries, list):
        raise _wrong("has neither nodes nor a shape", value=text[:40])
    for number, entry in enumerate(entries, start=1):
        yield from _of_entry(entry, number)


def _of_entry(entry: Any, number: int) -> Iterator[FoundNode]:
    if not isinstance(entry, dict):
        raise _wrong("is no node with gpu_type and gpu_count", value=entry, row=number)
    unknown = sorted(map(str, entry.keys() - {"name", "gpu_type", "gpu_count", "count"}))
    if unknown:
        raise _wrong(
            "is no field of a node",
            field=f"nodes.{unknown[0]}",
            value=entry.get(unknown[0]),
            row=number,
            remedy="Use name, gpu_type, gpu_count and count.",
        )
    gpu_type = entry.get("gpu_type")
    if not isinstance(gpu_type, str):
        raise _wrong("is no GPU type", field="nodes.gpu_type", value=gpu_type, row=number)
    gpus = _whole(entry.get("gpu_count"), "gpu_count", most=MAX_GPUS_PER_NODE, row=number)
    count = _whole(entry.get("count", 1), "count", most=MOST_NODES, row=number)
    stem = str(entry.get("name") or f"{gpu_type}-{number}")
    for place in range(count):
        name = stem if count == 1 else f"{stem}-{place}"
        yield FoundNode(number, name, gpu_type, gpus)


def _whole(value: object, name: str, *, most: int, row: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise _wrong(
            f"is no whole number from 1 to {most}",
            field=f"nodes.{name}",
            value=value,
            row=row,
            remedy="Correct it.",
        )
    return value


def _node(name: str, gres: str, state: str, row: int) -> FoundNode | LeftOut:
    gpus: dict[str, int] = {}
    for kind, count in _GRES.findall(gres):
        gpus[kind] = gpus.get(kind, 0) + int(count)
    gpus = {kind: count for kind, count in gpus.items() if count}
    if not gpus:
        return LeftOut(row, name, "has no GPUs")
    if len(gpus) > 1:
        return LeftOut(row, name, f"has GPUs of several types: {', '.join(gpus)}")
    gpu_type, count = next(iter(gpus.items()))
    if count > MAX_GPUS_PER_NODE:
        return LeftOut(row, name, f"has {count} GPUs, more than {MAX_GPUS_PER_NODE}")
    out = state if _OUT.search(state) else None
    return FoundNode(row, name, gpu_type or "gpu", count, out)


def _expanded(text: str, row: int) -> Iterator[str]:
    """Yield the names of a list such as `node[01-03,7]`."""
    found = _RANGES.fullmatch(text)
    if found is None:
        if "[" in text or "," in text:
            raise _wrong(
                "is no list of nodes that is read",
                field="NODELIST",
                value=text[:80],
                row=row,
                remedy="Let sinfo write a line per node: sinfo -N.",
            )
        yield text
        return
    for part in found[2].split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise _wrong("is no range of nodes", field="NODELIST", value=text[:80], row=row)
        end = int(last or first)
        if end - int(first) > MOST_NODES:
            raise _wrong("has too many nodes", field="NODELIST", value=text[:80], row=row)
        for number in range(int(first), end + 1):
            yield f"{found[1]}{number:0{len(first)}d}{found[3]}"


def _known(node: FoundNode, names: Mapping[str, str], types: dict[str, str]) -> str:
    """Return the GPU type by the name that Maat has for it, and remember it in `types`."""
    given = node.gpu_type
    known = names.get(given.strip().lower()) or known_gpu_type(given)
    if known is None:
        untyped = given == "gpu"
        raise ClusterError(
            f"of node {node.name[:80]} has no type" if untyped else "is no known GPU type",
            field="gpu_type",
            value=given,
            row=node.row,
            remedy=f"Say what it is like, such as {given}=a100. Known are {', '.join(GPU_TYPES)}.",
        )
    types[given] = known
    return known


def _wrong(
    problem: str,
    *,
    value: object,
    field: str = "text",
    row: int | None = None,
    remedy: str = _REMEDY,
) -> ClusterError:
    return ClusterError(problem, field=field, value=value, row=row, remedy=remedy)
