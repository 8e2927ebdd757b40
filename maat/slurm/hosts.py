"""Lists of nodes as Slurm writes them: `gpu[01-08,10],rack[0-1]n[1-4]-ib`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from math import prod

from maat.scheduling.errors import ClusterError

MOST_HOSTS = 20_000
_ONE = re.compile(r"[^\[\],\s]+")
_HOST = re.compile(r"(?:[^\[\],\s]|\[[^\[\]\s]{1,4000}\])+")
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def host_names(text: str, *, field: str = "NODELIST", row: int | None = None) -> list[str]:
    """Return the names of the nodes in a list, in its order; none for an empty one.

    Raises ClusterError naming `field` and `row` if the text is no such list, or too long.
    """
    if _ONE.fullmatch(text):
        return [text]
    names: list[str] = []
    for host in _hosts(text, field, row):
        parts = [_choices(part, text, field, row) for part in _PART.finditer(host)]
        if len(names) + prod(map(len, parts)) > MOST_HOSTS:
            raise _wrong("names too many nodes", text, field, row)
        names.extend(map("".join, product(*parts)))
    return names


def _hosts(text: str, field: str, row: int | None) -> Iterator[str]:
    place, text = 0, text.strip()
    while place < len(text):
        match = _HOST.match(text, place)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            raise _wrong("is no list of nodes", text, field, row)
        yield match[0]
        place = match.end() + 1


def _choices(part: re.Match[str], text: str, field: str, row: int | None) -> list[str]:
    """Return what a part of a name can be: the numbers in brackets, padded as the first of each."""
    if part[1] is None:
        return [part[2]]
    numbers: list[str] = []
    for each in part[1].split(","):
        match = _RANGE.fullmatch(each)
        first = int(match[1]) if match else 0
        last = int(match[2] or match[1]) if match else -1
        if match is None or last < first:
            raise _wrong("is no range of nodes", text, field, row)
        if len(numbers) + last - first >= MOST_HOSTS:
            raise _wrong("names too many nodes", text, field, row)
        numbers.extend(f"{number:0{len(match[1])}d}" for number in range(first, last + 1))
    return numbers


def _wrong(problem: str, text: str, field: str, row: int | None) -> ClusterError:
    return ClusterError(
        problem,
        field=field,
        value=text[:80],
        row=row,
        remedy='Name nodes as node[01-08], or list them by sinfo -N -o "%N %G %T".',
    )
