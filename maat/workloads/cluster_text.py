"""The nodes of a cluster as other programs write them.

`scontrol show node` (also with -o, or --json), slurm.conf, `sinfo -N -o "%N %G %T"` or any -o with
a header that has NODELIST and GRES, `sinfo --json`, or YAML: `nodes`, each with `gpu_type`,
`gpu_count` and, where wanted, `name` and `count`; or `shape: t4=6x4,a100=2x8`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from maat.compression import problem_and_remedy, problem_of_text
from maat.encodings import encoding_of
from maat.models.gpu_types import GPU_TYPES, is_slice, known_gpu_type, renamed
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import ClusterError
from maat.slurm.gres import GPU, Gres, gpus_by_type, resources
from maat.slurm.hosts import MOST_HOSTS
from maat.slurm.json_values import SlurmSays, UnreadableAnswer, errors_of, mapping_in
from maat.slurm.node_text import (
    is_node_list,
    is_of_scontrol,
    is_of_sinfo,
    nodes_of_list,
    nodes_of_sinfo,
)
from maat.slurm.nodes import LeaveOut, NodeRecord, has_nodes, nodes_in
from maat.vocabulary import MAX_GPUS_PER_NODE

MOST_CHARACTERS = 32 * 2**20
MOST_NODES = MOST_HOSTS
_NOT_UTF8 = "\N{REPLACEMENT CHARACTER}"  # stands for bytes that are not UTF-8
_UNTYPED = "gpu"  # the GPU type of nodes whose GPUs have no type in Slurm
_REMEDY = (
    'Give what scontrol show node or sinfo -N -o "%N %G %T" writes, with its header, or YAML with '
    "nodes."
)


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A node. `row`: of the text; `gpu_type`: by Maat's name.

    `out_of_service`: its state there, if it is not in service. `is_asleep`: it is off there to save
    power, and woken when it gets a job.
    """

    row: int
    name: str
    gpu_type: str
    gpu_count: int
    out_of_service: str | None = None
    is_asleep: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A node that is left out, or a part of one, and why. `gpu_type`: one that is not known."""

    row: int
    name: str
    why: str
    gpu_type: str | None = None


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
        groups: dict[tuple[str, int], int] = {}
        for node in self.nodes:
            key = node.gpu_type, node.gpu_count
            groups[key] = groups.get(key, 0) + 1
        return groups

    @property
    def unknown_types(self) -> tuple[str, ...]:
        """The GPU types for which nodes were left out, as the text writes them, each once."""
        return _unknown_types(self.left_out)


class _ReadText(Protocol):
    """Reads the nodes of a text of Slurm."""

    def __call__(self, text: str, *, leave_out: LeaveOut) -> list[NodeRecord]: ...


@dataclass(frozen=True, slots=True)
class _Names:
    """What GPU types are called: `given` by the person who imports, and `seen` in the text."""

    given: Mapping[str, str]
    seen: dict[str, str]

    def known(self, name: str) -> str | None:
        """Return the name that Maat has for a type, and remember it."""
        known = self.given.get(name.strip().lower()) or known_gpu_type(name)
        if known is not None:
            self.seen[name] = known
        return known

    def is_slice(self, name: str) -> bool:
        return is_slice(name) and name.strip().lower() not in self.given


def cluster_text(read: bytes) -> str:
    """Return the text of a file. A node whose name is not UTF-8 is left out when it is read.

    Raises ClusterError for what is no text.
    """
    if packed := problem_and_remedy(read):
        raise ClusterError(packed[0], field="file", remedy=packed[1])
    encoding = encoding_of(read[:4096])
    text = read.decode(encoding, errors="replace").removeprefix("\ufeff")
    if "\0" in text or 10 * text.count(_NOT_UTF8) > len(text):
        raise ClusterError("is no text in UTF-8", field="file", remedy="Save it as UTF-8 text.")
    return text


def read_cluster(text: str, *, gpu_types: Mapping[str, str] | None = None) -> FoundCluster:
    """Read the nodes; the format is recognised by the text.

    `gpu_types`: what a type's name in the text stands for, besides the names that are known.
    Nodes that cannot be used are left out and named. Raises ClusterError or InputError naming line,
    field, value and remedy; if no node is left, with every GPU type that is not known.
    """
    names = _Names(renamed(gpu_types or {}), {})
    if packed := problem_of_text(text):
        raise ClusterError(packed[0], field="text", remedy=packed[1])
    if len(text) > MOST_CHARACTERS or "\0" in text:
        raise _wrong("is no text of nodes, or too long", value=text[:40])
    kind, read = _recognised(text.removeprefix("\ufeff"), names)
    nodes: dict[str, FoundNode] = {}
    left_out: list[LeftOut] = []
    for each in read:
        if isinstance(each, LeftOut):
            left_out.append(each)
        elif _NOT_UTF8 in each.name:
            left_out.append(LeftOut(each.row, each.name, "has a name that is not UTF-8"))
        elif each.name in nodes:
            left_out.append(LeftOut(each.row, each.name, "has the name of another node"))
        else:
            nodes[each.name] = each
        if len(nodes) + len(left_out) > MOST_NODES:
            raise _wrong(f"has more than {MOST_NODES} nodes", value=each.name, row=each.row)
    if not nodes:
        raise _no_node(text, left_out)
    given = {name: known for name, known in names.seen.items() if name != known}
    return FoundCluster(kind, tuple(nodes.values()), tuple(left_out), given)


def _recognised(text: str, names: _Names) -> tuple[str, Iterable[FoundNode | LeftOut]]:
    if is_node_list(text):
        kind = "scontrol" if is_of_scontrol(text) else "slurm.conf"
        return kind, _of_text(nodes_of_list, text, names)
    if text.lstrip().startswith("{"):
        return _of_json(text, names)
    if is_of_sinfo(text):
        return "sinfo", _of_text(nodes_of_sinfo, text, names)
    return _of_yaml(text, names)


def _of_text(read: _ReadText, text: str, names: _Names) -> list[FoundNode | LeftOut]:
    """Return what becomes of the nodes of Slurm's text. Raises ClusterError."""
    left_out: list[FoundNode | LeftOut] = []
    records = read(text, leave_out=lambda *of_record: left_out.append(LeftOut(*of_record)))
    return [*_of_records(records, names), *left_out]


