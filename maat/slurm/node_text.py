"""Nodes in text: what `scontrol show node` and `sinfo` write, and slurm.conf.

A node stands where it stands first: sinfo names it once for each partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from maat.scheduling.errors import ClusterError
from maat.slurm.hosts import MOST_HOSTS, host_names
from maat.slurm.nodes import LeaveOut, NodeRecord, contradiction
from maat.slurm.states import NodeState, node_state

_COMMAND = 'sinfo -N -o "%N %G %T"'
_NODE = re.compile(r"^\s*NodeName\s*=", re.IGNORECASE | re.MULTILINE)
_OF_SCONTROL = re.compile(r"\b(?:CPUAlloc|CPUTot|CfgTRES|BootTime|ActiveFeatures)=")
_FIELD = re.compile(r"([A-Za-z]\w*)=(\S+)")
_CONF_FIELD = re.compile(r'([A-Za-z]\w*)\s*=\s*("[^"]*"|\S+)')
_COMMENT = re.compile(r"(?<!\\)#.*")
_STATEMENTS = {"nodename", "downnodes", "partitionname", "nodeset", "name"}
_NAME_COLUMNS, _REASON = ("NODELIST", "HOSTNAMES"), "REASON"
_WITHOUT_SPACES = {*_NAME_COLUMNS, "GRES", "STATE"}


def is_node_list(text: str) -> bool:
    """Return whether the text is scontrol's, or slurm.conf."""
    return _NODE.search(text) is not None


def is_of_scontrol(text: str) -> bool:
    return _OF_SCONTROL.search(text) is not None


def is_of_sinfo(text: str) -> bool:
    """Return whether the text is sinfo's with its header."""
    header = _header(text)
    return header is not None and any(name in header[1] for name in _NAME_COLUMNS)


def nodes_of_list(text: str, *, leave_out: LeaveOut) -> list[NodeRecord]:
    """Return the nodes of scontrol's text, or of slurm.conf. Raises ClusterError if none is left.

    `leave_out`: called for each record that cannot be read, and for each that contradicts another.
    """
    defaults: dict[str, str] = {}
    nodes = _Nodes(leave_out)
    down: dict[str, NodeState] = {}
    for row, fields in _statements(text):
        try:
            if "nodename" not in fields:
                for name in host_names(fields.get("downnodes", ""), field="DownNodes", row=row):
                    down[name] = node_state(fields.get("state", "DOWN"))
            elif fields["nodename"].upper() == "DEFAULT":
                defaults |= {key: value for key, value in fields.items() if key != "nodename"}
            else:
                nodes.add_all(list(_of_fields(defaults | fields, row)))
        except ClusterError as wrong:
            nodes.leave_out(row, fields.get("nodename") or fields.get("downnodes", ""), wrong)
        nodes.check_count(row, fields.get("nodename", ""))
    return [_with_state(node, down.get(node.name, down.get("ALL"))) for node in nodes.read()]


class _Nodes:
    """The nodes read so far, each where it stands first, and the first error of a record."""

    def __init__(self, leave_out: LeaveOut) -> None:
        self._by_name: dict[str, NodeRecord] = {}
        self._leave_out = leave_out
        self._first_wrong: ClusterError | None = None

    def add_all(self, records: Iterable[NodeRecord]) -> None:
        for node in records:
            known = self._by_name.setdefault(node.name, node)
            if known is not node and (why := contradiction(known, node)):
                self._leave_out(node.row, node.name, why)

    def leave_out(self, row: int, name: str, wrong: ClusterError) -> None:
        self._first_wrong = self._first_wrong or wrong
        self._leave_out(row, name[:80], f"cannot be read: {wrong.field} {wrong.problem}")

    def check_count(self, row: int, line: str) -> None:
        """Raise ClusterError if there are more nodes than a text may have."""
        if len(self._by_name) > MOST_HOSTS:
            raise _wrong(f"has more than {MOST_HOSTS} nodes", line, row)

    def read(self) -> list[NodeRecord]:
        """Return the nodes. Raises the first ClusterError if there is none."""
        if self._first_wrong is not None and not self._by_name:
            raise self._first_wrong
        return list(self._by_name.values())


def _with_state(node: NodeRecord, state: NodeState | None) -> NodeRecord:
    return node if state is None else NodeRecord(node.row, node.name, node.gres, state)


