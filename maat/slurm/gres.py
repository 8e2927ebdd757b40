"""Generic resources as Slurm writes them: GRES (`gpu:a100:8(S:0-1)`), TRES (`gres/gpu:a100=8`).

Only a resource that is named exactly `gpu` is GPUs: `vgpu`, `shard`, `mps` and `gpumem` are others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

GPU, SHARD = "gpu", "shard"
_NUMBER_OF_GPU = "7696487"  # what sacct writes where it does not know the plugin: "gpu" as bytes
_COUNT = re.compile(r"(\d{1,12})([KMGTP]?)", re.IGNORECASE)
_FACTORS = {"": 1, **{unit: 1024 ** (power + 1) for power, unit in enumerate("KMGTP")}}
_LIKE_COUNT = re.compile(r"[-+]?\d[\d.,]*[KMGTP]?", re.IGNORECASE)
_USED = re.compile(r"(\d+)/\d+")


@dataclass(frozen=True, slots=True)
class Gres:
    """An amount of one resource.

    `type`: empty where Slurm names none. `count`: None where none is written, or none that can be
    read. `unread`: what is written where a count belongs and is none, such as `-3` or `4.5`.
    `detail`: what stands in parentheses: sockets, or indices.
    """

    name: str
    type: str = ""
    count: int | None = None
    detail: str = ""
    unread: str = ""


def resources(text: str) -> list[Gres]:
    """Return what a list of GRES or TRES names, in its order. `(null)` and `N/A` name nothing."""
    return [each for item in _items(text) if (each := _gres(item)) is not None]


def gpus_by_type(listed: Iterable[Gres], *, without_count: int = 0) -> Mapping[str, int]:
    """Return how many GPUs there are of each type, "" for those without one; no zeros.

    `without_count`: what an item stands for that gives no count: in a request it asks for one.
    """
    counts: dict[str, int] = {}
    for each in listed:
        if each.name == GPU:
            count = without_count if each.count is None else each.count
            counts[each.type] = counts.get(each.type, 0) + count
    return {gpu_type: count for gpu_type, count in counts.items() if count}


def count_of(listed: Iterable[Gres], name: str) -> int:
    """Return how much there is of a resource, all types together."""
    return sum(each.count or 0 for each in listed if each.name == name)


def indices(resource: Gres) -> tuple[int, ...]:
    """Return the indices of devices: `IDX:0-2,5`, or `1/4,0/4`: the shards used of each device."""
    listed = list(_split(resource.detail.removeprefix("IDX:")))
    used = [_USED.fullmatch(each) for each in listed]
    if used and all(used):
        return tuple(place for place, each in enumerate(used) if each and int(each[1]))
    numbers: set[int] = set()
    for each in listed:
        first, _, last = each.partition("(")[0].partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            return ()
        numbers.update(range(int(first), min(int(last or first), int(first) + 10_000) + 1))
    return tuple(sorted(numbers))


def _items(text: str) -> Iterator[str]:
    for item in _split(text):
        if item.strip().lower() not in {"", "(null)", "null", "n/a", "none"}:
            yield item.strip()


def _split(text: str) -> Iterator[str]:
    """Yield what commas separate, but for commas in parentheses."""
    if "(" not in text:
        yield from text.split(",")
        return
    depth = begun = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")" and depth > 0)
        if sign == "," and depth == 0:
            yield text[begun:place]
            begun = place + 1
    yield text[begun:]


def _gres(item: str) -> Gres | None:
    """Return an item such as `gpu:a100:8(S:0-1)`, `gres:gpu:2` or `gres/gpu:a100=8`."""
    head, _, detail = item.partition("(")
    named, is_tres, value = head.strip().partition("=")
    name, *words = named.removeprefix("gres:").removeprefix("gres/").split(":")
    words = [word for word in words if word != "no_consume"]
    if not is_tres and words and _LIKE_COUNT.fullmatch(words[-1]):
        value = words.pop()
    count = _count(value)
    unread = value.strip() if count is None else ""
    name = GPU if name == _NUMBER_OF_GPU else name.lower()
    return Gres(name, ":".join(words), count, detail.removesuffix(")"), unread) if name else None


def _count(text: str) -> int | None:
    match = _COUNT.fullmatch(text)
    return None if match is None else int(match[1]) * _FACTORS[match[2].upper()]