def _of_answer(data: Mapping[str, Any], names: _Names) -> list[FoundNode | LeftOut]:
    """Return what becomes of the nodes of an answer in JSON or YAML. Raises UnreadableAnswer.

    An answer may have errors and nodes; the nodes count, and the errors are told beside them.
    """
    left_out: list[FoundNode | LeftOut] = []
    words = errors_of(data)
    try:
        records = nodes_in(data, leave_out=lambda *of_record: left_out.append(LeftOut(*of_record)))
    except UnreadableAnswer:
        records = []
        if not words:
            raise
    if words and not records:
        raise SlurmSays(f"Slurm says: {words}. See whether slurmctld runs: `scontrol ping`.")
    if words:
        left_out.append(LeftOut(1, "the answer", f"may lack nodes: Slurm says {words}"))
    return [*_of_records(records, names), *left_out]


def _of_records(records: Iterable[NodeRecord], names: _Names) -> Iterator[FoundNode | LeftOut]:
    """Yield what becomes of Slurm's nodes."""
    for node in records:
        if node.state.is_future:
            yield LeftOut(node.row, node.name, "is planned for the future, and not there yet")
        else:
            yield from _of_record(node, resources(node.gres), names)


def _of_record(
    node: NodeRecord, listed: Sequence[Gres], names: _Names
) -> Iterator[FoundNode | LeftOut]:
    if any(GPU.startswith(each.name) and each.count is None for each in listed):
        why = f"has GPUs without a count: {node.gres[:80]} is cut off, or lacks it"
        yield LeftOut(node.row, node.name, why)
        return
    gpus = {name or _UNTYPED: count for name, count in gpus_by_type(listed).items()}
    slices = {name: count for name, count in gpus.items() if names.is_slice(name)}
    whole = {name: count for name, count in gpus.items() if name not in slices}
    if slices:
        parts = ", ".join(f"{count} {name}" for name, count in slices.items())
        beside = " beside whole GPUs, which are taken" if whole else " and no whole GPUs"
        yield LeftOut(node.row, node.name, f"has slices of GPUs ({parts}){beside}")
    if whole or not slices:
        state = str(node.state) if node.state.is_out else None
        yield _of_gpus(node.row, node.name, whole, names, state, node.state.is_asleep)


def _of_gpus(
    row: int,
    name: str,
    gpus: Mapping[str, int],
    names: _Names,
    out_of_service: str | None = None,
    is_asleep: bool = False,
) -> FoundNode | LeftOut:
    """Return a node by its GPUs, if they are all of one known type."""
    known: dict[str, int] = {}
    for given, count in gpus.items():
        gpu_type = names.known(given)
        if gpu_type is None:
            of_type = "without a type" if given == _UNTYPED else f"of unknown type {given[:80]}"
            return LeftOut(row, name, f"has GPUs {of_type}", given)
        known[gpu_type] = known.get(gpu_type, 0) + count
    if not known:
        return LeftOut(row, name, "has no GPUs")
    if len(known) > 1:
        return LeftOut(row, name, f"has GPUs of several types: {', '.join(known)}")
    ((gpu_type, count),) = known.items()
    if count > MAX_GPUS_PER_NODE:
        return LeftOut(row, name, f"has {count} GPUs, more than {MAX_GPUS_PER_NODE}")
    return FoundNode(row, name, gpu_type, count, out_of_service, is_asleep)