def _of_fields(fields: Mapping[str, str], row: int) -> Iterator[NodeRecord]:
    if "gres" not in fields and "name" in fields:
        remedy = "Give slurm.conf, or what scontrol show node writes."
        raise _wrong("is a line of gres.conf", fields["nodename"], row, remedy=remedy)
    for name in host_names(fields["nodename"], field="NodeName", row=row):
        yield NodeRecord(row, name, fields.get("gres", ""), node_state(fields.get("state")))


def _statements(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield what each node's lines say, with the first of them: the first of a field counts.

    scontrol goes on below a node's name in indented lines. slurm.conf goes on behind a backslash,
    and has lines about other things.
    """
    pattern = _FIELD if is_of_scontrol(text) else _CONF_FIELD
    begun, fields = 0, dict[str, str]()
    for row, line in _lines(text):
        line_fields: dict[str, str] = {}
        for key, value in pattern.findall(line):
            line_fields.setdefault(key.lower(), value.strip('"'))
        if line[:1].isspace() and next(iter(line_fields), "") not in _STATEMENTS:
            fields = line_fields | fields
            continue
        if fields:
            yield begun, fields
        begun, fields = row, line_fields
    if fields:
        yield begun, fields


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; those of slurm.conf joined, and without comments."""
    if is_of_scontrol(text):
        yield from ((n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip())
        return
    begun, joined = 0, ""
    for row, raw in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub("", raw).rstrip()
        begun = begun if joined else row
        joined += line.removesuffix("\\")
        if line.endswith("\\"):
            joined += " "
        elif joined:
            yield begun, joined
            joined = ""
    if joined:
        yield begun, joined


def nodes_of_sinfo(text: str, *, leave_out: LeaveOut) -> list[NodeRecord]:
    """Return the nodes of sinfo's text with its header. Raises ClusterError if none is left.

    `leave_out`: called for each record that cannot be read, and for each that contradicts another.
    """
    begun, header = _header(text) or (0, [])
    if "GRES" not in header:
        raise _wrong("has no column GRES", " ".join(header), begun)
    names = next(name for name in _NAME_COLUMNS if name in header)
    nodes = _Nodes(leave_out)
    for row, line in enumerate(text.splitlines(), start=1):
        if row <= begun or not line.strip():
            continue
        shown = line.strip()
        try:
            cells = dict(zip(header, _cells(line, header, row), strict=True))
            shown, state = cells[names], node_state(cells.get("STATE"))
            nodes.add_all(
                NodeRecord(row, name, cells["GRES"], state) for name in host_names(shown, row=row)
            )
        except ClusterError as wrong:
            nodes.leave_out(row, shown, wrong)
        nodes.check_count(row, line)
    return nodes.read()


def _header(text: str) -> tuple[int, list[str]] | None:
    """Return the header's line number and words. sinfo -l writes the date above it."""
    for row, line in enumerate(text.splitlines()[:5], start=1):
        words = [word.strip().upper() for word in _split(line)]
        if any(name in words for name in _NAME_COLUMNS):
            return row, words
    return None


def _split(line: str) -> list[str]:
    return line.split("|") if "|" in line else line.split()


def _cells(line: str, header: Sequence[str], row: int) -> list[str]:
    """Return the cells of a line: a reason may hold spaces; without one, the last cell may."""
    cells = [cell.strip() for cell in _split(line)]
    more = len(cells) - len(header)
    place = header.index(_REASON) if _REASON in header else len(header) - 1
    if more < 0 or (more and ("|" in line or header[place] in _WITHOUT_SPACES)):
        remedy = f"Write the nodes with {_COMMAND}."
        problem = f"has {len(cells)} cells where the header has {len(header)}"
        raise _wrong(problem, " ".join(cells)[:80], row, remedy=remedy)
    wide = " ".join(cells[place : place + more + 1])
    return [*cells[:place], wide, *cells[place + more + 1 :]]


def _wrong(
    problem: str,
    value: str,
    row: int,
    *,
    remedy: str = f"Give what scontrol show node or {_COMMAND} writes.",
) -> ClusterError:
    return ClusterError(problem, field="text", value=value[:80], row=row or None, remedy=remedy)