def _of_json(text: str, names: _Names) -> tuple[str, Iterable[FoundNode | LeftOut]]:
    try:
        data = mapping_in(text)
        if has_nodes(data) or errors_of(data):
            return "Slurm's JSON", _of_answer(data, names)
    except UnreadableAnswer as wrong:
        raise _unreadable(wrong, text) from None
    if not isinstance(data.get("nodes"), list):
        raise _wrong("is no answer of sinfo --json with nodes", value=text[:40])
    return "JSON", list(_of_own(data, text, names))


def _of_yaml(text: str, names: _Names) -> tuple[str, Iterable[FoundNode | LeftOut]]:
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
    if isinstance(given, dict) and has_nodes(given):
        try:
            return "Slurm's YAML", _of_answer(given, names)
        except UnreadableAnswer as wrong:
            raise _unreadable(wrong, text) from None
    return "yaml", list(_of_own(given, text, names))


def _of_own(given: Any, text: str, names: _Names) -> Iterator[FoundNode | LeftOut]:
    """Yield the nodes of Maat's own form."""
    if isinstance(given, dict) and isinstance(given.get("shape"), str):
        for place, node in enumerate(Cluster.parse(given["shape"]).nodes, start=1):
            yield _of_gpus(place, node.id, {node.gpu_type: node.gpu_count}, names)
        return
    entries = given.get("nodes") if isinstance(given, dict) else None
    if not isinstance(entries, list):
        raise _wrong("has neither nodes nor a shape", value=text[:40])
    first_wrong: ClusterError | None = None
    is_read = False
    for number, entry in enumerate(entries, start=1):
        try:
            yield from _of_entry(entry, number, names)
            is_read = True
        except ClusterError as wrong:
            first_wrong = first_wrong or wrong
            name = entry.get("name") if isinstance(entry, dict) else None
            yield LeftOut(number, str(name or f"record {number}")[:80], _why(wrong))
    if first_wrong is not None and not is_read:
        raise first_wrong


def _why(wrong: ClusterError) -> str:
    value = "" if wrong.value is None else f" (got {str(wrong.value)[:80]!r})"
    return f"cannot be read: {wrong.field} {wrong.problem}{value}"


def _of_entry(entry: Any, number: int, names: _Names) -> Iterator[FoundNode | LeftOut]:
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
        yield _of_gpus(number, name, {gpu_type: gpus}, names)


def _whole(value: object, name: str, *, most: int, row: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise _wrong(
            f"is no whole number from 1 to {most}",
            field=f"nodes.{name}",
            value=value,
            row=row,
            remedy="Correct it.",
        )
    return value


def _unknown_types(left_out: Iterable[LeftOut]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.gpu_type for each in left_out if each.gpu_type is not None))


def _no_node(text: str, left_out: Sequence[LeftOut]) -> ClusterError:
    """Return why no node is left, with all GPU types that are not known."""
    types = _unknown_types(left_out)
    if not types:
        why = f": {left_out[0].name[:80]} {left_out[0].why}" if left_out else ""
        return _wrong(f"names no node with GPUs{why}", value=text[:40])
    first = next(each for each in left_out if each.gpu_type is not None)
    problem = "is no known GPU type"
    if types == (_UNTYPED,):
        problem = f"of node {first.name[:80]} has no type"
    elif len(types) > 1:
        problem = f"are {len(types)} that are not known: {', '.join(types)}"
    like = f"Say what {'it is' if len(types) == 1 else 'each is'} like, such as {types[0]}=a100."
    return _wrong(
        problem,
        field="gpu_type",
        value=types[0] if len(types) == 1 else None,
        row=first.row,
        remedy=f"{like} Known are {', '.join(GPU_TYPES)}.",
    )


def _unreadable(wrong: UnreadableAnswer, text: str) -> ClusterError:
    return _wrong(f"is no answer of Slurm with nodes: {str(wrong)[:200]}", value=text[:40])


def _wrong(
    problem: str,
    *,
    value: object,
    field: str = "text",
    row: int | None = None,
    remedy: str = _REMEDY,
) -> ClusterError:
    return ClusterError(problem, field=field, value=value, row=row, remedy=remedy)
